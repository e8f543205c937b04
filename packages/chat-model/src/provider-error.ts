import { APICallError, InvalidResponseDataError } from '@ai-sdk/provider';
import { ModelError } from './model-error.ts';
import { providerDelayMs } from './retry-delay.ts';

/** Converts an error that the library threw, or emitted in the stream. */
export function modelErrorOf(error: unknown): ModelError {
  if (error instanceof ModelError) return error;
  if (APICallError.isInstance(error)) return ofResponse(concise(error));
  if (InvalidResponseDataError.isInstance(error)) return new ModelError('cut_off', { cause: error });
  return new ModelError(isProviderError(error) ? 'provider_failed' : 'cut_off', { cause: error });
}

/** Members that show an author what was refused and where. */
const SHOWN: ReadonlySet<PropertyKey> = new Set(['url', 'statusCode', 'responseBody', 'cause']);

/**
 * Hides the other members when the error is printed: with the request and the headers it would fill a terminal, and the request contains
 * the prompt.
 */
function concise(error: APICallError): APICallError {
  for (const member of Reflect.ownKeys(error)) {
    const found = Object.getOwnPropertyDescriptor(error, member);
    if (found?.configurable && !(SHOWN.has(member) && found.value !== undefined))
      Object.defineProperty(error, member, { enumerable: false });
  }
  // Printing shows a cause even if it is not enumerable.
  if (error.cause === undefined) Reflect.deleteProperty(error, 'cause');
  return error;
}

function ofResponse(error: APICallError): ModelError {
  const { statusCode, responseHeaders, data } = error;
  if (statusCode === undefined) return new ModelError('unreachable', { cause: error });
  const response = { status: statusCode, retryAfterMs: providerDelayMs(responseHeaders ?? {}, Date.now()), cause: error };
  if (statusCode === 401 || statusCode === 403) return new ModelError('unauthorized', response);
  // OpenAI uses 429 for both, but only a rate limit ends by waiting (https://platform.openai.com/docs/guides/error-codes).
  if (statusCode === 429)
    return new ModelError(codeOf(data) === 'insufficient_quota' ? 'out_of_quota' : 'rate_limited', response);
  // The status was successful, but the body ended before its first event or was not an event stream.
  if (statusCode < 300) return new ModelError('cut_off', { cause: error });
  if (statusCode >= 500 || statusCode === 408 || statusCode === 409) return new ModelError('provider_failed', response);
  return new ModelError('refused', response);
}

function codeOf(data: unknown): unknown {
  return (data as { error?: { code?: unknown } } | undefined)?.error?.code;
}

/** An error event in the stream: `{message, type, code}`. */
function isProviderError(error: unknown): boolean {
  return typeof error === 'string' || (typeof error === 'object' && error !== null && !(error instanceof Error));
}
