import { randomUUID } from 'node:crypto';
import { epochOffsetMs, monotonicMs } from '../measure/clock.ts';
import { answerCalls } from '../measure/load-process.ts';
import { stampsIn } from '../tokens.ts';
import { Answer, type AnswerReport } from './answer.ts';
import { SseConnection } from './sse-connection.ts';

/** The clients of the bench: senders that read their streams, and watchers. */

type SentTask = { answer: Answer; connection: SseConnection };
let asked: SentTask[] = [];
let watching: SseConnection[] = [];
let sightings: { stampMs: number[]; atMs: number[]; seq: number[] } = { stampMs: [], atMs: [], seq: [] };

export type AskParams = { url: string; text: string; artifact: string; count: number; staggerMs?: number; tenant?: string };

/** Sends `count` messages and reads their streams; resolves with the task ids when each has its task. */
async function ask({ url, text, artifact, count, staggerMs = 0, tenant }: AskParams): Promise<string[]> {
  const firsts: Promise<void>[] = [];
  for (let index = 0; index < count; index++) {
    const first = Promise.withResolvers<void>();
    const answer = new Answer(artifact, monotonicMs());
    const message = { role: 'ROLE_USER', messageId: randomUUID(), parts: [{ text }] };
    const body = {
      jsonrpc: '2.0',
      id: 1,
      method: 'SendStreamingMessage',
      params: { message, ...(tenant !== undefined && { tenant }) },
    };
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
    asked.push({ answer, connection });
    firsts.push(first.promise);
    if (staggerMs > 0) await new Promise(resolve => setTimeout(resolve, staggerMs));
  }
  await Promise.all(firsts);
  return asked.slice(-count).map(({ answer }) => answer.taskId);
}

/** Waits for the end of all sent tasks. */
async function answers({ tokens }: { tokens: number }): Promise<AnswerReport[]> {
  const all = asked;
  await Promise.all(all.map(({ connection }) => connection.ended));
  asked = [];
  return all.map(({ answer }) => answer.report(tokens));
}

/** Resolves with the monotonic time of its terminal state when the stream of this task has ended. */
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

/** Events that the watchers received since the last call, at most `count`: the delay of each stamped token, and time and record of its frame. */
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

/** Closes all streams. */
async function leave(): Promise<void> {
  for (const connection of [...watching, ...asked.map(({ connection: open }) => open)]) {
    connection.ended.catch(() => {});
    connection.leave();
  }
  watching = [];
  asked = [];
}

const methods = { ask, answers, ended, watch, sighted, leave };
export type ClientMethods = typeof methods;

answerCalls(methods);
