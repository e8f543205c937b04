import { A2A_ERRORS, A2AError, type A2AErrorCode, isObject, type JsonObject } from '@hopline/a2a';

/**
 * The `error` of a JSON-RPC response as a typed error. A number stands for several codes where `data` names one of them (-32600, -32603); a number nobody knows is INTERNAL_ERROR.
 * `retryable` is what the server says in `data`; where it says nothing, `unlessSaid`.
 */
export function errorOf(error: JsonObject, unlessSaid = false): A2AError {
  const { reason, retryable, taskId } = dataOf(error.data);
  const code = codeOf(error.code, reason);
  const { text } = A2A_ERRORS[code];
  const said = typeof error.message === 'string' ? error.message : '';
  const detail = said.startsWith(`${text}: `) ? said.slice(text.length + 2) : said === text ? '' : said;
  return new A2AError(code, {
    retryable: retryable ?? unlessSaid,
    ...(detail !== '' && { detail }),
    ...(taskId !== undefined && { taskId }),
  });
}

const CODES = Object.keys(A2A_ERRORS) as A2AErrorCode[];

function codeOf(number: unknown, reason: unknown): A2AErrorCode {
  const possible = CODES.filter(code => A2A_ERRORS[code].rpc === number);
  return possible.find(code => code === reason) ?? possible[0] ?? 'INTERNAL_ERROR';
}

type ErrorData = { reason?: unknown; retryable?: boolean | undefined; taskId?: string | undefined };

/** `data` is an array of typed details in 1.0, of which the one with a reason counts, and a plain object before (C-12). */
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
