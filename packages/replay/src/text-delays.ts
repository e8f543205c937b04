import { type AgentRecord, isSameItem, ordinalsOf, type Producer, type TextInput } from '@hopline/events';
import type { StoredInput } from '@hopline/log';
import type { TimedFact } from './timed-replay.ts';

/** Epoch milliseconds at which the tokens of a run were stored, by ordinal. */
type Run = { ordinals: number[]; timesMs: number[]; left: number };

/** The cost of the chunks of some text, and the arrivals of each lane, which determine the lowest possible cost. */
export type TextDelays = { chunks: number; delayMs: number; lanes: readonly (readonly number[])[] };

/**
 * The delay of every token that was sent in a chunk, measured from the time at which the log stored the token. Tokens that are in no chunk
 * (rejected ones, and those of replaced attempts) are not counted.
 */
export function textDelays(inputs: readonly StoredInput[], made: readonly TimedFact[]): TextDelays {
  const runs = runsOf(inputs);
  let chunks = 0;
  let delayMs = 0;
  for (const { fact, atMs } of made) {
    if (fact.kind !== 'artifact.updated' || fact.chunk === undefined) continue;
    const run = runs.get(keyOf(fact.lane, fact.attempt));
    if (run === undefined) continue;
    // A chunk without tokens only marks the end of a stream, which occurs with any settings.
    if (fact.chunk.count > 0) chunks += 1;
    for (; (run.ordinals[run.left] ?? Number.POSITIVE_INFINITY) <= fact.chunk.n; run.left += 1)
      delayMs += atMs - run.timesMs[run.left]!;
  }
  return { chunks, delayMs, lanes: [...runs.values()].map(({ timesMs, left }) => timesMs.slice(0, left)) };
}

function runsOf(inputs: readonly StoredInput[]): Map<string, Run> {
  const runs = new Map<string, Run>();
  const items = new Map<string, Producer>();
  for (const { record, storedAt } of inputs) {
    if (!('inputs' in record) || !isOfFirstItem(items, record)) continue;
    let n = record.n;
    for (const input of record.inputs) {
      if (input.kind === 'text') addTokens(runs, { input, n, attempt: record.from.attempt, storedAt });
      n += ordinalsOf(input);
    }
  }
  return runs;
}

/** If one turn has two work items, only the first to write is folded. */
function isOfFirstItem(items: Map<string, Producer>, { from }: AgentRecord): boolean {
  const key = `${from.id}/${from.turn}`;
  const first = items.get(key) ?? from;
  items.set(key, first);
  return isSameItem(first, from);
}

type Tokens = { input: TextInput; n: number; attempt: number; storedAt: number };

function addTokens(runs: Map<string, Run>, { input: { lane, tokens }, n, attempt, storedAt }: Tokens): void {
  const key = keyOf(lane, attempt);
  const run = runs.get(key) ?? { ordinals: [], timesMs: [], left: 0 };
  runs.set(key, run);
  for (let ordinal = n; ordinal < n + tokens.length; ordinal += 1) {
    // A record that is stored again is folded once.
    if (ordinal <= (run.ordinals.at(-1) ?? 0)) continue;
    run.ordinals.push(ordinal);
    run.timesMs.push(storedAt);
  }
}

function keyOf(lane: string, attempt: number): string {
  return `${attempt}/${lane}`;
}
