import { setImmediate as nextTurn } from 'node:timers/promises';
import type { AgentRecord, Producer } from '@hopline/events';
import { InputWriter, type Log } from '@hopline/log';
import { openJetStreamLog } from '@hopline/log-jetstream';
import { monotonicMs } from '../measure/clock.ts';
import { answerCalls } from '../measure/load-process.ts';
import { ANSWER, stampedToken, tokenAt } from '../tokens.ts';

/** The agent of the bench: appends tokens to existing tasks, through the same writer as all agents. */

const LANE = 'answer';
/** Acts as the root producer of a task, because no supervisor runs in these clusters. */
const PRODUCER: Producer = { id: 'supervisor', agent: 'bench', turn: 1, attempt: 1 };
const TRACE = { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' };
/** Tokens per turn of the event loop, about as many as in one read of a busy socket. */
const TOKENS_PER_TURN = 128;
const TICK_MS = 2;

let log: Log;

async function connect({ servers }: { servers: string }): Promise<void> {
  log = await openJetStreamLog({ servers, name: 'bench-producer' });
}

export type PublishParams = { run: string; tasks: number; tokens: number; inFlight: number };

/** Publishes one token per message, with `inFlight` in flight; returns seconds. */
async function publish({ run, tasks, tokens, inFlight }: PublishParams): Promise<number> {
  let next = 0;
  const one = async () => {
    for (let index = next++; index < tokens; index = next++) {
      const taskId = `${run}-${index % tasks}`;
      const n = Math.floor(index / tasks) + 1;
      const inputs = [{ kind: 'text' as const, lane: LANE, tokens: [tokenAt(index)] }];
      const record: AgentRecord = { v: 1, at: Date.now(), from: PRODUCER, n, inputs };
      await log.inputs.append(taskId, record, { id: `${taskId}:supervisor:1:1:${n}`, trace: TRACE });
    }
  };
  const startMs = monotonicMs();
  await Promise.all(Array.from({ length: inFlight }, one));
  return (monotonicMs() - startMs) / 1000;
}

export type AnswerParams = {
  taskIds: string[];
  /** Tokens per task. */
  tokens: number;
  /** Pace per task; absent: as fast as the log accepts. */
  perSecond?: number;
};

/** Streams complete answers to all tasks in parallel; resolves with the monotonic start time when all are stored. */
async function answer({ taskIds, tokens, perSecond }: AnswerParams): Promise<number> {
  const startMs = monotonicMs();
  const writers = taskIds.map(begin);
  const stream = perSecond === undefined ? burst : (writer: InputWriter) => pace(writer, tokens, perSecond);
  await Promise.all(
    writers.map(async writer => {
      await stream(writer, tokens);
      writer.add({ kind: 'close', lane: LANE });
      writer.add({ kind: 'status', state: 'TASK_STATE_COMPLETED' });
      await writer.flush();
    }),
  );
  return startMs;
}

async function burst(writer: InputWriter, tokens: number): Promise<void> {
  for (let index = 0; index < tokens; index++) {
    writer.token(LANE, tokenAt(index));
    if (index % TOKENS_PER_TURN !== TOKENS_PER_TURN - 1) continue;
    await nextTurn();
    await writer.ready();
  }
}

async function pace(writer: InputWriter, tokens: number, perSecond: number): Promise<void> {
  const startMs = monotonicMs();
  for (let index = 0; index < tokens; ) {
    const due = Math.min(tokens, Math.floor(((monotonicMs() - startMs) * perSecond) / 1000) + 1);
    for (; index < due; index++) writer.token(LANE, tokenAt(index));
    await writer.ready();
    await new Promise(resolve => setTimeout(resolve, TICK_MS));
  }
}

/** Appends a token with its own time each `everyMs`. Leaves the task working. */
async function stamp({
  taskId,
  count,
  everyMs,
  chars,
}: {
  taskId: string;
  count: number;
  everyMs: number;
  chars: number;
}): Promise<void> {
  const writer = begin(taskId);
  const startMs = monotonicMs();
  for (let index = 0; index < count; index++) {
    await new Promise(resolve => setTimeout(resolve, Math.max(0, startMs + (index + 1) * everyMs - monotonicMs())));
    writer.token(LANE, stampedToken(monotonicMs(), chars));
  }
  await writer.flush();
}

const idling = new Map<string, InputWriter>();

/** Makes a task work without further events, except those of `oneMore`. */
async function idle({ taskId }: { taskId: string }): Promise<void> {
  const writer = begin(taskId);
  idling.set(taskId, writer);
  writer.token(LANE, tokenAt(0));
  await writer.flush();
}

/** Another token in each idle task. */
async function oneMore({ taskIds }: { taskIds: string[] }): Promise<void> {
  await Promise.all(
    taskIds.map(async taskId => {
      const writer = idling.get(taskId)!;
      writer.token(LANE, tokenAt(1));
      await writer.flush();
    }),
  );
}

function begin(taskId: string): InputWriter {
  const writer = new InputWriter(log.inputs, { taskId, producer: PRODUCER, trace: TRACE });
  writer.add({ kind: 'status', state: 'TASK_STATE_WORKING' });
  writer.add({ kind: 'open', lane: LANE, artifact: { name: ANSWER } });
  return writer;
}

const methods = { connect, publish, answer, stamp, idle, oneMore };
export type ProducerMethods = typeof methods;

answerCalls(methods);
