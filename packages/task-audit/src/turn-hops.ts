import type { Fact } from '@hopline/events';
import type { StoredFacts, StoredInput } from '@hopline/log';
import { ROOT_AGENT, SUPERVISOR } from '@hopline/task';
import type { ProducerActivity } from './producers.ts';

/** A hop of a turn, as docs/reference/hops.md defines it. Times are milliseconds after the task's first input. */
export type TurnHop = {
  hop: 'accept' | 'work_queue' | 'plan' | 'agent_queue' | 'agent' | 'tool';
  turn: number;
  fromMs: number;
  toMs: number;
  /** The value in the metric: for `agent` without the time in tools, and never negative. */
  ms: number;
  agent?: string;
  /** Id of the producer; absent for `accept`. */
  producer?: string;
  /** Name of the tool. */
  name?: string;
};

/** Hops after the log, which no record contains. The metrics (`docs/reference/metrics.md`) have them for all tasks together. */
export const NOT_RECORDED = ['splice', 'socket', 'webhook'] as const;

/** The hops of all turns that have ended. As in the metrics, a redelivered work item has no hop. */
export function turnHopsOf(
  inputs: readonly StoredInput[],
  facts: readonly StoredFacts[],
  producers: readonly ProducerActivity[],
  startMs: number,
): TurnHop[] {
  const first = producers.filter(({ attempt }) => attempt === 1);
  const accepted = acceptedMessages(inputs, facts).flatMap(message => acceptHop(message, first, startMs));
  const worked = first.flatMap(producer => [
    ...queueHops(producer, first, facts),
    ...agentHop(producer),
    ...producer.tools.map(({ name, fromMs, ms }) => hop('tool', producer, fromMs, fromMs + ms, { name })),
  ]);
  const later = producers
    .filter(({ attempt }) => attempt > 1)
    .flatMap(producer => producer.tools.map(({ name, fromMs, ms }) => hop('tool', producer, fromMs, fromMs + ms, { name })));
  return [...accepted, ...worked, ...later].toSorted((a, b) => a.fromMs - b.fromMs || a.toMs - b.toMs);
}

type Accepted = { turn: number; receivedAt: number; storedAt: number };

/** The messages that began a turn: when the server received them, and when their facts were stored. */
function acceptedMessages(inputs: readonly StoredInput[], facts: readonly StoredFacts[]): Accepted[] {
  const received = new Map<string, number>();
  for (const { record } of inputs) {
    if (record.from !== 'client' || record.input.kind !== 'message') continue;
    const { messageId } = record.input.message;
    if (!received.has(messageId)) received.set(messageId, record.at);
  }
  return facts.flatMap(({ record, storedAt }) =>
    record.facts.flatMap(fact => {
      const begun = turnOf(fact);
      const receivedAt = begun && received.get(begun.messageId);
      return receivedAt === undefined ? [] : [{ turn: begun!.turn, receivedAt, storedAt: storedAt ?? fact.at }];
    }),
  );
}

function turnOf(fact: Fact): { turn: number; messageId: string } | undefined {
  if (fact.kind === 'message.received') return { turn: fact.turn, messageId: fact.message.messageId };
  const message = fact.kind === 'task.created' ? fact.event.task.history?.at(-1) : undefined;
  return message && { turn: 1, messageId: message.messageId };
}

/**
 * The hop ends when the work item is queued. If no worker has taken it, the hop ends when the fact is stored, which is a millisecond
 * earlier.
 */
function acceptHop({ turn, receivedAt, storedAt }: Accepted, producers: readonly ProducerActivity[], startMs: number): TurnHop[] {
  const root = producers.find(producer => producer.turn === turn && isRoot(producer));
  const fromMs = receivedAt - startMs;
  const toMs = root?.queuedMs ?? storedAt - startMs;
  return [{ hop: 'accept', turn, fromMs, toMs, ms: Math.max(0, toMs - fromMs) }];
}

const isRoot = ({ id }: Pick<ProducerActivity, 'id'>) => id === SUPERVISOR || id === ROOT_AGENT;

function queueHops(producer: ProducerActivity, all: readonly ProducerActivity[], facts: readonly StoredFacts[]): TurnHop[] {
  const { queuedMs, takenMs, turn, id } = producer;
  if (queuedMs === undefined || takenMs === undefined) return [];
  if (isRoot(producer)) return [hop('work_queue', producer, queuedMs, takenMs)];
  const root = all.find(one => one.turn === turn && one.id === SUPERVISOR);
  const isPlanned = root?.takenMs !== undefined && !followsAnotherCall(facts, id);
  return [
    ...(isPlanned ? [hop('plan', producer, root.takenMs!, queuedMs)] : []),
    hop('agent_queue', producer, queuedMs, takenMs),
  ];
}

/** Whether a call began after another call of its turn had ended. In that case it waited for that agent, not for the plan. */
function followsAnotherCall(facts: readonly StoredFacts[], call: string): boolean {
  let hasEnded = false;
  for (const { record } of facts)
    for (const fact of record.facts) {
      if (fact.kind === 'message.received') hasEnded = false;
      if (fact.kind === 'call.ended') hasEnded = true;
      if (fact.kind === 'call.started' && fact.call === call) return hasEnded;
    }
  return false;
}

/** The hop from the work item to the first text, or to the end of a turn without text. Excludes the time in tools. */
function agentHop(producer: ProducerActivity): TurnHop[] {
  const { id, takenMs, firstTokenMs, endMs, tools } = producer;
  const toMs = firstTokenMs ?? endMs;
  if (id === SUPERVISOR || takenMs === undefined || toMs === undefined) return [];
  const whole = hop('agent', producer, takenMs, toMs);
  return [{ ...whole, ms: Math.max(0, whole.ms - coveredMs(tools, takenMs, toMs)) }];
}

/** Milliseconds from `fromMs` to `toMs` with at least one tool call. */
function coveredMs(tools: ProducerActivity['tools'], fromMs: number, toMs: number): number {
  let covered = 0;
  let upToMs = fromMs;
  for (const tool of tools.toSorted((a, b) => a.fromMs - b.fromMs)) {
    const begins = Math.max(upToMs, tool.fromMs);
    const ends = Math.min(toMs, tool.fromMs + tool.ms);
    covered += Math.max(0, ends - begins);
    upToMs = Math.max(upToMs, ends);
  }
  return covered;
}

function hop(
  name: TurnHop['hop'],
  { id, agent, turn }: ProducerActivity,
  fromMs: number,
  toMs: number,
  more: { name?: string } = {},
): TurnHop {
  return { hop: name, turn, fromMs, toMs, ms: Math.max(0, toMs - fromMs), agent, producer: id, ...more };
}
