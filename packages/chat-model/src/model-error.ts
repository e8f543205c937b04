import { APICallError, InvalidResponseDataError } from '@ai-sdk/provider';
import { retryAfterMs } from './retry-delay.ts';

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
  | 'filtered';

const REASONS: Record<ModelErrorCode, { reason: string; retryable: boolean }> = {
  unreachable: { reason: 'the model cannot be reached', retryable: true },
  rate_limited: { reason: 'the model is rate limited', retryable: true },
  out_of_quota: { reason: "the model's quota is used up", retryable: false },
  provider_failed: { reason: 'the model provider failed', retryable: true },
  unauthorized: { reason: 'the model provider does not accept the credentials', retryable: false },
  refused: { reason: 'the model provider refused the request', retryable: false },
  no_first_token: { reason: 'the model did not begin to answer in time', retryable: true },
  silent: { reason: 'the model fell silent', retryable: true },
  too_slow: { reason: 'the model did not end its answer in time', retryable: false },
  cut_off: { reason: "the model's stream broke off", retryable: true },
  half_a_call: { reason: 'the model sent a tool call whose arguments are not a JSON object', retryable: true },
  too_many_calls: { reason: 'the model called too many tools at once', retryable: false },
  too_long: { reason: "the model's answer is larger than a step may be", retryable: false },
  length_limit: { reason: "the model's answer was cut at its length limit", retryable: false },
  filtered: { reason: "the provider's content filter ended the answer", retryable: false },
};

/** Why a step failed. The message is a sentence without content: what a provider writes may quote the prompt. */
export class ModelError extends Error {
  override readonly name = 'ModelError';
  readonly code: ModelErrorCode;
  readonly retryable: boolean;
  /** What the provider asked for, milliseconds. */
  readonly retryAfterMs: number | undefined;

  constructor(code: ModelErrorCode, told: { status?: number; retryAfterMs?: number | undefined } = {}) {
    const { reason, retryable } = REASONS[code];
    super(told.status === undefined ? reason : `${reason} (HTTP ${told.status})`);
    this.code = code;
    this.retryable = retryable;
    this.retryAfterMs = told.retryAfterMs;
  }
}

/** What the library threw, or put into the stream, in our words. */
export function modelErrorOf(error: unknown): ModelError {
  if (error instanceof ModelError) return error;
  if (APICallError.isInstance(error)) return ofResponse(error);
  if (InvalidResponseDataError.isInstance(error)) return new ModelError('cut_off');
  return isProviderError(error) ? new ModelError('provider_failed') : new ModelError('cut_off');
}

function ofResponse({ statusCode, responseHeaders, data }: APICallError): ModelError {
  if (statusCode === undefined) return new ModelError('unreachable');
  const told = { status: statusCode, retryAfterMs: retryAfterMs(responseHeaders ?? {}, Date.now()) };
  if (statusCode === 401 || statusCode === 403) return new ModelError('unauthorized', told);
  // OpenAI says both with 429; only one of them passes by waiting (https://platform.openai.com/docs/guides/error-codes).
  if (statusCode === 429) return new ModelError(codeOf(data) === 'insufficient_quota' ? 'out_of_quota' : 'rate_limited', told);
  // The response began well, and broke off before its first event, or is no event stream.
  if (statusCode < 300) return new ModelError('cut_off');
  if (statusCode >= 500 || statusCode === 408 || statusCode === 409) return new ModelError('provider_failed', told);
  return new ModelError('refused', told);
}

function codeOf(data: unknown): unknown {
  return (data as { error?: { code?: unknown } } | undefined)?.error?.code;
}

/** An error event in the stream: `{message, type, code}`. */
function isProviderError(error: unknown): boolean {
  return typeof error === 'string' || (typeof error === 'object' && error !== null && !(error instanceof Error));
}
