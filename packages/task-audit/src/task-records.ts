import type { TaskAggregate } from '@hopline/events';
import { fromStart, IMPORTER, type Log, type StoredFacts, type StoredInput, startSeqOf } from '@hopline/log';

/** The part of the log that an audit reads. */
export type ReadableLog = { facts: Pick<Log['facts'], 'last' | 'read'>; inputs: Pick<Log['inputs'], 'read'> };

/** Everything stored of a task. */
export type TaskRecords = {
  taskId: string;
  /** The task when the read began. */
  aggregate: TaskAggregate;
  /** Copied and imported facts have no `storedAt`, because the log knows only when they were stored again. */
  facts: StoredFacts[];
  inputs: StoredInput[];
};

/** Bounds of one read of a task. */
export type ReadLimits = {
  /** Records of facts and inputs. */
  recordsMax: number;
  /** Bytes of the records of facts. Each also has the state of the task. */
  factBytesMax: number;
  /** Bytes of the inputs. */
  inputBytesMax: number;
};

const NO_LIMITS: ReadLimits = {
  recordsMax: Number.POSITIVE_INFINITY,
  factBytesMax: Number.POSITIVE_INFINITY,
  inputBytesMax: Number.POSITIVE_INFINITY,
};

/** The task exceeds a limit of the read. */
export class TaskTooLong extends Error {
  override readonly name = 'TaskTooLong';
}

/**
 * Reads a task once. Facts are read first, so that an input which is stored later counts as pending, not as lost. Resolves with undefined
 * for an unknown task; throws TaskTooLong.
 */
export async function readTaskRecords(
  log: ReadableLog,
  taskId: string,
  { recordsMax, factBytesMax, inputBytesMax }: ReadLimits = NO_LIMITS,
): Promise<TaskRecords | undefined> {
  const newest = await log.facts.last(taskId);
  if (newest === undefined) return undefined;
  const facts: StoredFacts[] = [];
  const inputs: StoredInput[] = [];
  let [factBytes, inputBytes] = [0, 0];
  const assertWithin = () => {
    if (facts.length + inputs.length > recordsMax) throw new TaskTooLong(`the task has more than ${recordsMax} records`);
    if (factBytes > factBytesMax) throw new TaskTooLong(`the facts of the task have more than ${factBytesMax} bytes`);
    if (inputBytes > inputBytesMax) throw new TaskTooLong(`the inputs of the task have more than ${inputBytesMax} bytes`);
  };
  // Reads a new task again even if its newest record is the whole task, because only this read returns the time at which the record was
  // stored.
  for await (const stored of fromStart(
    withoutLaterTimes(log.facts.read(taskId, startSeqOf(newest), newest.record.aggregate.owner)),
  )) {
    facts.push(stored);
    factBytes += stored.bytes ?? 0;
    assertWithin();
  }
  for await (const input of log.inputs.read(taskId)) {
    inputs.push(input);
    inputBytes += input.bytes;
    assertWithin();
  }
  return { taskId, aggregate: newest.record.aggregate, facts, inputs };
}

/** Copies and imported records were stored long after the task had passed them, so that time is not a cost of the task. */
async function* withoutLaterTimes(records: AsyncIterable<StoredFacts>): AsyncGenerator<StoredFacts, void> {
  for await (const { storedAt, relay, ...stored } of records) {
    const isStoredAgain = stored.record.copied !== undefined || relay === IMPORTER;
    yield isStoredAgain
      ? stored
      : { ...stored, ...(storedAt !== undefined && { storedAt }), ...(relay !== undefined && { relay }) };
  }
}

/** The two kinds of records of a task. */
export type RecordKind = 'inputs' | 'facts';

/**
 * The kinds of records whose beginning is missing: retention removes the oldest ones first, and an imported task has no inputs. Empty for a
 * complete task.
 */
export function partialOf({ facts, inputs }: Pick<TaskRecords, 'facts' | 'inputs'>): RecordKind[] {
  const [input] = inputs;
  const hasInputs = input?.record.from === 'client' && input.record.input.kind === 'message' && !input.record.input.continues;
  const hasFacts = facts[0]?.record.facts[0]?.kind === 'task.created';
  return [...(hasInputs ? [] : ['inputs' as const]), ...(hasFacts ? [] : ['facts' as const])];
}
