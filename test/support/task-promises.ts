import { isDeepStrictEqual } from 'node:util';
import { type Artifact, isTerminal, type StreamResponse, type Task, textOf } from '@hopline/a2a';
import type { Gap } from '@hopline/a2a-server';
import { type Fact, isVisible, type TaskAggregate, type VisibleFact } from '@hopline/events';
import { type FactLog, readTask } from '@hopline/log';
import { project, type TaskView } from '@hopline/task';
import { type AgentRun, OPEN_ARTIFACT } from './agents/scripted-agent.ts';

/** A promise that a run broke. `rule` is a sentence of this file, the same for all runs. */
export type Violation = { rule: string; detail: string };

/** What a client reads of a stream. */
export type Frame =
  | { kind: 'event'; generation: number; cursor: string; json: string }
  | { kind: 'snapshot'; generation: number; cursor: string; task: Task }
  | ({ kind: 'gap' } & Gap);

/** A notification that the webhook of a client took. */
export type Notification = { url: string; generation: number; body: string };

/** What the client of a task knows about it. */
export type VerifiedTask = {
  plan: { name: string; profile: string; cancelAfterMs: number | undefined; webhook: 'with the message' | 'later' | undefined };
  /** Ids of the messages that a server acknowledged. */
  acknowledged: readonly string[];
  webhookUrl: string;
  isWebhookAcknowledged: boolean;
  viewers: readonly { name: string; frames: readonly Frame[] }[];
};

export type TaskHistory = { aggregate: TaskAggregate; facts: Fact[]; view: TaskView | undefined; aggregateBytesMax: number };

export type Report = (rule: string, detail: string) => void;

/** Everything that the log has of a task; undefined when it has nothing. */
export async function historyOf(log: FactLog, taskId: string): Promise<TaskHistory | undefined> {
  const newest = await log.last(taskId);
  if (newest === undefined) return undefined;
  const facts: Fact[] = [];
  let view: TaskView | undefined;
  let aggregateBytesMax = 0;
  for await (const { record } of readTask(log, newest)) {
    aggregateBytesMax = Math.max(aggregateBytesMax, Buffer.byteLength(JSON.stringify(record.aggregate)));
    for (const fact of record.facts) {
      facts.push(fact);
      view = project(view, fact);
    }
  }
  return { aggregate: newest.record.aggregate, facts, view, aggregateBytesMax };
}

/** Verifies one task against what its agents did (`runs`), and what its viewers and its webhook received. */
export function verifyTask(
  task: VerifiedTask,
  history: TaskHistory,
  { runs, received }: { runs: readonly AgentRun[]; received: readonly Notification[] },
  report: Report,
): void {
  verifyGenerations(task, history, report);
  verifyMessages(task, history, report);
  verifyTexts(task, history, runs, report);
  for (const viewer of task.viewers) verifyViewer(viewer, history, report);
  verifyWebhook(task, history, received, report);
}

/** `runs`: those of all tasks. */
export function verifyAttempts(runs: readonly AgentRun[], report: Report): void {
  const byAttempt = Map.groupBy(runs, ({ agent, messageId, attempt }) => `${agent} ${messageId} attempt ${attempt}`);
  for (const [attempt, same] of byAttempt) {
    for (const [index, run] of same.entries())
      for (const other of same.slice(index + 1))
        if (other.startedAt < (run.endedAt ?? Number.POSITIVE_INFINITY))
          report('one attempt of an agent never runs twice at once', `${attempt}: runs ${run.id} and ${other.id}`);
  }
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
  const cancels = plan.cancelAfterMs !== undefined;
  if (aggregate.state === 'TASK_STATE_CANCELED' && !cancels) report('only its client cancels a task', plan.name);
}

