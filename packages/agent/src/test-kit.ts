import { randomUUID } from 'node:crypto';
import { Fold, type FoldedArtifact, type Message } from '@hopline/a2a';
import { type AgentInput, isVisible, type Producer, type TaskAggregate, type Work } from '@hopline/events';
import { kindOfArtifact } from '@hopline/profiles';
import { type Command, decide, evolve, ROOT_AGENT } from '@hopline/task';
import type { Agent, AgentEvent, Turn } from './agent.ts';
import type { InputSink } from './lane-writer.ts';
import { BoundExceeded } from './limits.ts';
import { NO_PRIOR_ATTEMPTS } from './prior-attempts.ts';
import { AbortableEvents, isEnd } from './pump-events.ts';
import { DONE, endOf, failed, failureOf, type TurnEnd } from './turn-end.ts';
import { TurnInputs } from './turn-inputs.ts';
import { turnLog } from './turn-log.ts';

/** Members of a turn other than its message. */
export type PlayOptions = Partial<Pick<Turn, 'attempt' | 'history' | 'metadata' | 'resume' | 'signal'>>;

/** Result of `playTurn`. */
export type PlayedTurn = {
  /** The answer as a client folds it. */
  readonly text: string;
  /** The agent's own artifacts in order of opening, without tool calls. */
  readonly artifacts: readonly FoldedArtifact[];
  /** Progress lines, in order. */
  readonly notices: readonly string[];
  readonly end: TurnEnd;
  /** Every event as the agent sent it. */
  readonly events: readonly AgentEvent[];
  /** Lines that the turn logged. */
  readonly log: readonly string[];
};

const TASK = 'task-1';
const CONTEXT = 'context-1';
/** JSON bytes of one event that is not text: half the largest record of a cluster with the default settings. */
const EVENT_BYTES_MAX = 512 * 1024;

/**
 * Plays one turn without a cluster: the agent's events go through the same rules as in a cluster, and the result is what a client folds
 * from them. If the agent throws, the turn fails and `cause` is the error.
 */
export async function playTurn(
  agent: Agent,
  input: string | Message,
  options: PlayOptions = {},
): Promise<PlayedTurn & { cause?: unknown }> {
  const message: Message =
    typeof input === 'string' ? { messageId: randomUUID(), role: 'ROLE_USER', parts: [{ text: input }] } : input;
  const { attempt = 1, history = [], metadata = {}, resume, signal = new AbortController().signal } = options;
  const log: string[] = [];
  const turn: Turn = {
    ...{ taskId: TASK, contextId: CONTEXT, message, metadata, attempt, history, trace: {}, signal },
    ...(resume !== undefined && { resume }),
    log: turnLog(collecting(log), 'agent'),
  };
  const work: Work = { v: 1, taskId: TASK, contextId: CONTEXT, turn: 1, profile: 'transparent', message };
  const sink = new Collected();
  const inputs = new TurnInputs({
    work,
    agent: 'agent',
    attempt,
    sink,
    eventBytesMax: EVENT_BYTES_MAX,
    inputBytesMax: Number.POSITIVE_INFINITY,
    prior: NO_PRIOR_ATTEMPTS,
    forwardText: true,
  });
  inputs.begin();
  const events: AgentEvent[] = [];
  const { end, cause } = await pumpEvents(agent, turn, event => {
    events.push(event);
    if (!isEnd(event)) inputs.take(event);
  });
  inputs.end(end);
  const fold = foldInputs(work, attempt, sink.inputs);
  return { ...readFold(fold), notices: noticesOf(events), end, events, log, ...(cause !== undefined && { cause }) };
}

async function pumpEvents(
  agent: Agent,
  turn: Turn,
  take: (event: AgentEvent) => void,
): Promise<{ end: TurnEnd; cause?: unknown }> {
  try {
    for await (const event of new AbortableEvents(() => agent.run(turn), turn.signal)) {
      take(event);
      if (isEnd(event)) return { end: endOf(event) };
    }
    return { end: DONE };
  } catch (cause) {
    return { end: cause instanceof BoundExceeded ? failed(cause.message, false) : failureOf(cause), cause };
  }
}

/** Inputs of one turn, with tokens as they arrived. */
class Collected implements InputSink {
  readonly inputs: AgentInput[] = [];

  add(input: AgentInput): void {
    this.inputs.push(input);
  }

  addHeld(input: AgentInput): void {
    this.inputs.push(input);
  }

  token(lane: string, text: string): void {
    this.inputs.push({ kind: 'text', lane, tokens: [text] });
  }
}

function foldInputs(work: Work, attempt: number, inputs: readonly AgentInput[]): Fold {
  const from: Producer = { id: ROOT_AGENT, agent: 'agent', turn: work.turn, attempt };
  const { taskId, contextId, profile, message } = work;
  const begin = { kind: 'message', message, contextId, role: 'agent.agent', profile } as const;
  const commands: Command[] = [{ kind: 'client', taskId, input: begin }];
  for (const [index, input] of inputs.entries()) {
    if (input.kind !== 'text') commands.push({ kind: 'agent', from, input });
    else {
      const n = index + 1;
      const chunk = { firstSeq: n, lastSeq: n, count: 1, n, reason: 'test', heldMs: 0, firstAt: 0, lastAt: 0 };
      commands.push({ kind: 'run', from, lane: input.lane, text: input.tokens.join(''), last: false, n, chunk });
    }
  }
  const fold = new Fold();
  let aggregate: TaskAggregate | undefined;
  for (const command of commands) {
    for (const fact of decide(aggregate, command, 0).facts) {
      aggregate = evolve(aggregate, fact);
      if (isVisible(fact)) fold.add(fact.event);
    }
  }
  return fold;
}

function readFold(fold: Fold): Pick<PlayedTurn, 'text' | 'artifacts'> {
  const isNotice = (artifact: FoldedArtifact) => kindOfArtifact(artifact)?.startsWith('call-') === true;
  const shown = [...fold.artifacts.values()].filter(artifact => !isNotice(artifact));
  return { text: fold.textOf('response'), artifacts: shown.filter(({ name }) => name !== 'response') };
}

function noticesOf(events: readonly AgentEvent[]): string[] {
  return events.flatMap(event => (event.type === 'progress' ? [event.message.parts.map(part => part.text ?? '').join('')] : []));
}

function collecting(lines: string[]): Parameters<typeof turnLog>[0] {
  const method = (...args: unknown[]) => void lines.push(String(args.at(-1)));
  const logger = { trace: method, debug: method, info: method, warn: method, error: method, fatal: method, child: () => logger };
  return logger;
}
