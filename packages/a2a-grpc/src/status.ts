import { fromJson, toBinary } from '@bufbuild/protobuf';
import { status } from '@grpc/grpc-js';
import { type A2AError, errorDetails } from '@hopline/a2a';
import { retryAfterMs } from '@hopline/a2a-server';
import { messageType, registry } from './messages.ts';

const STATUS = messageType('google.rpc.Status');
const RETRY_INFO = 'type.googleapis.com/google.rpc.RetryInfo';

/** An error as a gRPC status ([A2A 1.0] 10.6). */
export type GrpcStatus = {
  code: status;
  /** One sentence, for `grpc-message`. */
  message: string;
  /**
   * google.rpc.Status, for `grpc-status-details-bin`: the same status with the details of HTTP, and a google.rpc.RetryInfo where HTTP
   * has Retry-After.
   */
  details: Uint8Array;
};

/** `retryMs`: after how many milliseconds the client may retry, for an error that suggests it. */
export function grpcStatus(error: A2AError, retryMs: number | undefined): GrpcStatus {
  const { message } = error;
  const code = status[error.row.grpc as keyof typeof status];
  const delayMs = retryAfterMs(error) === undefined ? undefined : retryMs;
  const retry = delayMs === undefined ? [] : [{ '@type': RETRY_INFO, retryDelay: `${delayMs / 1000}s` }];
  const details = [...errorDetails(error), ...retry];
  return { code, message, details: toBinary(STATUS, fromJson(STATUS, { code, message, details }, { registry })) };
}
