import type { A2AErrorCode } from '../errors.ts';

/** What A2A 0.3 calls its errors (section 8), and the one of 1.0 that an unknown version makes. The others are no errors of the protocol. */
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
 * The name by which the Python SDK knows an error of 0.3 where no number of JSON-RPC is read: the member `type` over HTTP+JSON, and what stands before `: ` in the message of gRPC. Without it
 * an unknown task is an unknown method to its 1.x releases.
 */
export function errorType(code: A2AErrorCode): string | undefined {
  return TYPES[code];
}
