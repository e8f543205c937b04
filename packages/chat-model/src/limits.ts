/** Where models live when nobody says otherwise. */
export const OPENAI_BASE_URL_DEFAULT = 'https://api.openai.com/v1';

/** Text, reasoning and arguments of one step, UTF-16 units. */
export const STEP_UNITS_MAX = 512 * 1024;
/** Tool calls of one step. */
export const STEP_CALLS_MAX = 32;
/** Bytes of one response: a step of STEP_UNITS_MAX sent a token at a time carries some 200 bytes of JSON around each. */
export const RESPONSE_BYTES_MAX = 64 * 1024 * 1024;
/** First wait before a step is asked again, milliseconds; doubled per failure, with full jitter. */
export const RETRY_MS_BASE = 500;
export const RETRY_MS_MAX = 8_000;
/** A provider that wants to be left alone for longer is not waited for, milliseconds: the step fails, and says when to come back. */
export const RETRY_AFTER_MS_MAX = 30_000;
/** Limits of one request can be no longer than this, milliseconds: Node's fetch gives up a silent response by itself after 300 s. */
export const MODEL_MS_MAX = 280_000;

export type ModelLimits = {
  /** Until the first token of a step, milliseconds; a model that thinks in silence needs long. */
  firstTokenMsMax: number;
  /** Between two tokens, milliseconds. */
  silenceMsMax: number;
  /** Of one request in all, milliseconds. */
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
