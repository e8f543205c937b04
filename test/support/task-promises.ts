import { isDeepStrictEqual } from 'node:util';
import { type Artifact, DIALECTS, type DialectName, isTerminal, type StreamResponse, type Task, textOf } from '@hopline/a2a';
import type { Gap } from '@hopline/a2a-server';
import { type AgentStepRecorded, type Fact, isVisible, type TaskAggregate, type VisibleFact } from '@hopline/events';
import { type FactLog, type InputLog, readTask } from '@hopline/log';
import { project, type TaskView } from '@hopline/task';
import { readTaskPaths } from '@hopline/task-audit';
import { type AgentRun, OPEN_ARTIFACT } from './agents/scripted-agent.ts';

/** A promise that a run broke. `rule` is a sentence of this file, the same for all runs. */
export type Violation = { rule: string; detail: string };

/** A frame of a stream, as a client reads it. */
export type Frame =
  | { kind: 'event'; generation: number; cursor: string; json: string }
  | { kind: 'snapshot'; generation: number; cursor: string; task: Task }
  | ({ kind: 'gap' } & Gap);

/** A notification that the webhook of a client took. */
/** `after`: the generation after which the body begins. */
export type Notification = { url: string; generation: number; after: number; body: string };

/** A task, as far as its client knows it. */
export type VerifiedTask = {
  plan: {
    name: string;
    profile: string;
    cancelAfterMs: number | undefined;
    /** True if the client cancels instead of answering the first question. */
    cancelsAtQuestion?: boolean;
    webhook: 'with the message' | 'later' | undefined;
    /** Absent: A2A 1.0. */
    dialect?: { name: DialectName };
  };
  /** Ids of the messages that a server acknowledged. */
  acknowledged: readonly string[];
  webhookUrl: string;
  isWebhookAcknowledged: boolean;
  /** When a server acknowledged the client's cancel, in milliseconds by the clock of the runs; undefined if no server did. */
  cancelAcknowledgedAt: number | undefined;
  viewers: readonly { name: string; dialect: DialectName; frames: readonly Frame[] }[];
};

export type TaskHistory = {
  aggregate: TaskAggregate;
  facts: Fact[];
  view: TaskView | undefined;
  aggregateBytesMax: number;
  /** The last input that was folded before the record with the end of the task; undefined while the task is open. */
  foldedBeforeEnd: number | undefined;
};

/** When a fault was in effect, in milliseconds by the clock of the runs. */
export type FaultTime = { startedAt: number; endedAt: number };

/**
 * How long a run of an agent may live after an acknowledged cancel, in milliseconds, counted from the end of any fault that delays the
 * cancel. A worker that has died is replaced after 5 s (`ackWait`), and an agent that ignores its signal is abandoned after 3 s; the rest
 * is for a machine that is overloaded.
 */
const CANCELED_RUN_MS_MAX = 15_000;

export type Report = (rule: string, detail: string) => void;

/** Reads everything that the log has about a task; undefined when it has nothing. */
export async function historyOf(log: FactLog, taskId: string): Promise<TaskHistory | undefined> {
  const newest = await log.last(taskId);
  if (newest === undefined) return undefined;
  const facts: Fact[] = [];
  let view: TaskView | undefined;
  let aggregateBytesMax = 0;
  let foldedBeforeEnd: number | undefined;
  let folded = 0;
  for await (const { record } of readTask(log, newest)) {
    aggregateBytesMax = Math.max(aggregateBytesMax, Buffer.byteLength(JSON.stringify(record.aggregate)));
    if (isTerminal(record.aggregate.state)) foldedBeforeEnd ??= folded;
    folded = record.aggregate.foldedSeq;
    for (const fact of record.facts) {
      facts.push(fact);
      view = project(view, fact);
    }
  }
  return { aggregate: newest.record.aggregate, facts, view, aggregateBytesMax, foldedBeforeEnd };
}

/**
 * Verifies one task against the actions of its agents (`runs`), and against everything that its viewers and its webhook received.
 * `canLoseProgress`: a fault may have removed the newest progress of webhooks.
 */
export function verifyTask(
  task: VerifiedTask,
  history: TaskHistory,
  evidence: { runs: readonly AgentRun[]; received: readonly Notification[]; canLoseProgress: boolean },
  report: Report,
): void {
  verifyGenerations(task, history, report);
  verifyMessages(task, history, report);
  verifyTexts(task, history, evidence.runs, report);
  for (const viewer of task.viewers) verifyViewer(viewer, history, report);
  verifyWebhook(task, history, evidence, report);
}

