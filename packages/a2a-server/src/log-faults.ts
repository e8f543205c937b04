import { A2AError } from '@hopline/a2a';
import { LogUnavailable, RecordTooLarge } from '@hopline/log';

/** What the log throws, as a client may see it. Anything else stays what it is, and becomes INTERNAL_ERROR at the door. */
export function fromLog(thrown: unknown, taskId?: string): unknown {
  const options = { cause: thrown, ...(taskId !== undefined && { taskId }) };
  if (thrown instanceof LogUnavailable) return new A2AError('UNAVAILABLE', options);
  if (thrown instanceof RecordTooLarge)
    return new A2AError('REQUEST_TOO_LARGE', { ...options, detail: 'the message is larger than the log takes' });
  return thrown;
}
