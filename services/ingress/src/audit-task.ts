import { A2AError } from '@hopline/a2a';
import type { AuditTask } from '@hopline/a2a-http';
import type { Log } from '@hopline/log';
import { reportTask, TaskTooLong } from '@hopline/task-audit';

/** Records of facts and inputs that one audit reads: about 30,000 tokens that were sent one by one. */
export const AUDIT_RECORDS_MAX = 20_000;
/** Bytes of inputs that one audit reads. */
export const AUDIT_INPUT_BYTES_MAX = 32 * 1024 * 1024;

const LIMITS = { recordsMax: AUDIT_RECORDS_MAX, inputBytesMax: AUDIT_INPUT_BYTES_MAX };

/** Audits a task within limits. A longer one can be audited with access to NATS (`hopline trace`). */
export function taskAudit(log: Log): AuditTask {
  return taskId =>
    reportTask(log, taskId, LIMITS).catch(thrown => {
      if (!(thrown instanceof TaskTooLong)) throw thrown;
      throw new A2AError('UNSUPPORTED_OPERATION', { taskId, detail: `${thrown.message}, too many to audit` });
    });
}
