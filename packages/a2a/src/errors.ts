/** One row of the catalogue. `text` is on the wire, followed by `detail` when there is one. */
export type A2AErrorRow = {
  /** JSON-RPC error number ([A2A 1.0] 5.4, JSON-RPC 2.0 section 5.1). */
  rpc: number;
  /**
   * HTTP status of bindings that use one per error. JSON-RPC over HTTP answers 200 except for the last five rows, which concern
   * the connection or the caller.
   */
  http: number;
  /** gRPC status name. */
  grpc: string;
  /** Whether the same request may succeed later, unchanged. */
  retryable: boolean;
  text: string;
};

/** Every error that Hopline shows to clients, as data. ERRORS.md is the same table for readers; a test compares them. */
export const A2A_ERRORS = {
  PARSE_ERROR: { rpc: -32700, http: 400, grpc: 'INVALID_ARGUMENT', retryable: false, text: 'Invalid JSON' },
  INVALID_REQUEST: { rpc: -32600, http: 400, grpc: 'INVALID_ARGUMENT', retryable: false, text: 'Not a JSON-RPC 2.0 request' },
  METHOD_NOT_FOUND: { rpc: -32601, http: 404, grpc: 'UNIMPLEMENTED', retryable: false, text: 'Method not found' },
  INVALID_PARAMS: { rpc: -32602, http: 400, grpc: 'INVALID_ARGUMENT', retryable: false, text: 'Invalid params' },
  INTERNAL_ERROR: { rpc: -32603, http: 500, grpc: 'INTERNAL', retryable: true, text: 'Internal error' },
  TASK_NOT_FOUND: { rpc: -32001, http: 404, grpc: 'NOT_FOUND', retryable: false, text: 'Task not found' },
  TASK_NOT_CANCELABLE: {
    rpc: -32002,
    http: 400,
    grpc: 'FAILED_PRECONDITION',
    retryable: false,
    text: 'Task cannot be canceled: it has ended',
  },
  PUSH_NOTIFICATION_NOT_SUPPORTED: {
    rpc: -32003,
    http: 400,
    grpc: 'FAILED_PRECONDITION',
    retryable: false,
    text: 'Push notifications are not supported',
  },
  UNSUPPORTED_OPERATION: {
    rpc: -32004,
    http: 400,
    grpc: 'FAILED_PRECONDITION',
    retryable: false,
    text: 'This operation is not supported',
  },
  CONTENT_TYPE_NOT_SUPPORTED: {
    rpc: -32005,
    http: 400,
    grpc: 'INVALID_ARGUMENT',
    retryable: false,
    text: 'Incompatible content types',
  },
  INVALID_AGENT_RESPONSE: { rpc: -32006, http: 500, grpc: 'INTERNAL', retryable: true, text: 'Invalid agent response' },
  EXTENDED_AGENT_CARD_NOT_CONFIGURED: {
    rpc: -32007,
    http: 400,
    grpc: 'FAILED_PRECONDITION',
    retryable: false,
    text: 'No extended agent card is configured',
  },
  EXTENSION_SUPPORT_REQUIRED: {
    rpc: -32008,
    http: 400,
    grpc: 'FAILED_PRECONDITION',
    retryable: false,
    text: 'The client must support a required extension',
  },
  VERSION_NOT_SUPPORTED: {
    rpc: -32009,
    http: 400,
    grpc: 'FAILED_PRECONDITION',
    retryable: false,
    text: 'This A2A version is not supported',
  },
  TASK_GENERATION_MISMATCH: { rpc: -32010, http: 409, grpc: 'ABORTED', retryable: false, text: 'Task generation mismatch' },
  UNAUTHENTICATED: { rpc: -32600, http: 401, grpc: 'UNAUTHENTICATED', retryable: false, text: 'Authentication required' },
  PERMISSION_DENIED: { rpc: -32600, http: 403, grpc: 'PERMISSION_DENIED', retryable: false, text: 'Permission denied' },
  REQUEST_TOO_LARGE: { rpc: -32600, http: 413, grpc: 'RESOURCE_EXHAUSTED', retryable: false, text: 'Request is too large' },
  QUOTA_EXCEEDED: { rpc: -32603, http: 429, grpc: 'RESOURCE_EXHAUSTED', retryable: true, text: 'Quota exceeded' },
  UNAVAILABLE: { rpc: -32603, http: 503, grpc: 'UNAVAILABLE', retryable: true, text: 'Temporarily unavailable' },
} as const satisfies Record<string, A2AErrorRow>;

