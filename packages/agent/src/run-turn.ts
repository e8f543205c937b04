import { codePoints } from '@hopline/a2a';
import { type ContextHistory, readContextHistory } from '@hopline/context-history';
import type { Work } from '@hopline/events';
import { createInputWriter, type InputWriter, type Job, type Log, Requeued, Superseded } from '@hopline/log';
import { ROOT_AGENT } from '@hopline/task';
import { ATTR, COUNT, type Hop, invokeAgentSpan, type Logger, startHop } from '@hopline/telemetry';
import { abortableEvents } from './abortable-events.ts';
import type { Agent, AgentEvent, Turn } from './agent.ts';
import { BoundedSink } from './bounded-sink.ts';
import { type Earlier, NOTHING_EARLIER, readEarlier } from './earlier-attempts.ts';
import { BoundExceeded, WAITING_BYTES_MAX } from './limits.ts';
import { type Over, overBecause, watchTask } from './task-watch.ts';
import { DONE, endOf, failed, isEnd, placeOf, thrownBy } from './turn-end.ts';
import { type TurnEnd, TurnInputs } from './turn-inputs.ts';
import { turnLog } from './turn-log.ts';

export type RunTurnDeps = {
  log: Log;
  agent: Agent;
  /** Configured name of the agent. */
  name: string;
  /** Told by name, never by message: what an agent throws may hold content. */
  logger: Logger;
  /** Aborts when the process must let go of the turn: it is handed back, and a new attempt replaces what was said. */
  signal: AbortSignal;
  /** How often a call that failed as retryable is made again; 0 to RETRIES_MAX, 0 by default. */
  retries?: number;
  /** False: a supervisor's client does not see the agent's text (C-5); true by default. */
  forwardText?: boolean;
};

/** `undefined`: the turn was somebody else's or over already, nothing was said. */
export type TurnOutcome = TurnEnd | undefined;

/** The turn did not come to its end: another attempt may. */
class AttemptFailed extends Error {
  override readonly name = 'AttemptFailed';
}

/** What is left of a record beside the one event: the task's aggregate stands in every record. */
const EVENT_SHARE = 0.5;
/** The same for all that is said at once: the end of a call has a message, a text that was held, and what is left for the next turn. */
const INPUT_SHARE = 0.75;

/**
 * Runs one work item with an agent: what it says goes to the log, in order, as fast as the log takes it. Stops when the task ends, goes on to a later turn or is taken over.
 * Resolves when the item is done; rejects when it must be delivered again: with Requeued at a shutdown, AttemptFailed, Superseded, or as the log does.
 */
export async function runTurn(deps: RunTurnDeps, job: Job): Promise<TurnOutcome> {
  const { log, name } = deps;
  const { work, attempt } = job;
  const newest = await log.facts.last(work.taskId);
  if (newest === undefined) throw new Error('work for a task that is not in the log');
  const over = overBecause(newest.record.aggregate, work, attempt);
  if (over === 'superseded') throw new Superseded();
  if (over !== undefined) return undefined;
  const authorizing = newest.record.aggregate.state === 'TASK_STATE_AUTH_REQUIRED';
  const conversation = await readContextHistory(log, newest, work.turn);
  const earlier = attempt > 1 ? await readEarlier(log, newest, work.call?.id ?? ROOT_AGENT) : NOTHING_EARLIER;
  const hop = startHop(invokeAgentSpan(name), { kind: 'client', parent: job.trace, attributes: attributesOf(name, job) });
  const stop = new AbortController();
  const watching = watchTask(log, job, newest.seq, stop.signal);
  try {
    const outcome = await hop.run(() => speak(deps, job, { hop, conversation, authorizing, earlier, watching }));
    hop.set({ [ATTR.outcome]: outcome?.state ?? 'over' });
    if (outcome?.state === 'TASK_STATE_FAILED') hop.fail('agent_failed');
    return outcome;
  } catch (error) {
    // Letting go of a turn is no error of it: another attempt goes on.
    if (isExpected(error)) hop.set({ [ATTR.outcome]: error.name });
    else hop.fail(error instanceof Error ? error.name : 'other');
    throw error;
  } finally {
    stop.abort();
    hop.end();
  }
}

/** Ends of an attempt that are no fault to be told of. */
export function isExpected(error: unknown): error is Error {
  return error instanceof Superseded || error instanceof Requeued || error instanceof AttemptFailed;
}

type Around = {
  hop: Hop;
  conversation: ContextHistory;
  authorizing: boolean;
  earlier: Earlier;
  watching: Promise<Over | undefined>;
};

