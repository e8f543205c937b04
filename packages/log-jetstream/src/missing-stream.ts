import { JetStreamApiError } from '@nats-io/jetstream';

const STREAM_NOT_FOUND = 10059;
/** The cause in errors of requests and writes to a missing stream. */
export const STREAM_MISSING = 'the stream does not exist';

/** Whether JetStream itself has answered that the stream does not exist. Without a leader or a quorum it gives another answer, or none. */
export function isStreamNotFound(error: unknown): boolean {
  return error instanceof JetStreamApiError && error.code === STREAM_NOT_FOUND;
}
