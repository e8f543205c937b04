import { type Artifact, isTerminal } from '@hopline/a2a';
import { type Fact, type FactRecord, type InputKind, ordinalsOf } from '@hopline/events';
import type { StoredInput } from '@hopline/log';
import { TaskViewBuilder, withDecidedConditions } from '@hopline/task';
import { Replay } from './replay.ts';
import type { Tallies } from './tally.ts';
import { partialOf, type TaskRecords } from './task-records.ts';

export type Audit = {
  taskId: string;
  tallies: Tallies;
  /** `chunks`: stored text chunks. `merged`: the tokens in them, not counting the first one of each chunk. */
  chunks: number;
  mergedTokens: number;
  /**
   * Accepted inputs minus stored facts, for each kind of input whose facts can be counted. Any value but 0 means lost or duplicated inputs.
   */
  unaccounted: { [kind in InputKind]?: number };
  /** Ids of artifacts whose stored content differs from that of the replayed inputs. */
  differing: string[];
  /** Retention has removed inputs or facts, so the other members prove nothing. */
  incomplete: boolean;
};

/** Compares the inputs of a task with its stored facts (S2-32). */
export function auditOf(records: TaskRecords): Audit {
  const { taskId, facts, inputs } = records;
  const stored = new StoredOutcome();
  for (const { record } of facts) stored.add(record);
  const replay = new Replay();
  const { foldedSeq, state } = stored.newest!.aggregate;
  const decided = withDecidedConditions(
    inputs,
    facts.flatMap(({ record }) => record.facts),
  );
  for (const input of decided) {
    // A finished task stores no more records, so later inputs are above foldedSeq without being pending.
    if (input.seq <= foldedSeq || isTerminal(state)) replay.add(input);
    else countPending(replay.tallies, input);
  }
  return { ...compare(taskId, replay, stored), incomplete: replay.hasGap || partialOf(records).length > 0 };
}

/** True when no input was lost, stored twice or changed on its way into the log. */
export function isBalanced({ unaccounted, differing }: Audit): boolean {
  return differing.length === 0 && Object.values(unaccounted).every(count => count === 0);
}

function compare(taskId: string, { tallies, task }: Replay, stored: StoredOutcome): Omit<Audit, 'incomplete'> {
  const counts: [InputKind, number][] = [
    ['message', stored.messages],
    ['open', stored.lanesOpened],
    ['text', stored.tokens],
    ['call', stored.callsStarted],
    ['ended', stored.callsEnded],
    ['step', stored.steps],
    ['remote-run', stored.remoteRuns],
    ['agent-step', stored.agentSteps],
  ];
  return {
    taskId,
    tallies,
    chunks: stored.chunks,
    mergedTokens: stored.tokens - stored.chunks,
    unaccounted: Object.fromEntries(counts.map(([kind, count]) => [kind, tallies[kind].accepted - count])),
    differing: differingArtifacts(task.view?.task.artifacts ?? [], stored.task.view?.task.artifacts ?? []),
  };
}

function countPending(tallies: Tallies, { record }: StoredInput): void {
  const counts =
    'input' in record ? [[record.input.kind, 1] as const] : record.inputs.map(input => [input.kind, ordinalsOf(input)] as const);
  for (const [kind, count] of counts) {
    tallies[kind].received += count;
    tallies[kind].pending += count;
  }
}

function differingArtifacts(expected: readonly Artifact[], stored: readonly Artifact[]): string[] {
  const contents = new Map(expected.map(artifact => [artifact.artifactId, contentOf(artifact)]));
  const changed = stored
    .filter(artifact => contents.get(artifact.artifactId) !== contentOf(artifact))
    .map(({ artifactId }) => artifactId);
  const storedIds = new Set(stored.map(({ artifactId }) => artifactId));
  const missing = expected.map(({ artifactId }) => artifactId).filter(id => !storedIds.has(id));
  return [...changed, ...missing];
}

/** The joined text, regardless of its chunks, and all other parts. */
function contentOf({ parts }: Artifact): string {
  let text = '';
  const others = parts.filter(part => {
    if (part.text === undefined) return true;
    text += part.text;
    return false;
  });
  return JSON.stringify([text, others]);
}

/** The stored facts of a task, counted by the kind of input that they came from. */
class StoredOutcome {
  readonly task = new TaskViewBuilder();
  newest: FactRecord | undefined;
  /** Chunks made by the coalescer, and the tokens in them. */
  chunks = 0;
  tokens = 0;
  messages = 0;
  lanesOpened = 0;
  callsStarted = 0;
  callsEnded = 0;
  steps = 0;
  remoteRuns = 0;
  agentSteps = 0;

  add(record: FactRecord): void {
    this.newest = record;
    this.task.add(record, fact => this.#count(fact));
  }

  #count(fact: Fact): void {
    if (fact.kind === 'task.created' || fact.kind === 'message.received') this.messages += 1;
    if (fact.kind === 'lane.opened') this.lanesOpened += 1;
    if (fact.kind === 'call.started') this.callsStarted += 1;
    if (fact.kind === 'call.ended') this.callsEnded += 1;
    if (fact.kind === 'step.recorded') this.steps += 1;
    if (fact.kind === 'remote-run.started') this.remoteRuns += 1;
    if (fact.kind === 'agent-step.recorded') this.agentSteps += 1;
    if (fact.kind !== 'artifact.updated' || fact.chunk === undefined) return;
    this.chunks += 1;
    this.tokens += fact.chunk.count;
  }
}