/** Smallest part of a turn that the hops on its critical path may have. */
const COVERED_MIN = 0.99;

/** Every turn's time must be in named hops, whichever processes died. Retention may have removed the records that name them. */
export async function verifyHops(
  { plan }: Pick<VerifiedTask, 'plan'>,
  log: Parameters<typeof readTaskPaths>[0],
  taskId: string,
  report: Report,
): Promise<void> {
  const paths = await readTaskPaths(log, taskId);
  for (const { turn, fromMs, toMs, path } of paths?.turns ?? []) {
    const coveredMs = path.reduce((sum, part) => sum + part.toMs - part.fromMs, 0);
    const isOrdered = path.every((part, index) => part.fromMs >= (path[index - 1]?.toMs ?? fromMs) && part.toMs <= toMs);
    if (!isOrdered || coveredMs < COVERED_MIN * (toMs - fromMs))
      report(
        'hops cover the time of a turn',
        `${plan.name}, turn ${turn}: ${coveredMs} of ${toMs - fromMs} ms: ${JSON.stringify(path)}`,
      );
  }
}

export type CancelEvidence = {
  inputs: Pick<InputLog, 'read'>;
  runs: readonly AgentRun[];
  faults: readonly FaultTime[];
  /** In milliseconds by the clock of the runs. */
  now: number;
};

/**
 * Nothing overrides a cancel: if the log has the cancel of a task, the task ends as CANCELED unless it had already ended, whatever response its
 * client got. After an acknowledgement its agents stop, remote ones included.
 */
export async function verifyCancel(
  { plan, cancelAcknowledgedAt }: VerifiedTask,
  { aggregate, foldedBeforeEnd }: TaskHistory,
  { inputs, runs, faults, now }: CancelEvidence,
  report: Report,
): Promise<void> {
  const { taskId, state } = aggregate;
  if (cancels(plan) && isTerminal(state) && state !== 'TASK_STATE_CANCELED') {
    const seq = await cancelBefore(inputs, taskId, foldedBeforeEnd ?? 0);
    if (seq !== undefined)
      report('a stored cancel ends its task', `${plan.name}: ${state}, canceled by input ${seq}, ended after ${foldedBeforeEnd}`);
  }
  if (cancelAcknowledgedAt === undefined) return;
  const untilMs = afterFaults(cancelAcknowledgedAt, faults);
  for (const { id, agent, messageId, endedAt = now } of runs)
    if (messageId.replace(/-m\d+$/, '') === plan.name && endedAt > untilMs)
      report(
        'after an acknowledged cancel no run of an agent lives on',
        `${plan.name}: run ${id} of ${agent} lived for ${Math.round(endedAt - cancelAcknowledgedAt)} ms after it`,
      );
}

function cancels({ cancelAfterMs, cancelsAtQuestion = false }: VerifiedTask['plan']): boolean {
  return cancelAfterMs !== undefined || cancelsAtQuestion;
}

/**
 * Sequence of a cancel that was stored while the task was certainly open: every earlier input that could end the task was folded, and the
 * task was still open. Undefined if there is no such cancel, or if retention removed it before a relay read it, because such an input is
 * not promised.
 */
async function cancelBefore(
  inputs: Pick<InputLog, 'read'>,
  taskId: string,
  foldedBeforeEnd: number,
): Promise<number | undefined> {
  for await (const { seq, record } of inputs.read(taskId)) {
    if (record.from === 'client') {
      if (record.input.kind === 'cancel') return seq;
    } else if (seq > foldedBeforeEnd) return undefined;
  }
  return undefined;
}

/** CANCELED_RUN_MS_MAX after a time, and after the end of each fault that begins within it. */
function afterFaults(at: number, faults: readonly FaultTime[]): number {
  let untilMs = at + CANCELED_RUN_MS_MAX;
  for (const { startedAt, endedAt } of [...faults].sort((a, b) => a.startedAt - b.startedAt))
    if (startedAt <= untilMs) untilMs = Math.max(untilMs, endedAt + CANCELED_RUN_MS_MAX);
  return untilMs;
}

