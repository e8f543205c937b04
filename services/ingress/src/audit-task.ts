import { A2AError } from '@hopline/a2a';
import type { TaskAudits } from '@hopline/a2a-http';
import type { Log } from '@hopline/log';
import { explainEvent, reportTask, TaskTooLong } from '@hopline/task-audit';

/** Records of facts and inputs that one audit may read: enough for about 30,000 tokens that were sent one by one. */
export const AUDIT_RECORDS_MAX = 20_000;
/** Bytes of records of facts that one audit may read: the same number of tokens. */
export const AUDIT_FACT_BYTES_MAX = 32 * 1024 * 1024;
/** Bytes of inputs that one audit may read. */
export const AUDIT_INPUT_BYTES_MAX = 32 * 1024 * 1024;

const LIMITS = { recordsMax: AUDIT_RECORDS_MAX, factBytesMax: AUDIT_FACT_BYTES_MAX, inputBytesMax: AUDIT_INPUT_BYTES_MAX };

/** Audits a task within limits. A longer one can be audited with access to NATS (`hopline trace --nats`). */
export function taskAudits(log: Log): TaskAudits {
  const within = <T>(taskId: string, reading: Promise<T>) =>
    reading.catch(thrown => {
      if (!(thrown instanceof TaskTooLong)) throw thrown;
      throw new A2AError('UNSUPPORTED_OPERATION', { taskId, detail: `${thrown.message}, too many to audit` });
    });
  return {
    report: (taskId, countRead) => within(taskId, reportTask(counted(log, countRead), taskId, LIMITS)),
    explain: (taskId, cursor, countRead) => within(taskId, explainEvent(counted(log, countRead), taskId, cursor, LIMITS)),
  };
}

type ReadableLog = Parameters<typeof reportTask>[0];

/** A log whose records are counted as they are read. */
function counted({ facts, inputs }: Log, countRead: (bytes: number) => void): ReadableLog {
  async function* each<T extends { bytes?: number }>(records: AsyncIterable<T>): AsyncGenerator<T, void> {
    for await (const record of records) {
      countRead(record.bytes ?? 0);
      yield record;
    }
  }
  return {
    facts: { last: (...args) => facts.last(...args), read: (...args) => each(facts.read(...args)) },
    inputs: { read: (...args) => each(inputs.read(...args)) },
  };
}
