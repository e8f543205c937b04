import type { A2AError, A2AErrorCode } from '@hopline/a2a';

/** The body of an error, as every endpoint of OpenAI has it. */
export type OpenAIErrorBody = { error: { message: string; type: string; param: string | null; code: string | null } };

/** A request that cannot be served. `param` names the wrong member. */
export class OpenAIError extends Error {
  override readonly name = 'OpenAIError';
  readonly status: number;
  readonly param: string | null;
  readonly code: string | null;

  constructor(
    message: string,
    { status = 400, param = null, code = null }: Partial<Pick<OpenAIError, 'status' | 'param' | 'code'>> = {},
  ) {
    super(message);
    this.status = status;
    this.param = param;
    this.code = code;
  }

  get body(): OpenAIErrorBody {
    const { message, param, code } = this;
    return { error: { message, type: 'invalid_request_error', param, code } };
  }
}

/** Codes by which clients of OpenAI recognize an error. Errors of the server have the type `server_error`. */
const CODES: Partial<Record<A2AErrorCode, string>> = {
  UNAUTHENTICATED: 'invalid_api_key',
  PERMISSION_DENIED: 'permission_denied',
  TASK_NOT_FOUND: 'response_not_found',
  REQUEST_TOO_LARGE: 'request_too_large',
  QUOTA_EXCEEDED: 'rate_limit_exceeded',
  UNAVAILABLE: 'server_unavailable',
};

/** An error of the server in OpenAI's form. */
export function bodyOfError({ code, message, row }: A2AError): OpenAIErrorBody {
  const type = row.http === 429 ? 'rate_limit_error' : row.http >= 500 ? 'server_error' : 'invalid_request_error';
  return { error: { message, type, param: null, code: CODES[code] ?? null } };
}
