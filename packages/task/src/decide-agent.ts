import { isInProgress, isTerminal } from '@hopline/a2a';
import {
  type AgentStepInput,
  type ArtifactInput,
  type ArtifactUpdated,
  type CallContent,
  type CallInput,
  type EndedInput,
  entryOf,
  isSameItem,
  type LaneOpened,
  type LaneState,
  type OpenInput,
  type Producer,
  type QueuedInput,
  type RemoteRunInput,
  type StatusInput,
  type StepInput,
  type TaskAggregate,
  workingCall,
} from '@hopline/events';
import type { AgentCommand, RejectionReason, TextRun } from './commands.ts';
import { artifactFact, changeState, closeLanes, type Decision, Facts, failTask, reject, statusFact } from './decision.ts';
import { evolve } from './evolve.ts';
import {
  REMOTE_RUN_UNITS_MAX,
  STEP_JSON_UNITS_MAX,
  STEP_NAME_UNITS_MAX,
  STEP_OUTCOME_BYTES_MAX,
  TURN_CALLS_MAX,
  TURN_LANES_BYTES_MAX,
  TURN_LANES_MAX,
  TURN_STEPS_MAX,
} from './limits.ts';
import { pathTo } from './transitions.ts';

/** Producer id of an agent that was addressed directly. If a supervisor called the agent, the producer id is the call id. */
export const ROOT_AGENT = 'agent';
export const SUPERVISOR = 'supervisor';

/** Reason of a task that failed because one of its producers wrote an input that cannot be read. */
export const INPUT_MALFORMED = 'an agent or the supervisor wrote an input that cannot be read';

/** Decides every input of the supervisor or an agent except text. */
export function decideAgent(aggregate: TaskAggregate | undefined, command: AgentCommand, at: number): Decision {
  if (aggregate === undefined) return reject('unknown task');
  if (isTerminal(aggregate.state)) return reject('terminal');
  const { from, input } = command;
  if (from.turn !== aggregate.turn) return reject('stale turn');
  const producer = entryOf(aggregate.producers, from.id);
  if (producer !== undefined && !isSameItem(producer, from)) return reject('other item');
  if (producer !== undefined && from.attempt < producer.attempt) return reject('stale attempt');
  if (hasEnded(aggregate, from)) return reject('ended call');
  if (!isKnownProducer(aggregate, from.id)) return reject('unknown call');
  if (isOfOtherAgent(aggregate, from)) return reject('other agent');
  switch (input.kind) {
    case 'open':
      return open(aggregate, from, input, at);
    case 'close':
      return close(aggregate, from, input.lane, at);
    case 'artifact':
      return artifact(aggregate, from, input, at);
    case 'status':
      return status(aggregate, from, input, at);
    case 'queued':
      return from.id === rootProducer(aggregate) ? queued(aggregate, input, at) : reject('not root');
    case 'call':
      return call(aggregate, from, input, at);
    case 'ended':
      return ended(aggregate, from, input, at);
    case 'step':
      return step(aggregate, from, input, at);
    case 'remote-run':
      return remoteRun(from, input, at);
    case 'agent-step':
      return agentStep(from, input, at);
    case 'malformed':
      return failTask(aggregate, INPUT_MALFORMED, at);
    case 'unknown':
      return reject('unknown kind');
  }
}

/** A run of text becomes one chunk of the lane's artifact: the first chunk opens or replaces, later ones append. */
export function decideRun(aggregate: TaskAggregate | undefined, run: TextRun, at: number): Decision {
  if (aggregate === undefined) return reject('unknown task');
  if (isTerminal(aggregate.state)) return reject('terminal');
  if (run.from.turn !== aggregate.turn) return reject('stale turn');
  const producer = entryOf(aggregate.producers, run.from.id);
  if (producer !== undefined && !isSameItem(producer, run.from)) return reject('other item');
  const lane = entryOf(aggregate.lanes, run.lane);
  const rejected = refusal(lane, run.from);
  if (lane === undefined || rejected !== undefined) return reject(rejected ?? 'unknown lane');
  const append = lane.phase === 'open';
  const closesSeparately = run.last && !append && lane.artifact?.separateClose === true;
  const update = { parts: [{ text: run.text }], append, lastChunk: run.last && !closesSeparately };
  const fact = { ...artifactFact(aggregate, run.lane, lane, update, at), chunk: run.chunk };
  if (!closesSeparately) return { facts: [fact] };
  const facts = new Facts(aggregate).add(fact);
  closeLanes(facts, at, (_lane, name) => name === run.lane);
  return facts.decision();
}