async function speak(deps: RunTurnDeps, job: Job, around: Around): Promise<TurnOutcome> {
  const { log, name: agent } = deps;
  const { hop, authorizing, earlier, watching } = around;
  const { work, attempt } = job;
  const producer = { id: work.call?.id ?? ROOT_AGENT, agent, turn: work.turn, attempt };
  const writing = { taskId: work.taskId, producer, trace: hop.carrier(), waitingBytesMax: WAITING_BYTES_MAX };
  const writer = createInputWriter(log.inputs, writing);
  const eventBytesMax = Math.floor(log.recordBytesMax * EVENT_SHARE);
  const forwardText = deps.forwardText ?? true;
  const sink = new BoundedSink(writer, Math.floor(log.recordBytesMax * INPUT_SHARE));
  const inputs = new TurnInputs({ work, agent, attempt, sink, eventBytesMax, earlier, authorizing, forwardText });
  const gone = new AbortController();
  let over: Over | 'lost' | undefined;
  const leave = (why: Over | 'lost') => {
    over ??= why;
    gone.abort(why);
  };
  watching.then(
    why => why !== undefined && leave(why),
    () => leave('lost'),
  );
  if (job.exhausted) return await settle(inputs, writer, failed('attempts exhausted', true));
  const signal = AbortSignal.any([deps.signal, gone.signal]);
  const end = await play(deps, turnOf(deps, job, around, signal), { inputs, writer, hop });
  if (over === 'superseded') throw new Superseded();
  if (over === 'lost') throw new AttemptFailed('the log was lost');
  if (over !== undefined) return undefined;
  // Whoever has to answer may take longer than any process lives: the next turn asks for what became of it.
  if (deps.signal.aborted && inputs.waitsFor !== undefined) return await settle(inputs, writer, inputs.waitsFor);
  if (deps.signal.aborted) throw new Requeued('shutdown');
  if (isRetried(deps, job, end)) throw new AttemptFailed('the agent failed, and may be asked again');
  return await settle(inputs, writer, end);
}

/**
 * A supervisor's call that failed as retryable is a new attempt, which replaces what this one said (S4-40, C-5). Who addresses the agent directly is told, and may ask
 * again.
 */
function isRetried({ retries = 0 }: RunTurnDeps, { work, attempt, requeues }: Job, end: TurnEnd): boolean {
  const failures = attempt - requeues;
  return end.state === 'TASK_STATE_FAILED' && end.retryable === true && work.call !== undefined && failures <= retries;
}

/** Plays the agent's events into the writer and returns how the turn ended. Rejects only when the writer has failed. */
async function play(deps: RunTurnDeps, turn: Turn, to: { inputs: TurnInputs; writer: InputWriter; hop: Hop }): Promise<TurnEnd> {
  const { inputs, writer, hop } = to;
  const pulse = new Pulse(hop);
  inputs.begin();
  const events = abortableEvents(startAgent(deps.agent, turn), turn.signal);
  try {
    for (;;) {
      const step = await events.next().catch(error => ({ thrown: error as unknown }));
      if ('thrown' in step) return turn.signal.aborted ? DONE : threw(deps, step.thrown);
      if (step.done === true) return DONE;
      const event = step.value;
      if (isEnd(event)) return endOf(event);
      if (event.type === 'step') hop.step({ [ATTR.graphNode]: event.step });
      pulse.beat(event);
      inputs.take(event);
      await writer.ready();
    }
  } catch (error) {
    return await unsayable(error, writer);
  } finally {
    await events.return(undefined);
  }
}

/** An agent may also throw before it returns an iterable. */
async function* startAgent(agent: Agent, turn: Turn): AsyncGenerator<AgentEvent> {
  yield* agent.run(turn);
}

async function settle(inputs: TurnInputs, writer: InputWriter, end: TurnEnd): Promise<TurnEnd> {
  let said = end;
  try {
    inputs.end(end);
  } catch (error) {
    said = await unsayable(error, writer);
    inputs.end(said);
  }
  await writer.flush();
  return said;
}

/** The end of a turn whose agent said what cannot be written down: it would say the same to the next attempt. Rejects when it was the writer that failed. */
async function unsayable(error: unknown, writer: InputWriter): Promise<TurnEnd> {
  await writer.ready();
  return failed(error instanceof BoundExceeded ? error.message : 'the agent sent an event that cannot be read', false);
}

function threw({ logger, name }: RunTurnDeps, error: unknown): TurnEnd {
  const reason = error instanceof Error ? error.name : typeof error;
  logger.warn({ agent: name, reason, path: placeOf(error) }, 'agent threw');
  return thrownBy(error);
}

function turnOf({ name, logger }: RunTurnDeps, { work, attempt }: Job, { hop, conversation }: Around, signal: AbortSignal): Turn {
  const { taskId, contextId, message, owner, metadata = {} } = work;
  const { messages: history, resumes } = conversation;
  const resume = work.call?.resume ?? resumes.get(name);
  const asked = { taskId, contextId, message, metadata, ...(owner && { owner }), ...(resume !== undefined && { resume }) };
  return { ...asked, history, attempt, trace: hop.carrier(), signal, log: turnLog(logger, name) };
}

function attributesOf(name: string, { work, attempt }: { work: Work; attempt: number }) {
  return {
    [ATTR.genAiOperation]: 'invoke_agent',
    [ATTR.genAiAgentName]: name,
    [ATTR.genAiConversation]: work.contextId,
    [ATTR.a2aTask]: work.taskId,
    [ATTR.call]: work.call?.id,
    [ATTR.attempt]: attempt,
    [ATTR.profile]: work.profile,
  };
}

/** Numbers of a turn for its span: what was said and when, never what it was. */
class Pulse {
  readonly #hop: Hop;
  readonly #startedMs = performance.now();
  #lastMs: number | undefined;

  constructor(hop: Hop) {
    this.#hop = hop;
  }

  beat(event: AgentEvent): void {
    const now = performance.now();
    this.#hop.count(COUNT.events);
    if (event.type !== 'text') return;
    this.#hop.count(COUNT.tokens);
    this.#hop.count(COUNT.characters, codePoints(event.text));
    if (this.#lastMs === undefined) this.#hop.max(COUNT.firstTokenMs, Math.round(now - this.#startedMs));
    else this.#hop.max(COUNT.gapMsMax, Math.round(now - this.#lastMs));
    this.#lastMs = now;
  }
}
