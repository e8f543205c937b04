import { A2A_ERRORS, A2AError, type A2AErrorCode, type A2AErrorOptions, isObject, type JsonObject } from '@hopline/a2a/client';

/** Members of an error that headers of the response have. */
export type ErrorHeaders = Pick<A2AErrorOptions, 'retryAfterMs' | 'challenge'>;

/**
 * The `error` of a JSON-RPC response as a typed error. Some numbers (-32600, -32603) stand for several codes, of which `data`
 * names one;
 * an unknown number is INTERNAL_ERROR. `retryable` comes from `data`, or is `retryableDefault` if absent there.
 */
export function errorOf(error: JsonObject, retryableDefault = false, headers: ErrorHeaders = {}): A2AError {
  const { reason, retryable, taskId } = dataOf(error.data ?? error.details);
  const code = codeOf(error.code, reason);
  const { text } = A2A_ERRORS[code];
  const message = typeof error.message === 'string' ? error.message : '';
  const detail = message.startsWith(`${text}: `) ? message.slice(text.length + 2) : message === text ? '' : message;
  return new A2AError(code, {
    ...headers,
    retryable: retryable ?? retryableDefault,
    ...(detail !== '' && { detail }),
    ...(taskId !== undefined && { taskId }),
  });
}

const CODES = Object.keys(A2A_ERRORS) as A2AErrorCode[];

function codeOf(number: unknown, reason: unknown): A2AErrorCode {
  const possible = CODES.filter(code => A2A_ERRORS[code].rpc === number);
  // HTTP+JSON has the HTTP status instead of the number, so only the reason identifies the code.
  return possible.find(code => code === reason) ?? possible[0] ?? CODES.find(code => code === reason) ?? 'INTERNAL_ERROR';
}

type ErrorData = { reason?: unknown; retryable?: boolean | undefined; taskId?: string | undefined };

/** In 1.0 `data` is an array of typed details, of which the one with a reason is read; in 0.3 it is a plain object. */
function dataOf(data: unknown): ErrorData {
  const details = Array.isArray(data) ? data.filter(isObject) : isObject(data) ? [data] : [];
  const detail = details.find(one => typeof one.reason === 'string') ?? details[0] ?? {};
  const { retryable, taskId } = isObject(detail.metadata) ? detail.metadata : detail;
  return {
    reason: detail.reason,
    retryable: retryable === undefined ? undefined : retryable === true || retryable === 'true',
    taskId: typeof taskId === 'string' ? taskId : undefined,
  };
}
