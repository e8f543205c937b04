import { HEADER_VALUE } from '@hopline/outbound-http';

/** Form of a setting that holds the API key of a model, which is sent in a header. */
const API_KEY_FORM = { pattern: HEADER_VALUE, words: 'visible ASCII characters, 1 to 4096' } as const;
/** The address of a model that is configured without one. */
export const OPENAI_BASE_URL_DEFAULT = 'https://api.openai.com/v1';

/** Maximum length of the text, reasoning and arguments of one step together. */
export const MODEL_STEP_UNITS_MAX = 512 * 1024;
/** Maximum tool calls of one step. */
export const MODEL_STEP_CALLS_MAX = 32;
/** Bytes of one response: enough for a step of MODEL_STEP_UNITS_MAX, in which every token has about 200 bytes of JSON around it. */
export const MODEL_RESPONSE_BYTES_MAX = 64 * 1024 * 1024;
/** First delay before a retry, in milliseconds; doubled per failure, with full jitter. */
export const RETRY_MS_BASE = 500;
export const RETRY_MS_MAX = 8_000;
/** Longest `Retry-After` that a step waits for, in milliseconds. With a longer one the step fails, and the error contains the delay. */
export const MODEL_RETRY_AFTER_MS_MAX = 30_000;
/** Upper bound of the first-token and silence limits, in milliseconds, because Node's fetch aborts a silent response after 300 s. */
export const MODEL_MS_MAX = 280_000;

export type ModelLimits = {
  /** Milliseconds from the request to the first token. A model may reason silently before it. */
  firstTokenMsMax: number;
  /** Milliseconds between two tokens. */
  silenceMsMax: number;
  /** Duration of one request in milliseconds. */
  totalMsMax: number;
  /** Requests for one step, the first included. */
  triesMax: number;
};

export const MODEL_LIMITS: ModelLimits = { firstTokenMsMax: 120_000, silenceMsMax: 60_000, totalMsMax: 600_000, triesMax: 3 };

export type ChatModelOptions = {
  /** Name of the model at the address. */
  model: string;
  /** Base address, without `/chat/completions`. */
  baseUrl: string;
  /** Sent as a bearer token. */
  apiKey?: string | undefined;
  headers?: Readonly<Record<string, string>>;
  temperature?: number;
  limits?: Partial<ModelLimits>;
  /** Path of a file with the prices of models (`readPrices`). Absent: the cost of a request is unknown. */
  pricesFile?: string | undefined;
  /** Sends the requests, for tests. Default: `fetch` of the process. */
  fetch?: typeof fetch | undefined;
};

/** Settings of a service that calls models. `docs` describe the first two for that service. */
export const modelSettings = (docs: { url: string; key: string }) =>
  ({
    OPENAI_BASE_URL: { type: 'url', default: OPENAI_BASE_URL_DEFAULT, schemes: ['http', 'https'], doc: docs.url },
    OPENAI_API_KEY: { type: 'string', optional: true, form: API_KEY_FORM, min: 1, max: 4_096, secret: true, doc: docs.key },
    HOPLINE_MODEL_PRICES_FILE: {
      type: 'string',
      optional: true,
      min: 1,
      max: 4_096,
      doc: 'Path of a JSON file with the prices of a million tokens: `{"models": {"NAME": {"input": 1.25, "cachedInput": 0.125, "output": 10}}}`. Unset: spans, metrics and traces of tasks have no cost.',
    },
  }) as const;
