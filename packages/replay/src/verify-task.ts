import { type Artifact, isTerminal, type Message, type TaskState } from '@hopline/a2a';
import { DEFAULT_SETTINGS } from '@hopline/coalesce';
import type { Fact } from '@hopline/events';
import { NOT_ENCODABLE, TASK_TOO_LARGE, TOO_LARGE } from '@hopline/fold';
import { INPUT_UNREADABLE, TaskViewBuilder, WORKER_GONE, withDecidedConditions } from '@hopline/task';
import type { Divergence } from './recorded-decisions.ts';
import { ReplayFailed, recordedReplay } from './recorded-replay.ts';
import { isSameFact } from './same-fact.ts';
import type { StoredTask, UnreadableTask } from './stored-task.ts';
import { timedReplay } from './timed-replay.ts';

/**
 * Levels of a difference, from the least to the most severe. `byte`: members of facts, or their order. `semantic`: the text or parts of an
 * artifact, messages, calls. `outcome`: the state of the task.
 */
export type DifferenceLevel = 'byte' | 'semantic' | 'outcome';

/**
 * `same`: today's rules decide every stored fact from the inputs. `failed`: they threw. `unreadable`: the task or its file cannot be read.
 * `expired`: retention has removed inputs or facts, so that nothing can be proved.
 */
export type TaskVerdict =
  | { taskId: string; verdict: 'same'; facts: number }
  | ({ taskId: string; verdict: 'differs'; level: DifferenceLevel; what?: string } & Partial<Divergence>)
  | { taskId: string; verdict: 'failed'; inputSeq?: number; reason: string }
  | { taskId: string; verdict: 'unreadable' | 'expired'; reason: string };

/** Replays a task with the current rules, relay fold and coalescer, and compares the result with the stored task. */
export function verifyTask(task: StoredTask | UnreadableTask): TaskVerdict {
  const { taskId } = task;
  if ('unreadable' in task) return { taskId, verdict: 'unreadable', reason: task.unreadable };
  if (task.lacks === 'inputs' || task.lacks === 'redacted content')
    return {
      taskId,
      verdict: 'unreadable',
      reason: `the file lacks ${task.lacks}: export the task with --nats, and without --facts and --redact`,
    };
  const expired = whyExpired(task);
  if (expired !== undefined) return { taskId, verdict: 'expired', reason: expired };
  try {
    const divergence = recordedReplay(task);
    const timed = hasFreeOutcome(task) ? undefined : outcomeOf(timedFacts(task));
    const difference = timed && differenceOf(outcomeOf(factsOf(task)), timed);
    if (divergence !== undefined) return { taskId, verdict: 'differs', level: difference?.level ?? 'byte', ...divergence };
    if (difference !== undefined) return { taskId, verdict: 'differs', ...difference };
    return { taskId, verdict: 'same', facts: factsOf(task).length };
  } catch (error) {
    const inputSeq = error instanceof ReplayFailed ? { inputSeq: error.inputSeq } : {};
    return { taskId, verdict: 'failed', ...inputSeq, reason: error instanceof Error ? error.message : String(error) };
  }
}

/** The facts with today's default settings, which cut other chunks, so that generations differ from those that answers name. */
function timedFacts(task: StoredTask): Fact[] {
  const { taskId } = task;
  const inputs = withDecidedConditions(task.inputs, factsOf(task));
  return timedReplay({ taskId, inputs }, { coalesce: DEFAULT_SETTINGS }).map(({ fact }) => fact);
}

function factsOf({ facts }: StoredTask): Fact[] {
  return facts.flatMap(({ record }) => record.facts);
}

/** Retention removes the oldest records first. So if the message that created the task is still there, all inputs are. */
function whyExpired(task: StoredTask): string | undefined {
  if (factsOf(task)[0]?.kind !== 'task.created') return 'the log lacks the first facts of the task: retention has removed them';
  const first = task.inputs.find(({ record }) => record.from === 'client' && record.input.kind === 'message');
  const created = factsOf(task)[0];
  const messageId = created?.kind === 'task.created' ? created.event.task.history?.[0]?.messageId : undefined;
  const isFirst =
    first !== undefined &&
    first.record.from === 'client' &&
    first.record.input.kind === 'message' &&
    first.record.input.message.messageId === messageId;
  return isFirst ? undefined : 'the log lacks the first inputs of the task: retention has removed them, or it was imported';
}

/** Failure reasons that depend on the relay's clock or on the limits of its log. A replay with another clock may not reach them. */
const FREE_REASONS: ReadonlySet<unknown> = new Set([TOO_LARGE, TASK_TOO_LARGE, NOT_ENCODABLE, INPUT_UNREADABLE, WORKER_GONE]);

function hasFreeOutcome(task: StoredTask): boolean {
  const last = factsOf(task).findLast(fact => fact.kind === 'status.changed');
  const reason = last?.kind === 'status.changed' ? last.event.statusUpdate.metadata?.reason : undefined;
  // The inputs of an open task may be ahead of its facts; the recorded replay compares them with every stored fact.
  return !isTerminal(task.aggregate.state) || FREE_REASONS.has(reason);
}

/** The state and text that a client has at the end, however the text was divided into chunks. */
type Outcome = { state: TaskState | undefined; parts: Record<string, string> };

function outcomeOf(facts: readonly Fact[]): Outcome {
  const builder = new TaskViewBuilder();
  const calls: string[] = [];
  for (const fact of facts) {
    builder.addFact(fact);
    if (fact.kind === 'call.started') calls.push(`${fact.call} ${fact.agent}`);
    if (fact.kind === 'call.ended') calls.push(`${fact.call} ${fact.state}`);
  }
  const { view } = builder;
  const parts: Record<string, string> = { 'the messages': JSON.stringify((view?.task.history ?? []).map(contentOf)) };
  parts['the calls'] = JSON.stringify(calls);
  for (const artifact of view?.task.artifacts ?? [])
    parts[`artifact ${artifact.name ?? ''} ${artifact.artifactId}`] = joined(artifact);
  return { state: view?.task.status.state, parts };
}

function contentOf({ messageId, role, parts }: Message): unknown {
  return { messageId, role, parts };
}

function joined({ artifactId, parts }: Artifact): string {
  const text = parts.map(part => part.text ?? '').join('');
  return JSON.stringify([artifactId, text, parts.filter(part => part.text === undefined)]);
}

function differenceOf(stored: Outcome, replayed: Outcome): { level: DifferenceLevel; what: string } | undefined {
  if (stored.state !== replayed.state)
    return { level: 'outcome', what: `the state is ${stored.state}, replayed ${replayed.state}` };
  const names = new Set([...Object.keys(stored.parts), ...Object.keys(replayed.parts)]);
  const different = [...names].find(name => !isSameFact(stored.parts[name], replayed.parts[name]));
  return different === undefined
    ? undefined
    : { level: 'semantic', what: `${different} differ${different.startsWith('the') ? '' : 's'}` };
}
