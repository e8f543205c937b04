import { A2AError } from '@hopline/a2a';
import { LogUnavailable, RecordTooLarge, TenantFull } from '@hopline/log';

/** Maps an error of the log to what a client may see. Other errors stay unchanged and become INTERNAL_ERROR in the binding. */
export function fromLog(thrown: unknown, taskId?: string): unknown {
  const options = { cause: thrown, ...(taskId !== undefined && { taskId }) };
  if (thrown instanceof TenantFull)
    return new A2AError('QUOTA_EXCEEDED', { ...options, detail: 'too much work of this caller or its tenant is waiting' });
  if (thrown instanceof LogUnavailable) return new A2AError('UNAVAILABLE', options);
  if (thrown instanceof RecordTooLarge)
    return new A2AError('REQUEST_TOO_LARGE', { ...options, detail: 'the message exceeds the largest record of the log' });
  return thrown;
}
