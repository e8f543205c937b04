import { epochOffsetMs, monotonicMs } from '../measure/clock.ts';
import { answerCalls } from '../measure/load-process.ts';
import { WIRES, type WireName } from '../remote-server/wires.ts';
import { stampsIn } from '../tokens.ts';
import { Answer, type AnswerReport } from './answer.ts';
import { ReturningViewers } from './returning-viewers.ts';
import { SseConnection } from './sse-connection.ts';

/** The clients of the bench: senders that read their streams, and watchers. */

type SentTask = { answer: Answer; connection: SseConnection };
let asked: SentTask[] = [];
let watching: SseConnection[] = [];
let sightings: { stampMs: number[]; atMs: number[]; seq: number[] } = { stampMs: [], atMs: [], seq: [] };

/** `agent`: the agent that a cluster calls. `wire`: A2A 1.0 by default. `webhook`: the webhook of the task, only in A2A 1.0. */
type Question = {
  url: string;
  text: string;
  artifact: string;
  wire?: WireName;
  agent?: string;
  tenant?: string;
  webhook?: string;
};
export type AskParams = Question & { count: number; staggerMs?: number };

/** Sends `count` messages and reads their streams; resolves with the task ids when each has its task. */
async function ask({ count, staggerMs = 0, ...question }: AskParams): Promise<string[]> {
  const firsts: Promise<void>[] = [];
  for (let index = 0; index < count; index++) {
    const { task, begun } = send(question);
    asked.push(task);
    firsts.push(begun);
    if (staggerMs > 0) await new Promise(resolve => setTimeout(resolve, staggerMs));
  }
  await Promise.all(firsts);
  return asked.slice(-count).map(({ answer }) => answer.taskId);
}

/** Sends one message. `begun` resolves when it has its task, or has ended. */
function send({ url, text, artifact, wire: name = 'a2a-1.0', agent, tenant, webhook }: Question): {
  task: SentTask;
  begun: Promise<void>;
} {
  const first = Promise.withResolvers<void>();
  const wire = WIRES[name];
  const body = wire.body(text);
  if (agent !== undefined || tenant !== undefined)
    body.params = { ...(body.params as object), ...(agent && { metadata: { agent } }), ...(tenant && { tenant }) };
  if (webhook !== undefined)
    body.params = { ...(body.params as object), configuration: { taskPushNotificationConfig: { url: webhook } } };
  const answer = new Answer(wire, artifact, monotonicMs());
  const connection = new SseConnection({ url, body }, (frame, atMs) => {
    try {
      answer.take(frame, atMs);
      if (answer.taskId !== '') first.resolve();
    } catch (error) {
      first.reject(error);
      connection.leave();
    }
  });
  connection.ended.then(first.resolve, first.reject);
  return { task: { answer, connection }, begun: first.promise };
}

export type RunsParams = Question & { count: number; atOnce: number; tokens: number };

/** Asks `count` questions, `atOnce` at a time, each to its end. Resolves with all reports, in the order of their ends. */
async function runs({ count, atOnce, tokens, ...question }: RunsParams): Promise<AnswerReport[]> {
  const reports: AnswerReport[] = [];
  let left = count;
  const work = async () => {
    while (left-- > 0) {
      const { task, begun } = send(question);
      await begun;
      await task.connection.ended;
      reports.push(task.answer.report(tokens));
    }
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  return reports;
}

/** Waits for the end of all sent tasks. */
async function answers({ tokens }: { tokens: number }): Promise<AnswerReport[]> {
  const all = asked;
  await Promise.all(all.map(({ connection }) => connection.ended));
  asked = [];
  return all.map(({ answer }) => answer.report(tokens));
}

/** Waits until the stream of a task has ended. Resolves with the monotonic time of its terminal state. */
async function ended({ taskId }: { taskId: string }): Promise<number> {
  const one = asked.find(({ answer }) => answer.taskId === taskId);
  if (one === undefined) throw new Error('this client did not send the task');
  await one.connection.ended;
  return one.answer.endedAtMs;
}

export type WatchParams = { url: string; count: number; taskId?: string };

/** Opens `count` watching streams; resolves after the first frame of each. */
async function watch({ url, count, taskId }: WatchParams): Promise<void> {
  const body = taskId === undefined ? undefined : { jsonrpc: '2.0', id: 1, method: 'SubscribeToTask', params: { id: taskId } };
  const opened = Array.from({ length: count }, () => {
    const first = Promise.withResolvers<void>();
    const connection = new SseConnection({ url, ...(body && { body }) }, (frame, atMs) => {
      see(frame, atMs);
      if (!frame.startsWith(':')) first.resolve();
    });
    connection.ended.then(first.resolve, first.reject);
    watching.push(connection);
    return first.promise;
  });
  await Promise.all(opened);
}

function see(frame: string, atMs: number): void {
  for (const stampMs of stampsIn(frame)) {
    const seq = /^id: \d+\.(\d+)/.exec(frame)?.[1];
    sightings.stampMs.push(stampMs);
    sightings.atMs.push(atMs);
    sightings.seq.push(seq === undefined ? 0 : Number(seq));
  }
}

export type Sightings = { sincePublishedMs: Float64Array; seq: Float64Array; atEpochMs: Float64Array };

const SIGHTED_MS_MAX = 5_000;

/**
 * At most `count` events that the watchers have received since the last call: the delay of each stamped token, and the time and record of
 * its frame.
 */
async function sighted({ count }: { count: number }): Promise<Sightings> {
  for (const untilMs = monotonicMs() + SIGHTED_MS_MAX; sightings.seq.length < count && monotonicMs() < untilMs; ) {
    await new Promise(resolve => setTimeout(resolve, 20));
  }
  const { stampMs, atMs, seq } = sightings;
  sightings = { stampMs: [], atMs: [], seq: [] };
  const offsetMs = epochOffsetMs();
  return {
    sincePublishedMs: Float64Array.from(atMs, (at, index) => at - stampMs[index]!),
    seq: Float64Array.from(seq),
    atEpochMs: Float64Array.from(atMs, at => at + offsetMs),
  };
}

const returning = new ReturningViewers();

const comeBack = (params: { url: string; taskId: string; count: number }) => returning.add(params);
const returned = ({ sinceMs }: { sinceMs: number }) => returning.returned(sinceMs);
const received = ({ events }: { events: number }) => returning.received(events);

/** Closes all streams. */
async function leave(): Promise<void> {
  for (const connection of [...watching, ...asked.map(({ connection: open }) => open)]) {
    connection.ended.catch(() => {});
    connection.leave();
  }
  watching = [];
  asked = [];
}

const methods = { ask, runs, answers, ended, watch, sighted, comeBack, returned, received, leave };
export type ClientMethods = typeof methods;

answerCalls(methods);
