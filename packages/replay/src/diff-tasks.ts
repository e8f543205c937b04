import { type Part, stateWord } from '@hopline/a2a';
import { type Fact, isVisible } from '@hopline/events';
import { SUPERVISOR } from '@hopline/task';
import { TaskViewBuilder } from '@hopline/task/project';
import type { StoredTask } from './stored-task.ts';

/** A part of two tasks, side by side. A member is undefined if its task does not have the part. */
export type TaskPart = {
  /** Name of the part, such as `states`, `calls`, `message 2` or `artifact streaming_result`. */
  name: string;
  a: string | undefined;
  b: string | undefined;
};

/** A part that differs. */
export type TaskDifference = TaskPart;

/** Numbers of a task, which differ between any two runs. */
export type TaskMeasure = {
  frames: number;
  chunks: number;
  tokens: number;
  characters: number;
  /** Milliseconds from the message to the first text of an agent, and to the last event. */
  firstTextMs: number | undefined;
  totalMs: number;
  /** The agent and the milliseconds of each call. */
  calls: { agent: string; ms: number | undefined }[];
};

export type TaskDiff = {
  same: boolean;
  /** All parts, including those that differ. */
  parts: TaskPart[];
  differences: TaskDifference[];
  a: TaskMeasure;
  b: TaskMeasure;
};

/**
 * Compares what the clients of two tasks received: states, messages, artifacts by name and order, and calls with their outcome. Ids, times
 * and the boundaries of chunks differ in every run, so they are ignored.
 */
export function diffTasks(a: Pick<StoredTask, 'facts'>, b: Pick<StoredTask, 'facts'>): TaskDiff {
  const [one, other] = [contentOf(a), contentOf(b)];
  const names = new Set([...one.parts.keys(), ...other.parts.keys()]);
  const parts = [...names].map(name => ({ name, a: one.parts.get(name), b: other.parts.get(name) }));
  for (const name of new Set([...one.artifacts.keys(), ...other.artifacts.keys()])) {
    const pairs = pairsOf(one.artifacts.get(name) ?? [], other.artifacts.get(name) ?? []);
    for (const [index, pair] of pairs.entries())
      parts.push({ name: `artifact ${name}${pairs.length > 1 ? ` ${index + 1}` : ''}`, ...pair });
  }
  const differences = parts.filter(part => part.a !== part.b);
  return { same: differences.length === 0, parts, differences, a: one.measure, b: other.measure };
}

type TaskContent = {
  /** All parts except artifacts, by name. */
  parts: Map<string, string>;
  /** The texts of the artifacts of each name, sorted: concurrent agents may begin in any order. */
  artifacts: Map<string, string[]>;
  measure: TaskMeasure;
};

/** Pairs equal texts wherever they occur, and pairs the others in order. */
function pairsOf(a: readonly string[], b: readonly string[]): Omit<TaskPart, 'name'>[] {
  const same: string[] = [];
  const onlyInA: string[] = [];
  const onlyInB = [...b];
  for (const text of a) {
    const found = onlyInB.indexOf(text);
    if (found < 0) onlyInA.push(text);
    else same.push(...onlyInB.splice(found, 1));
  }
  const length = Math.max(onlyInA.length, onlyInB.length);
  const others = Array.from({ length }, (_, index) => ({ a: onlyInA[index], b: onlyInB[index] }));
  return [...same.map(text => ({ a: text, b: text })), ...others];
}

function contentOf({ facts: records }: Pick<StoredTask, 'facts'>): TaskContent {
  const facts = records.flatMap(({ record }) => record.facts);
  const builder = new TaskViewBuilder();
  const states: string[] = [];
  const calls: string[] = [];
  for (const fact of facts) {
    builder.addFact(fact);
    if (fact.kind === 'status.changed') states.push(stateWord(fact.event.statusUpdate.status.state));
    if (fact.kind === 'call.ended') calls.push(`${fact.agent} ${stateWord(fact.state)}${fact.reason ? `: ${fact.reason}` : ''}`);
  }
  const parts = new Map([['states', withoutRepeats(states).join(', ')]]);
  parts.set('calls', calls.toSorted().join('\n'));
  const { history = [], artifacts = [], status } = builder.view?.task ?? { status: undefined };
  const messages = [...history, ...(status?.message === undefined ? [] : [status.message])];
  for (const [index, message] of messages.entries())
    parts.set(`message ${index + 1}`, `${message.role === 'ROLE_USER' ? 'user' : 'agent'}: ${comparedText(message.parts)}`);
  const named = Map.groupBy(artifacts, ({ name }) => name ?? 'artifact');
  const texts = [...named].map(([name, own]) => [name, own.map(artifact => comparedText(artifact.parts)).toSorted()] as const);
  return { parts, artifacts: new Map(texts), measure: measureOf(facts) };
}

/** Removes repeated states, because a message of a working task repeats its state. */
function withoutRepeats(states: readonly string[]): string[] {
  return states.filter((state, index) => state !== states[index - 1]);
}

function comparedText(parts: readonly Part[]): string {
  return parts.map(part => part.text ?? JSON.stringify(part)).join('');
}

function measureOf(facts: readonly Fact[]): TaskMeasure {
  const startedAt = facts[0]?.at ?? 0;
  const chunks = facts.flatMap(fact => (fact.kind === 'artifact.updated' && fact.chunk !== undefined ? [fact] : []));
  const calls = new Map<string, { agent: string; at: number; ms: number | undefined }>();
  for (const fact of facts) {
    if (fact.kind === 'call.started') calls.set(fact.call, { agent: fact.agent, at: fact.at, ms: undefined });
    const call = fact.kind === 'call.ended' ? calls.get(fact.call) : undefined;
    if (call !== undefined) call.ms = fact.at - call.at;
  }
  const firstText = chunks.find(({ producer }) => producer !== SUPERVISOR);
  return {
    frames: facts.filter(isVisible).length,
    chunks: chunks.length,
    tokens: chunks.reduce((sum, { chunk }) => sum + chunk!.count, 0),
    characters: chunks.reduce((sum, { event }) => sum + comparedText(event.artifactUpdate.artifact.parts).length, 0),
    firstTextMs: firstText && firstText.at - startedAt,
    totalMs: (facts.at(-1)?.at ?? startedAt) - startedAt,
    calls: [...calls.values()].map(({ agent, ms }) => ({ agent, ms })),
  };
}