export type ForgottenDeliveries = {
  /**
   * When the servers forgot how often they had delivered an item. If a worker has an item at that time, the next delivery of the item has
   * the same number again.
   */
  at: readonly number[];
  /** Called for two runs that overlap because of it. */
  onRepeated: () => void;
};

/** `runs`: the runs of all tasks. */
export function verifyAttempts(runs: readonly AgentRun[], report: Report, forgotten?: ForgottenDeliveries): void {
  const byAttempt = Map.groupBy(runs, ({ agent, messageId, attempt }) => `${agent} ${messageId} attempt ${attempt}`);
  for (const [attempt, same] of byAttempt) {
    for (const [index, run] of same.entries()) {
      for (const other of same.slice(index + 1)) {
        if (other.startedAt >= (run.endedAt ?? Number.POSITIVE_INFINITY)) continue;
        if (forgotten?.at.some(at => isBetweenDeliveries(at, run, other))) forgotten.onRepeated();
        else report('one attempt of an agent never runs twice at once', `${attempt}: runs ${run.id} and ${other.id}`);
      }
    }
  }
}

/**
 * Whether the item of one run was delivered before a time, and the item of the other run after it. A run may begin long after its delivery,
 * because a worker reads the earlier tasks of the context first (seed 50729 over the wire).
 */
function isBetweenDeliveries(at: number, run: AgentRun, other: AgentRun): boolean {
  const [one, two] = [run, other].map(({ deliveredAt, startedAt }) => deliveredAt ?? { first: startedAt, last: startedAt });
  return (one!.first <= at && at <= two!.last) || (two!.first <= at && at <= one!.last);
}

/**
 * A step that a run has passed never has its effect in a later attempt, which gets the result of the run that was stored. A step that a run has not
 * passed may have had its effect, and may have it again.
 */
export function verifySteps(runs: readonly AgentRun[], report: Report): void {
  const passed = new Map<string, { run: AgentRun; effectOf: number }>();
  for (const run of runs) {
    for (const { key, effectOf } of run.passed ?? []) {
      const before = passed.get(key);
      if (before === undefined || run.attempt < before.run.attempt) passed.set(key, { run, effectOf });
      if (before !== undefined && before.effectOf !== effectOf)
        report('every attempt gets the stored result of a step', `${key}: of run ${before.effectOf}, then of run ${effectOf}`);
    }
  }
  for (const [key, { effectOf }] of passed) {
    const run = runs.find(({ id }) => id === effectOf);
    if (run !== undefined && run.effects?.includes(key) !== true)
      report('the result of a step is that of a run with its effect', `${key}: run ${effectOf}`);
  }
  for (const run of runs) {
    for (const key of run.effects ?? []) {
      const before = passed.get(key)?.run;
      if (before !== undefined && run.attempt > before.attempt)
        report(
          'a step whose result is stored never runs again',
          `${key}: run ${before.id} has passed it, and run ${run.id} ran it`,
        );
    }
  }
}

/** An attempt whose call is repeated opens its failed steps again, and the next one runs them. Returns whether there were such steps. */
export function verifyOpenedSteps({ plan }: VerifiedTask, { facts }: TaskHistory, report: Report): boolean {
  const phases = new Map<string, AgentStepRecorded>();
  const open = new Set<string>();
  let isMet = false;
  for (const fact of facts) {
    if (fact.kind === 'message.received') open.clear();
    if (fact.kind !== 'agent-step.recorded') continue;
    const { producer, attempt, step, n, phase } = fact;
    const key = `${producer} ${step} ${n}`;
    const before = phases.get(key);
    phases.set(key, fact);
    if (phase === 'stored') open.delete(key);
    else if (phase === 'reused' && open.has(key))
      report('a step that is open again is not taken from the log', `${plan.name}: ${key}, attempt ${attempt}`);
    else if (phase === 'reached' && before?.attempt === attempt && before.phase !== 'reached') {
      isMet = true;
      open.add(key);
    }
  }
  return isMet;
}