/** The supervisor may have abandoned the call of an agent that still sends inputs. */
export function hasEnded(aggregate: TaskAggregate, { id }: Producer): boolean {
  const state = entryOf(aggregate.calls, id)?.state;
  return state !== undefined && isTerminal(state);
}

/**
 * Whether the producer's id belongs to an agent other than the one that sends its inputs. The subject of a record vouches for the sending
 * agent, but only the task knows which agent an id belongs to.
 */
export function isOfOtherAgent(aggregate: TaskAggregate, { id, agent }: Producer): boolean {
  if (!isKnownProducer(aggregate, id) || id === SUPERVISOR) return false;
  return id === ROOT_AGENT ? aggregate.role !== `agent.${agent}` : entryOf(aggregate.calls, id)?.agent !== agent;
}

/** The root producer, or a call of this turn. The aggregate keeps ordinals only for these, which bounds its size. */
export function isKnownProducer(aggregate: TaskAggregate, id: string): boolean {
  return id === rootProducer(aggregate) || Object.hasOwn(aggregate.calls, id);
}

/** The producer that reports the state of the whole task. */
export function rootProducer(aggregate: Pick<TaskAggregate, 'role'>): string {
  return aggregate.role === 'supervisor' ? SUPERVISOR : ROOT_AGENT;
}

/** Name of the agent that a producer runs, or `supervisor`. */
export function producerAgent({ role, calls }: Pick<TaskAggregate, 'role' | 'calls'>, producer: string): string {
  if (producer === SUPERVISOR) return SUPERVISOR;
  return entryOf(calls, producer)?.agent ?? role.replace(/^agent\./, '');
}

function open(aggregate: TaskAggregate, from: Producer, input: OpenInput, at: number): Decision {
  const lane = entryOf(aggregate.lanes, input.lane);
  if (lane !== undefined && lane.producer !== from.id) return reject('other producer');
  if (lane?.phase === 'closed') return reject('closed lane');
  if (lane !== undefined && lane.attempt > from.attempt) return reject('stale attempt');
  const { artifact, source } = input;
  const opened = { at, lane: input.lane, producer: from.id, attempt: from.attempt, artifact, ...(source && { source }) };
  return laneFact(aggregate, { kind: 'lane.opened', ...opened });
}

/** Why the producer may not write to the lane; undefined when it may. */
function refusal(lane: LaneState | undefined, from: { id: string; attempt: number }): RejectionReason | undefined {
  if (lane === undefined) return 'unknown lane';
  if (lane.producer !== from.id) return 'other producer';
  if (lane.phase === 'closed') return 'closed lane';
  if (lane.attempt !== from.attempt) return 'stale attempt';
  return undefined;
}

/** The rules also run in a browser, which has no Buffer. */
const UTF8 = new TextEncoder();

/** Decides the fact of a lane. If the turn's lanes would then exceed a bound, the task fails instead. */
function laneFact(aggregate: TaskAggregate, fact: LaneOpened | ArtifactUpdated): Decision {
  const { lanes } = evolve(aggregate, fact);
  if (entryOf(lanes, fact.lane)?.artifact === entryOf(aggregate.lanes, fact.lane)?.artifact) return { facts: [fact] };
  if (Object.keys(lanes).length > TURN_LANES_MAX)
    return failTask(aggregate, `more than ${TURN_LANES_MAX} streamed artifacts`, fact.at);
  if (UTF8.encode(JSON.stringify(lanes)).length > TURN_LANES_BYTES_MAX) {
    const reason = `names and metadata of the streamed artifacts have more than ${TURN_LANES_BYTES_MAX} bytes`;
    return failTask(aggregate, reason, fact.at);
  }
  return { facts: [fact] };
}

