import type { Fact, InputRecord, MessageInput } from '@hopline/events';

/** A generation that no task has, so the decider rejects a message with it. */
const NO_GENERATION = 0;

type Stored = { seq: number; record: InputRecord };

/**
 * The inputs of a task in which each condition is replaced by its outcome. For programs that decide again without the relay's chunks, and
 * therefore with other generations. `facts`: all facts of the task.
 */
export function withDecidedConditions<T extends Stored>(inputs: readonly T[], facts: Iterable<Fact>): readonly T[] {
  if (!inputs.some(({ record }) => conditionalMessage(record) !== undefined)) return inputs;
  const accepted = new Set<string>();
  for (const fact of facts) if (fact.kind === 'message.received') accepted.add(fact.message.messageId);
  // A client that was refused may send its message again with another condition, so the newest one was accepted.
  const newest = new Map<string, number>();
  for (const { seq, record } of inputs) {
    const input = conditionalMessage(record);
    if (input !== undefined && accepted.has(input.message.messageId)) newest.set(input.message.messageId, seq);
  }
  return inputs.map(stored => {
    const input = conditionalMessage(stored.record);
    if (input === undefined) return stored;
    const { ifGeneration: _condition, ...unconditional } = input;
    const isAccepted = newest.get(input.message.messageId) === stored.seq;
    const decided = isAccepted ? unconditional : { ...input, ifGeneration: NO_GENERATION };
    return { ...stored, record: { ...stored.record, input: decided } };
  });
}

function conditionalMessage(record: InputRecord): MessageInput | undefined {
  if (record.from !== 'client' || record.input.kind !== 'message') return undefined;
  return record.input.ifGeneration === undefined ? undefined : record.input;
}
