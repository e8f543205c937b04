import { APICallError, InvalidResponseDataError } from '@ai-sdk/provider';
import { ModelError } from './model-error.ts';
import { retryAfterMs } from './retry-delay.ts';

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