/** The text of each call is that of one run of its agent: whole if the call completed, else the beginning of it. */
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
    const own = runs.filter(run => run.agent === agent && run.messageId === `${plan.name}-m${turn}`);
    const fits = (run: AgentRun) => (completed.has(call) ? text === run.fullText : run.tokens.join('').startsWith(text));
    if ((text !== '' || completed.has(call)) && !own.some(fits))
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
function textsByCall(facts: readonly Fact[]): Map<string, string> {
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

/** Each cursor once, in order, without a gap that was not reported, and each event as the log has it. */
function verifyViewer({ name, frames }: VerifiedTask['viewers'][number], { facts }: TaskHistory, report: Report): void {
  const stored = new Map(facts.filter(isVisible).map(fact => [fact.generation, fact.event]));
  const isLost = lostGenerations(facts);
  let next: number | undefined;
  let gapTo: number | undefined;
  for (const frame of frames) {
    if (frame.kind === 'gap') {
      gapTo = frame.to;
      continue;
    }
    if (frame.kind === 'snapshot') {
      if (next !== undefined && frame.generation < next - 1) report('a viewer never goes back', `${name}: ${frame.generation}`);
      next = frame.generation + 1;
      gapTo = undefined;
      continue;
    }
    const expected = gapTo === undefined ? (next ?? 1) : gapTo + 1;
    if (frame.generation !== expected)
      report('a viewer sees each cursor once and in order', `${name}: generation ${frame.generation}, expected ${expected}`);
    if (!isLost(frame.generation) && !isEvent(frame.json, stored.get(frame.generation)))
      report('a viewer sees what the log has', `${name}: generation ${frame.generation}: ${frame.json}`);
    next = frame.generation + 1;
    gapTo = undefined;
  }
}

/**
 * Whether the log may have lost an event that was received. No later event has its generation, except the first one: it is the same
 * message, stored at another time.
 */
function lostGenerations(facts: readonly Fact[]): (generation: number) => boolean {
  const leaps = facts.filter(isVisible).filter(({ lostAfter }) => lostAfter !== undefined);
  return lost =>
    leaps.some(({ lostAfter = 0, generation }) => (lost > lostAfter || (lost === 1 && lostAfter === 1)) && lost < generation);
}

/** Every event in order; a repetition has the same cursor and content. */
/** Whether `json` is the event, with its members in any order. */
function isEvent(json: string, event: StreamResponse | undefined): boolean {
  return JSON.stringify(event) === json || isDeepStrictEqual(JSON.parse(json), event);
}

function verifyWebhook(
  client: VerifiedTask,
  { facts, aggregate }: TaskHistory,
  received: readonly Notification[],
  report: Report,
): void {
  const own = received.filter(({ url }) => url === client.webhookUrl);
  const bodies = new Map<number, string>();
  let last = 0;
  for (const { generation, body } of own) {
    const before = bodies.get(generation);
    if (before !== undefined && before !== body)
      report('a repeated notification has the same content', `${client.plan.name}: generation ${generation}`);
    else if (before === undefined && generation < last)
      report('notifications are in order', `${client.plan.name}: ${generation} after ${last}`);
    bodies.set(generation, body);
    last = Math.max(last, generation);
  }
  // What was lost and folded again is delivered twice.
  if ([...bodies.keys()].some(lostGenerations(facts))) return;
  if (!client.isWebhookAcknowledged || client.plan.webhook !== 'with the message' || last < aggregate.generation) return;
  const events = [...bodies].sort(([a], [b]) => a - b).map(([, body]) => JSON.parse(body) as StreamResponse);
  const delivered = textOfEvents(events);
  const stored = textOfEvents(facts.filter(isVisible).map(({ event }) => event));
  if (delivered !== stored)
    report('an acknowledged webhook gets every event', `${client.plan.name}: ${JSON.stringify(delivered)}`);
}

/** Text of all artifacts, in order of the events. */
function textOfEvents(events: readonly StreamResponse[]): string {
  const texts = new Map<string, string>();
  for (const event of events) {
    if (!('artifactUpdate' in event)) continue;
    const { artifact, append } = event.artifactUpdate;
    texts.set(artifact.artifactId, (append ? (texts.get(artifact.artifactId) ?? '') : '') + textOf(artifact.parts));
  }
  return JSON.stringify([...texts]);
}