function close(aggregate: TaskAggregate, from: Producer, name: string, at: number): Decision {
  const refused = refusal(entryOf(aggregate.lanes, name), from);
  if (refused !== undefined) return reject(refused);
  const facts = new Facts(aggregate);
  closeLanes(facts, at, (_lane, lane) => lane === name);
  return facts.decision();
}

function artifact(aggregate: TaskAggregate, from: Producer, input: ArtifactInput, at: number): Decision {
  const lane = entryOf(aggregate.lanes, input.lane);
  // An earlier attempt may have begun the artifact after the writer of this attempt looked for artifacts to replace.
  const replaces = lane !== undefined && lane.attempt < from.attempt;
  const refused = lane && refusal(replaces ? { ...lane, attempt: from.attempt } : lane, from);
  if (refused !== undefined) return reject(refused);
  // Some clients lose an append to an artifact that is not open, and others show it twice (S0-13). Such an append opens or replaces the
  // artifact instead.
  const append = input.append && lane?.phase === 'open' && !replaces;
  const state = { producer: from.id, attempt: from.attempt, artifact: input.artifact };
  const fact = artifactFact(aggregate, input.lane, state, { parts: input.parts, append, lastChunk: input.last }, at);
  return laneFact(aggregate, input.source === undefined ? fact : { ...fact, source: input.source });
}

function status(aggregate: TaskAggregate, from: Producer, input: StatusInput, at: number): Decision {
  const isRoot = from.id === rootProducer(aggregate);
  if (!isRoot && !passesThrough(aggregate, from, input)) return reject('not root');
  // working -> working is legal, but becomes an event only if it has a message or replaces a queue notice.
  if (input.state === aggregate.state && input.message === undefined && aggregate.queued !== true) return reject('no change');
  if (pathTo(aggregate.state, input.state).length === 0) return reject('illegal transition');
  const waiting = input.state === 'TASK_STATE_WORKING' ? waitingCall(aggregate, from.id) : undefined;
  if (waiting !== undefined && !isWaiting(aggregate, from.id)) return reject('other call waits');
  const facts = new Facts(aggregate);
  if (isTerminal(input.state)) closeLanes(facts, at);
  changeState(facts, input.state, at, { ...input, ...(!isRoot && { call: from.id }) });
  if (waiting !== undefined) askAgain(facts, waiting, at);
  return facts.decision();
}

/**
 * The statuses a called agent may set on the task: that it needs credentials, and that it continues; the credentials may arrive out of
 * band, so its call does not end ([A2A 1.0] 7.6.1). Its report that it works, with or without a message, becomes a status only if the call
 * was recorded with `statusPasses`.
 */
function passesThrough(aggregate: TaskAggregate, from: Producer, { state, message }: StatusInput): boolean {
  const call = entryOf(aggregate.calls, from.id);
  if (call === undefined || call.state !== undefined) return false;
  if (state === 'TASK_STATE_AUTH_REQUIRED') return message !== undefined;
  if (state !== 'TASK_STATE_WORKING') return false;
  return aggregate.state === 'TASK_STATE_AUTH_REQUIRED' || call.statusPasses === true;
}

/** Whether the agent of a call waits for credentials, and the task shows that an agent does. */
function isWaiting({ state, calls }: TaskAggregate, id: string): boolean {
  return state === 'TASK_STATE_AUTH_REQUIRED' && entryOf(calls, id)?.authRequest !== undefined;
}

/** Another call whose agent waits for credentials. If there are several, the one that was made first. */
function waitingCall(aggregate: TaskAggregate, except: string): string | undefined {
  return Object.keys(aggregate.calls).find(id => id !== except && isWaiting(aggregate, id));
}

/** Shows the request of a call that still waits. The task keeps waiting, so its deadline stays. */
function askAgain(facts: Facts, call: string, at: number): void {
  const { authRequest, calls } = facts.aggregate;
  const waitingSince = authRequest?.at;
  const details = { ...entryOf(calls, call)?.authRequest, call, ...(waitingSince !== undefined && { waitingSince }) };
  facts.add(statusFact(facts.aggregate, 'TASK_STATE_AUTH_REQUIRED', at, details));
}