function verifyGenerations({ plan }: VerifiedTask, { facts, aggregate }: TaskHistory, report: Report): void {
  const visible = facts.filter(isVisible);
  const isNext = (fact: VisibleFact, before: number) => fact.generation === before + 1 || fact.lostAfter === before;
  const wrong = visible.findIndex((fact, index) => !isNext(fact, visible[index - 1]?.generation ?? 0));
  if (wrong >= 0) report('generations are 1..n', `${plan.name}: generation ${visible[wrong]!.generation} at place ${wrong + 1}`);
  const earlier = facts.findIndex((fact, index) => index > 0 && fact.at < facts[index - 1]!.at);
  if (earlier >= 0) report('the times of facts never decrease', `${plan.name}: fact ${earlier + 1}, ${facts[earlier]!.kind}`);
  const ends = visible.filter(isEnd);
  if (isTerminal(aggregate.state) && (ends.length !== 1 || visible.at(-1) !== ends[0]))
    report('one terminal event, last', `${plan.name}: ${ends.length} terminal events, last is ${visible.at(-1)?.kind}`);
}

function isEnd(fact: VisibleFact): boolean {
  return fact.kind === 'status.changed' && isTerminal(fact.event.statusUpdate.status.state);
}

function verifyMessages({ plan, acknowledged }: VerifiedTask, { aggregate, view }: TaskHistory, report: Report): void {
  for (const messageId of acknowledged) {
    const count = view?.task.history?.filter(message => message.messageId === messageId).length ?? 0;
    if (count !== 1) report('an acknowledged message is in its task once', `${plan.name}: ${messageId} is in ${count} times`);
  }
  if (aggregate.state === 'TASK_STATE_CANCELED' && !cancels(plan)) report('only its client cancels a task', plan.name);
}

/** The text of each call must come from one run of its agent: all of it if the call completed, otherwise a prefix. */
function verifyTexts(
  { plan }: VerifiedTask,
  { facts, aggregate, view }: TaskHistory,
  runs: readonly AgentRun[],
  report: Report,
): void {
  const agentOf = new Map<string, string>();
  const completed = new Set<string>();
  for (const fact of facts) {
    if (fact.kind === 'call.started') agentOf.set(fact.call, fact.agent);
    if (fact.kind === 'call.ended' && fact.state === 'TASK_STATE_COMPLETED') completed.add(fact.call);
  }
  const texts = textsByCall(facts);
  for (const [call, agent] of agentOf) {
    const text = texts.get(call) ?? '';
    const turn = Number(call.split('-')[1]);
    const ofCall = runs.filter(run => run.agent === agent && run.messageId === `${plan.name}-m${turn}`);
    const fits = (run: AgentRun) => (completed.has(call) ? text === run.fullText : run.tokens.join('').startsWith(text));
    if ((text !== '' || completed.has(call)) && !ofCall.some(fits))
      report(
        completed.has(call) ? 'the text of a call is that of one run, whole' : 'the text of a call is the beginning of one run',
        `${plan.name} ${call} of ${agent} (task ${aggregate.state}): ${JSON.stringify(text)}`,
      );
  }
  if (plan.profile !== 'caipe' || aggregate.state !== 'TASK_STATE_COMPLETED') return;
  const ofTurn = [...texts].filter(([call]) => call.startsWith(`call-${aggregate.turn}-`)).map(([, text]) => text);
  const result = (view?.task.artifacts ?? []).findLast(({ name }) => name === 'partial_result');
  if (ofTurn.join('') !== textOfArtifact(result))
    report('the result is the text of the calls', `${plan.name}: ${JSON.stringify(textOfArtifact(result))}`);
}

function textOfArtifact(artifact: Artifact | undefined): string {
  return textOf(artifact?.parts ?? []);
}

/** Streamed text by call, in the order of the first chunk. */
export function textsByCall(facts: readonly Fact[]): Map<string, string> {
  const lanes = new Map<string, { call: string; text: string; isStreamed: boolean }>();
  for (const fact of facts) {
    if (fact.kind !== 'artifact.updated') continue;
    const { artifact, append = false } = fact.event.artifactUpdate;
    if (artifact.name?.startsWith(OPEN_ARTIFACT)) continue;
    const lane = lanes.get(fact.lane) ?? { call: fact.producer, text: '', isStreamed: false };
    lane.text = (append ? lane.text : '') + textOf(artifact.parts);
    lane.isStreamed ||= fact.chunk !== undefined;
    lanes.set(fact.lane, lane);
  }
  const texts = new Map<string, string>();
  for (const { call, text, isStreamed } of lanes.values()) if (isStreamed) texts.set(call, (texts.get(call) ?? '') + text);
  return texts;
}