export type A2AErrorCode = keyof typeof A2A_ERRORS;

/** A member of the params by its path, such as `message.parts[0].raw`, and the rule that it breaks. The value is never part of it. */
export type FieldViolation = { field: string; description: string };

export type A2AErrorOptions = {
  /** One sentence for people. It is sent to the client, so it never quotes content, credentials or a cause. */
  detail?: string;
  taskId?: string;
  /** For INVALID_PARAMS: the member that breaks a rule. */
  violation?: FieldViolation;
  /** For TASK_GENERATION_MISMATCH: the generation that the client expected, and that of the task. */
  generations?: { expected: number; current: number };
  /** Replaces `retryable` of the catalogue's row. */
  retryable?: boolean;
  /** For UNAUTHENTICATED: the value of `WWW-Authenticate` (RFC 9110 11.6.1). */
  challenge?: string;
  /** For QUOTA_EXCEEDED and UNAVAILABLE: when the client should retry. */
  retryAfterMs?: number;
  /** For logs and spans only; never on the wire. */
  cause?: unknown;
};

/** The error class of Hopline's servers. It contains everything that a client may see of a failure; the rest stays in `cause`. */
export class A2AError extends Error {
  override readonly name = 'A2AError';
  readonly code: A2AErrorCode;
  readonly taskId: string | undefined;
  readonly violation: FieldViolation | undefined;
  readonly generations: A2AErrorOptions['generations'] | undefined;
  readonly retryable: boolean;
  readonly challenge: string | undefined;
  readonly retryAfterMs: number | undefined;

  constructor(code: A2AErrorCode, options: A2AErrorOptions = {}) {
    const { text, retryable } = A2A_ERRORS[code];
    super(
      options.detail === undefined ? text : `${text}: ${options.detail}`,
      options.cause === undefined ? undefined : { cause: options.cause },
    );
    this.code = code;
    this.taskId = options.taskId;
    this.violation = options.violation;
    this.generations = options.generations;
    this.retryable = options.retryable ?? retryable;
    this.challenge = options.challenge;
    this.retryAfterMs = options.retryAfterMs;
  }

  get row(): A2AErrorRow {
    return A2A_ERRORS[this.code];
  }

  /**
   * Converts anything thrown into an error for clients: an error that is not an A2AError becomes INTERNAL_ERROR, and its message stays
   * private.
   */
  static from(thrown: unknown): A2AError {
    return thrown instanceof A2AError ? thrown : new A2AError('INTERNAL_ERROR', { cause: thrown });
  }
}

/** INVALID_PARAMS for one member of the params. */
export function invalidMember(field: string, description: string): A2AError {
  return new A2AError('INVALID_PARAMS', { detail: `params.${field} ${description}`, violation: { field, description } });
}

type ErrorInfo = { '@type': string; reason: string; domain: string; metadata: Record<string, string> };
type BadRequest = { '@type': string; fieldViolations: FieldViolation[] };
const BAD_REQUEST_TYPE = 'type.googleapis.com/google.rpc.BadRequest';
const ERROR_INFO_TYPE = 'type.googleapis.com/google.rpc.ErrorInfo';
const ERROR_DOMAIN = 'a2a-protocol.org';

/**
 * `data` of A2A 1.0: an array of typed details ([A2A 1.0] 9.5). The server of the SDK for Python also has a BadRequest after the ErrorInfo,
 * and its client reads it over gRPC.
 */
export function errorDetails(error: A2AError): (ErrorInfo | BadRequest)[] {
  const { retryable, taskId, generations, violation } = error;
  const metadata = {
    retryable: String(retryable),
    ...(taskId !== undefined && { taskId }),
    ...(generations && {
      expectedGeneration: String(generations.expected),
      currentGeneration: String(generations.current),
    }),
  };
  const info = { '@type': ERROR_INFO_TYPE, reason: error.code, domain: ERROR_DOMAIN, metadata };
  return violation === undefined ? [info] : [info, { '@type': BAD_REQUEST_TYPE, fieldViolations: [violation] }];
}

/** `data` of A2A 0.3 and before: a plain object. */
type PlainErrorData = { taskId?: string; reason: string; retryable: boolean };

export function plainErrorData(error: A2AError): PlainErrorData {
  return { ...(error.taskId !== undefined && { taskId: error.taskId }), reason: error.code, retryable: error.retryable };
}
