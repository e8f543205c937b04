import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { isTerminal } from '@hopline/a2a';
import type { A2AServerOptions } from '@hopline/a2a-server';
import type { Log } from '@hopline/log';
import { call, openRig, type Rig, sendParams, userMessage } from '../../packages/a2a-http/src/http-server.test-kit.ts';
import { until } from '../kit/until.ts';
import type { Known } from './placeholders.ts';

/** Small limits, so that a fuzzer exceeds them, and does not wait. */
const LONG_POLL_MS = 20;
/** Wait for a cursor beyond the task. */
const REFOLD_MS = 20;
const BODY_BYTES_MAX = 64 * 1024;
const RECORD_BYTES_MAX = 48 * 1024;
/** Lifetime of a feed after its last viewer. */
const LINGER_MS = 50;

/** Allowed origin. */
export const PAGE_ORIGIN = 'https://page.example';

export type MemoryServers = {
  /** Two replicas on one log; `writes` counts theirs, not the relay's. */
  replicas: [Rig, Rig];
  /** The tasks that requests may name. A waiting task is replaced once it has ended. */
  known(): Promise<Known>;
  /** Number of successful writes of the replicas. */
  writes(): number;
  /** Number of open streams, waits and subscriptions of both replicas. */
  open(): number;
  /** Waits until no stream, wait or subscription is open. */
  settled(): Promise<void>;
};

/** Two server replicas with all features enabled, a log in memory, and an agent that asks a question. */
export async function openMemoryServers(t: TestContext, options: Partial<A2AServerOptions> = {}): Promise<MemoryServers> {
  const limits = {
    bodyBytesMax: BODY_BYTES_MAX,
    feedLingerMs: LINGER_MS,
    idleFeedsMax: 4,
    longPollMsMax: LONG_POLL_MS,
    refoldMsMax: REFOLD_MS,
    ...options.limits,
  };
  const rig = await openRig(t, {
    push: true,
    outputModes: () => ['text/plain'],
    cors: { origins: [PAGE_ORIGIN], requestHeaders: ['x-api-key'] },
    memory: { recordBytesMax: RECORD_BYTES_MAX },
    ...options,
    limits,
  });
  rig.relay.onClient = async (taskId, { state }) => {
    if (!isTerminal(state)) await rig.relay.end(taskId, 'INPUT_REQUIRED');
  };
  let waiting = await taskOf(rig);
  const ended = await taskOf(rig);
  await rig.relay.end(ended);
  const replicas: [Rig, Rig] = [await rig.another(), await rig.another()];
  const counted = replicas.map(({ log }) => countWrites(log));
  const open = () => replicas.reduce((sum, one) => sum + one.open() + one.following(), 0);
  return {
    replicas,
    known: async () => {
      if (isTerminal(rig.relay.aggregate(waiting).state)) waiting = await taskOf(rig);
      return { waiting, ended };
    },
    writes: () => counted.reduce((sum, count) => sum + count(), 0),
    open,
    settled: async () => {
      await until(
        () => open() === 0,
        () => `${open()} streams, waits or subscriptions are still open`,
      );
    },
  };
}

async function taskOf(rig: Rig): Promise<string> {
  const { result } = await call(rig, 'send', sendParams(userMessage('x')));
  assert.equal(result.task.status.state, 'TASK_STATE_INPUT_REQUIRED');
  const taskId: string = result.task.id;
  await call(rig, 'createPush', { taskId, id: 'hook', url: 'https://hooks.example.org/' });
  return taskId;
}

const WRITERS = ['append', 'put', 'create', 'update', 'delete', 'request'];

/** Counts successful writes; a failed claim is not a write. */
export function countWrites(log: Log): () => number {
  let writes = 0;
  for (const part of Object.values(log) as unknown[]) {
    if (typeof part !== 'object' || part === null) continue;
    const methods = part as Record<string, unknown>;
    for (const name of WRITERS) {
      const write = methods[name];
      if (typeof write !== 'function') continue;
      methods[name] = async (...args: unknown[]) => {
        const written: unknown = await write.apply(part, args);
        writes += 1;
        return written;
      };
    }
  }
  return () => writes;
}
