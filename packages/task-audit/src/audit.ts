import { type Artifact, isTerminal } from '@hopline/a2a';
import { ordinalsOf } from '@hopline/events';
import { type Log, readTask, type StoredInput } from '@hopline/log';
import { Replay } from './replay.ts';
import { StoredOutcome } from './stored.ts';
import type { InputKind, Tallies } from './tally.ts';

export type Audit = {
  taskId: string;
  tallies: Tallies;
  /** Chunks that clients got; `merged` is how many tokens travelled in a chunk that another token had begun. */
  chunks: number;
  mergedTokens: number;
  /** In minus out minus merged minus dropped, per kind that can be counted in the facts: all zero, or something was lost or doubled. */
  unaccounted: { [kind in InputKind]?: number };
  /** Ids of artifacts whose text in the log is not what the inputs come to. */
  differing: string[];
  /** Retention has removed inputs: nothing can be said about them. */
  incomplete: boolean;
};

/** Holds what was said in a task against what stands in the log (S2-32). Reads, and changes nothing. Resolves with undefined for a task that is not there. */
export async function auditTask(log: Pick<Log, 'inputs' | 'facts'>, taskId: string): Promise<Audit | undefined> {
  const newest = await log.facts.last(taskId);
  if (newest === undefined) return undefined;
  const stored = new StoredOutcome();
  for await (const { record } of readTask(log.facts, newest)) stored.take(record);
  const replay = new Replay();
  const inputs: StoredInput[] = [];
  for await (const input of log.inputs.read(taskId)) inputs.push(input);
  const { foldedSeq: raw, state } = stored.newest!.aggregate;
  for (const input of inputs) {
    // After the end nothing is stored any more, so what comes later stands behind the newest record for ever.
    if (input.seq <= raw || isTerminal(state)) replay.take(input);
    else wait(replay.tallies, input);
  }
  return conclude(taskId, replay, stored);
}

function conclude(taskId: string, { tallies, view, hasHole }: Replay, stored: StoredOutcome): Audit {
  const found: [InputKind, number][] = [
    ['message', stored.messages],
    ['open', stored.opened],
    ['text', stored.tokens],
    ['call', stored.calls],
    ['ended', stored.ended],
    ['step', stored.steps],
  ];
  return {
    taskId,
    tallies,
    chunks: stored.chunks,
    mergedTokens: stored.tokens - stored.chunks,
    unaccounted: Object.fromEntries(found.map(([kind, count]) => [kind, tallies[kind].accepted - count])),
    differing: differing(view?.task.artifacts ?? [], stored.view?.task.artifacts ?? []),
    incomplete: hasHole || tallies.message.received === 0,
  };
}

function wait(tallies: Tallies, { record }: StoredInput): void {
  const counts =
    'input' in record ? [[record.input.kind, 1] as const] : record.inputs.map(input => [input.kind, ordinalsOf(input)] as const);
  for (const [kind, count] of counts) {
    tallies[kind].received += count;
    tallies[kind].pending += count;
  }
}

function differing(expected: readonly Artifact[], found: readonly Artifact[]): string[] {
  const texts = new Map(expected.map(artifact => [artifact.artifactId, contentOf(artifact)]));
  const others = found
    .filter(artifact => texts.get(artifact.artifactId) !== contentOf(artifact))
    .map(({ artifactId }) => artifactId);
  const missing = expected.map(({ artifactId }) => artifactId).filter(id => !found.some(({ artifactId }) => artifactId === id));
  return [...others, ...missing];
}

/** Text parts merged, whatever the chunks were; other parts as they are. */
function contentOf({ parts }: Artifact): string {
  let text = '';
  const others = parts.filter(part => {
    if (part.text === undefined) return true;
    text += part.text;
    return false;
  });
  return JSON.stringify([text, others]);
}

/** True when nothing was lost, doubled or changed on the way into the log. */
export function isBalanced({ unaccounted, differing: artifacts }: Audit): boolean {
  return artifacts.length === 0 && Object.values(unaccounted).every(count => count === 0);
}