/** A queue notice, or the end of one, in the current state of the task. */
export function queued(aggregate: TaskAggregate, { message }: QueuedInput, at: number): Decision {
  if (!isInProgress(aggregate.state)) return reject('no change');
  if (message === undefined && aggregate.queued !== true) return reject('no change');
  return { facts: [statusFact(aggregate, aggregate.state, at, message === undefined ? {} : { message })] };
}

function call(aggregate: TaskAggregate, from: Producer, input: CallInput, at: number): Decision {
  if (from.id !== rootProducer(aggregate)) return reject('not root');
  if (Object.hasOwn(aggregate.calls, input.call)) return reject('duplicate call');
  if (Object.keys(aggregate.calls).length >= TURN_CALLS_MAX)
    return failTask(aggregate, `more than ${TURN_CALLS_MAX} agent calls`, at);
  const { call, agent, statusPasses } = input;
  return { facts: [{ kind: 'call.started', at, call, agent, ...(statusPasses && { statusPasses }), ...contentOf(from, input) }] };
}

/**
 * The complete content of the call's work item, or undefined. Relays queue the item, so the content must come from a writer that may queue
 * work for agents.
 */
function contentOf({ id }: Producer, input: CallInput): CallContent | undefined {
  const call = workingCall(input);
  if (call === undefined || id !== SUPERVISOR) return undefined;
  const { presentation, message, metadata, resume, trace } = call;
  return {
    presentation,
    message,
    ...(metadata && { metadata }),
    ...(resume !== undefined && { resume }),
    ...(trace && { trace }),
  };
}

function ended(aggregate: TaskAggregate, from: Producer, input: EndedInput, at: number): Decision {
  const call = entryOf(aggregate.calls, input.call);
  if (call === undefined) return reject('unknown call');
  if (from.id !== input.call && from.id !== rootProducer(aggregate)) return reject('other producer');
  if (call.state !== undefined && isTerminal(call.state)) return reject('ended call');
  const facts = new Facts(aggregate);
  closeLanes(facts, at, lane => lane.producer === input.call);
  const { kind: _kind, ...outcome } = input;
  facts.add({ kind: 'call.ended', at, agent: call.agent, ...outcome });
  // An agent that ends its own call has already reported that it works; an agent that is abandoned has not.
  if (isWaiting(aggregate, input.call) && isTerminal(input.state)) {
    changeState(facts, 'TASK_STATE_WORKING', at);
    const waiting = waitingCall(aggregate, input.call);
    if (waiting !== undefined) askAgain(facts, waiting, at);
  }
  return facts.decision();
}

function step(aggregate: TaskAggregate, from: Producer, { step: name, payload }: StepInput, at: number): Decision {
  if (from.id !== rootProducer(aggregate)) return reject('not root');
  if ((aggregate.steps ?? 0) >= TURN_STEPS_MAX) return failTask(aggregate, `more than ${TURN_STEPS_MAX} steps`, at);
  if (JSON.stringify(payload).length > STEP_JSON_UNITS_MAX)
    return failTask(aggregate, `a step is larger than ${STEP_JSON_UNITS_MAX} UTF-16 units`, at);
  return { facts: [{ kind: 'step.recorded', at, step: name, payload }] };
}

/** Not kept in the aggregate, which is repeated in every record, because only an attempt that follows a dead one reads it. */
function remoteRun({ id: producer, attempt }: Producer, { run }: RemoteRunInput, at: number): Decision {
  if (JSON.stringify(run).length > REMOTE_RUN_UNITS_MAX) return reject('too large');
  return { facts: [{ kind: 'remote-run.started', at, producer, attempt, run }] };
}

/** This is not kept in the aggregate either. */
function agentStep({ id: producer, attempt }: Producer, { kind: _kind, ...step }: AgentStepInput, at: number): Decision {
  if (step.step.length > STEP_NAME_UNITS_MAX) return reject('too large');
  if (UTF8.encode(JSON.stringify(step.outcome ?? null)).length > STEP_OUTCOME_BYTES_MAX) return reject('too large');
  return { facts: [{ kind: 'agent-step.recorded', at, producer, attempt, ...step }] };
}
