import type { A2AErrorCode } from '../errors.ts';

/** Error names of A2A 0.3 (section 8), and the name of 1.0 for an unknown version. Other codes are not errors of the protocol. */
const TYPES: Readonly<Partial<Record<A2AErrorCode, string>>> = {
  PARSE_ERROR: 'JSONParseError',
  INVALID_REQUEST: 'InvalidRequestError',
  METHOD_NOT_FOUND: 'MethodNotFoundError',
  INVALID_PARAMS: 'InvalidParamsError',
  INTERNAL_ERROR: 'InternalError',
  TASK_NOT_FOUND: 'TaskNotFoundError',
  TASK_NOT_CANCELABLE: 'TaskNotCancelableError',
  PUSH_NOTIFICATION_NOT_SUPPORTED: 'PushNotificationNotSupportedError',
  UNSUPPORTED_OPERATION: 'UnsupportedOperationError',
  CONTENT_TYPE_NOT_SUPPORTED: 'ContentTypeNotSupportedError',
  INVALID_AGENT_RESPONSE: 'InvalidAgentResponseError',
  EXTENDED_AGENT_CARD_NOT_CONFIGURED: 'AuthenticatedExtendedCardNotConfiguredError',
  VERSION_NOT_SUPPORTED: 'VersionNotSupportedError',
};

/**
 * The name by which the Python SDK recognizes an error of 0.3 where there is no JSON-RPC number: the member `type` over
 * HTTP+JSON, and the text before `: ` in a gRPC message. Without it, its 1.x releases report an unknown task as an unknown
 * method.
 */
export function errorType(code: A2AErrorCode): string | undefined {
  return TYPES[code];
}