/** A viewer must get each cursor once, in order and without an unreported gap, and each event as it is in the log. */
function verifyViewer({ name, dialect, frames }: VerifiedTask['viewers'][number], { facts }: TaskHistory, report: Report): void {
  const visible = facts.filter(isVisible);
  const stored = new Map(visible.map(fact => [fact.generation, fact.event]));
  // Generations that no event has are not missing.
  const mayFollow = (found: number, expected: number) =>
    found >= expected && !visible.some(({ generation }) => generation >= expected && generation < found);
  const isLost = lostGenerations(facts);
  const hasLost = visible.some(({ lostAfter }) => lostAfter !== undefined);
  let next: number | undefined;
  let gapTo: number | undefined;
  for (const frame of frames) {
    if (frame.kind === 'gap') {
      gapTo = frame.to;
      continue;
    }
    if (frame.kind === 'snapshot') {
      if (next !== undefined && frame.generation < next - 1) report('a viewer never goes back', `${name}: ${frame.generation}`);
      if (!hasLost && !isTaskAt(frame.task, visible, frame.generation))
        report('a viewer sees what the log has', `${name}: snapshot ${frame.generation}: ${JSON.stringify(frame.task)}`);
      next = frame.generation + 1;
      gapTo = undefined;
      continue;
    }
    const expected = next ?? 1;
    // A client that left between a gap and its snapshot resumes before the gap.
    if (!mayFollow(frame.generation, expected) && (gapTo === undefined || !mayFollow(frame.generation, gapTo + 1)))
      report('a viewer sees each cursor once and in order', `${name}: generation ${frame.generation}, expected ${expected}`);
    if (!isLost(frame.generation) && !isEvent(frame.json, inDialect(stored.get(frame.generation), dialect)))
      report('a viewer sees what the log has', `${name}: generation ${frame.generation}: ${frame.json}`);
    next = frame.generation + 1;
    gapTo = undefined;
  }
}

/**
 * Whether the log may have lost an event that was received. No later event reuses its generation, except for the first event, which is the
 * same message, stored at another time.
 */
function lostGenerations(facts: readonly Fact[]): (generation: number) => boolean {
  const leaps = facts.filter(isVisible).filter(({ lostAfter }) => lostAfter !== undefined);
  return lost =>
    leaps.some(({ lostAfter = 0, generation }) => (lost > lostAfter || (lost === 1 && lostAfter === 1)) && lost < generation);
}

/** Whether a snapshot has the text and the state that the task had at its generation. */
function isTaskAt({ artifacts = [], status }: Task, visible: readonly VisibleFact[], at: number): boolean {
  const events = visible.filter(({ generation }) => generation <= at).map(({ event }) => event);
  return (
    textOfArtifacts(artifacts) === textOfEvents(events) &&
    status.state === events.map(stateOf).findLast(state => state !== undefined)
  );
}

function stateOf(event: StreamResponse): Task['status']['state'] | undefined {
  if ('task' in event) return event.task.status.state;
  return 'statusUpdate' in event ? event.statusUpdate.status.state : undefined;
}

/** A stored event as a client of the dialect reads it: with every flag, and in the form of April 2025 with the state of a task in its place. */
function inDialect(event: StreamResponse | undefined, dialect: DialectName): StreamResponse | undefined {
  if (event === undefined || dialect === '1.0') return event;
  if ('artifactUpdate' in event) {
    const { append = false, lastChunk = false } = event.artifactUpdate;
    return { artifactUpdate: { ...event.artifactUpdate, append, lastChunk } };
  }
  if (dialect !== 'legacy' || !('task' in event)) return event;
  const { id: taskId, contextId, status } = event.task;
  return { statusUpdate: { taskId, contextId, status } };
}

/** The content of a notification: an event, or in A2A 0.3 the whole task. Undefined for a body of another form. */
export function notified(body: string, dialect: DialectName = '1.0'): StreamResponse | undefined {
  const value = JSON.parse(body) as StreamResponse;
  if (dialect === '1.0') return value;
  const decoded = DIALECTS[dialect].decodeEvent(value);
  return 'event' in decoded ? decoded.event : undefined;
}

/** Whether `json` is the event, with its members in any order. */
function isEvent(json: string, event: StreamResponse | undefined): boolean {
  return JSON.stringify(event) === json || isDeepStrictEqual(JSON.parse(json), event);
}

