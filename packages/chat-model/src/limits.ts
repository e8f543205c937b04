/** The address of models without a configured one. */
export const OPENAI_BASE_URL_DEFAULT = 'https://api.openai.com/v1';

/** Total length of the text, reasoning and arguments of one step. */
export const STEP_UNITS_MAX = 512 * 1024;
/** Tool calls of one step. */
export const STEP_CALLS_MAX = 32;
/** Bytes of one response: in a step of STEP_UNITS_MAX, every token has about 200 bytes of JSON around it. */
export const RESPONSE_BYTES_MAX = 64 * 1024 * 1024;
/** First delay before a retry, milliseconds; doubled per failure, with full jitter. */
export const RETRY_MS_BASE = 500;
export const RETRY_MS_MAX = 8_000;
/** Longest `Retry-After` that is waited for, milliseconds. Above it the step fails, and the error contains the delay. */
export const RETRY_AFTER_MS_MAX = 30_000;
/** Upper bound of the first-token and silence limits, milliseconds: Node's fetch aborts a silent response after 300 s. */
export const MODEL_MS_MAX = 280_000;

export type ModelLimits = {
  /** From the request to the first token, milliseconds; a model may reason in silence. */
  firstTokenMsMax: number;
  /** Between two tokens. */
  silenceMsMax: number;
  /** Of one request. */
  totalMsMax: number;
  /** Requests for one step, the first included. */
  triesMax: number;
};

export const MODEL_LIMITS: ModelLimits = { firstTokenMsMax: 120_000, silenceMsMax: 60_000, totalMsMax: 600_000, triesMax: 3 };

export type ChatModelOptions = {
  /** Name of the model at the address. */
  model: string;
  /** Address that `/chat/completions` is added to. */
  baseUrl: string;
  /** Sent as a bearer token. */
  apiKey?: string | undefined;
  headers?: Readonly<Record<string, string>>;
  temperature?: number;
  limits?: Partial<ModelLimits>;
};
