export type ModelErrorCode =
  | 'unreachable'
  | 'rate_limited'
  | 'out_of_quota'
  | 'provider_failed'
  | 'unauthorized'
  | 'refused'
  | 'no_first_token'
  | 'silent'
  | 'too_slow'
  | 'cut_off'
  | 'half_a_call'
  | 'too_many_calls'
  | 'too_long'
  | 'length_limit'
  | 'filtered'
  | 'too_many_steps';

const REASONS: Record<ModelErrorCode, { reason: string; retryable: boolean }> = {
  unreachable: { reason: 'the model cannot be reached', retryable: true },
  rate_limited: { reason: 'the model is rate limited', retryable: true },
  out_of_quota: { reason: "the model's quota is used up", retryable: false },
  provider_failed: { reason: 'the model provider failed', retryable: true },
  unauthorized: { reason: 'the model provider does not accept the credentials', retryable: false },
  refused: { reason: 'the model provider refused the request', retryable: false },
  no_first_token: { reason: 'the model did not start its answer in time', retryable: true },
  silent: { reason: 'the model stopped sending', retryable: true },
  too_slow: { reason: 'the model did not finish its answer in time', retryable: false },
  cut_off: { reason: "the model's stream ended early", retryable: true },
  half_a_call: { reason: 'the model sent a tool call whose arguments are not a JSON object', retryable: true },
  too_many_calls: { reason: 'the model called too many tools at once', retryable: false },
  too_long: { reason: "the model's answer exceeds the size limit of a step", retryable: false },
  length_limit: { reason: "the model's answer was cut at its length limit", retryable: false },
  filtered: { reason: "the provider's content filter ended the answer", retryable: false },
  too_many_steps: { reason: 'the model did not finish within its steps', retryable: false },
};

/** Registered globally, because the module of an agent may have its own copy of this class. */
const BRAND: unique symbol = Symbol.for('hopline.model-error') as never;

type ErrorDetails = {
  status?: number;
  retryAfterMs?: number | undefined;
  /** For `too_many_steps`: the number of steps that the model had. */
  steps?: number;
  /** The error of the provider or of the connection. It may contain the prompt, so only the author sees it: it enters no log, no span and no response. */
  cause?: unknown;
};

/** A ModelError as JSON. */
export type ModelErrorData = { code: ModelErrorCode; message: string; retryAfterMs?: number };

/** Why a step failed. The message quotes nothing of the provider, whose errors may contain the prompt; `cause` is its error. */
export class ModelError extends Error {
  override readonly name = 'ModelError';
  readonly code: ModelErrorCode;
  readonly retryable: boolean;
  /** The provider's `Retry-After`. */
  readonly retryAfterMs: number | undefined;
  readonly [BRAND] = true;

  constructor(code: ModelErrorCode, { status, retryAfterMs, steps, cause }: ErrorDetails = {}) {
    const { reason, retryable } = REASONS[code];
    const sentence = steps === undefined ? reason : `the model did not finish within ${steps} steps`;
    const message = `${sentence}${status === undefined ? '' : ` (HTTP ${status})`}${waitOf(retryAfterMs)}`;
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.retryable = retryable;
    this.retryAfterMs = retryAfterMs;
  }

  /** True for an error of any copy of this class. */
  static is(error: unknown): error is ModelError {
    return error instanceof Error && BRAND in error;
  }

  /** The error that `toJSON` has written. */
  static from({ code, message, retryAfterMs }: ModelErrorData): ModelError {
    return Object.assign(new ModelError(code, { retryAfterMs }), { message });
  }

  toJSON(): ModelErrorData {
    const { code, message, retryAfterMs } = this;
    return { code, message, ...(retryAfterMs !== undefined && { retryAfterMs }) };
  }
}

/** The reason of a failed turn contains the delay, since the client may retry. */
function waitOf(ms: number | undefined): string {
  return ms === undefined || ms <= 0 ? '' : `; retry after ${Math.ceil(ms / 1_000)} s`;
}