/**
 * Whether two first events of a task differ only in the time at which they were stored. The generation of a lost event is not reused,
 * except for that of the first event (ADR 83), which has only the client's message, so that a client that ignores the repetition misses
 * nothing.
 */
function isSameMessage(before: string, body: string, dialect: DialectName | undefined): boolean {
  const [one, other] = [before, body].map(json => withoutTime(notified(json, dialect)));
  return one !== undefined && isDeepStrictEqual(one, other);
}

/** Undefined for an event that is not the first of a task. */
function withoutTime(event: StreamResponse | undefined): object | undefined {
  if (event !== undefined && 'statusUpdate' in event && event.statusUpdate.status.state === 'TASK_STATE_SUBMITTED')
    return { ...event.statusUpdate, status: 'TASK_STATE_SUBMITTED' };
  if (event === undefined || !('task' in event)) return undefined;
  const { timestamp: _timestamp, ...status } = event.task.status;
  return { ...event.task, status };
}

/**
 * Checks that every event arrives in order, and that a repetition has the same cursor and content. After a loss of progress a body may
 * repeat events together with later ones. The receiver notices that from the cursor after which the body begins, and reads the task.
 */
function verifyWebhook(
  client: VerifiedTask,
  { facts, aggregate }: TaskHistory,
  { received, canLoseProgress }: { received: readonly Notification[]; canLoseProgress: boolean },
  report: Report,
): void {
  const own = received.filter(({ url }) => url === client.webhookUrl);
  const dialect = client.plan.dialect?.name;
  const bodies = new Map<number, string>();
  const begins = new Map<number, number>();
  const isLost = lostGenerations(facts);
  let last = 0;
  let overlaps = false;
  for (const { generation, after, body } of own) {
    const before = bodies.get(generation);
    const beginsEarlier = canLoseProgress && after < (begins.get(generation) ?? 0);
    overlaps ||= beginsEarlier || (after < last && generation > last);
    if (
      before !== undefined &&
      before !== body &&
      !beginsEarlier &&
      !(isLost(generation) && isSameMessage(before, body, dialect))
    )
      report('a repeated notification has the same content', `${client.plan.name}: generation ${generation}`);
    // After a loss of progress events are delivered again, and may be joined in another way.
    else if (before === undefined && generation < last && !canLoseProgress)
      report('notifications are in order', `${client.plan.name}: ${generation} after ${last}`);
    bodies.set(generation, body);
    begins.set(generation, after);
    last = Math.max(last, generation);
  }
  // Events that are lost and folded again are delivered twice.
  if ([...bodies.keys()].some(isLost)) return;
  if (overlaps && canLoseProgress) return;
  if (overlaps) report('notifications are in order', `${client.plan.name}: one repeats an event and adds later ones`);
  if (!client.isWebhookAcknowledged || client.plan.webhook !== 'with the message' || last < aggregate.generation) return;
  const events = [...bodies].sort(([a], [b]) => a - b).flatMap(([, body]) => notified(body, dialect) ?? []);
  const last03 = dialect === '0.3' ? events.at(-1) : undefined;
  const delivered = last03 !== undefined && 'task' in last03 ? textOfArtifacts(last03.task.artifacts) : textOfEvents(events);
  const stored = textOfEvents(facts.filter(isVisible).map(({ event }) => event));
  if (delivered !== stored)
    report('an acknowledged webhook gets every event', `${client.plan.name}: ${JSON.stringify(delivered)}`);
}

function textOfArtifacts(artifacts: readonly Artifact[] = []): string {
  return textsOf(artifacts.map(({ artifactId, parts }) => [artifactId, textOf(parts)]));
}

/** Text of all artifacts, in order of the events. */
function textOfEvents(events: readonly StreamResponse[]): string {
  const texts = new Map<string, string>();
  for (const event of events) {
    if (!('artifactUpdate' in event)) continue;
    const { artifact, append } = event.artifactUpdate;
    texts.set(artifact.artifactId, (append ? (texts.get(artifact.artifactId) ?? '') : '') + textOf(artifact.parts));
  }
  return textsOf([...texts]);
}

/** An artifact without text may be absent from a whole task, because a task loses its transitory artifacts at its end. */
function textsOf(texts: readonly (readonly [id: string, text: string])[]): string {
  return JSON.stringify(texts.filter(([, text]) => text !== ''));
}
