import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isTerminal } from '@hopline/a2a';
import { type Job, putTask } from '@hopline/log';
import { createMemoryLog, type MemoryLog } from '@hopline/log/memory';
import { WORK_LOST } from '@hopline/task';
import { until } from '../../../test/kit/until.ts';
import { LostTurns, UNBEGUN_SILENT_MS, WAITING_SILENT_MS } from './lost-turns.ts';
import { logger, relayOn, sendMessage, storedWhen, write, writerOf } from './relay.test-kit.ts';

const TIMEOUT = { timeout: 120_000 };
const TIMES = { checkMs: 20, unbegunSilentMs: 150, begunSilentMs: 400 };
const NEVER_MS = 3_600_000;
const WORKS = { kind: 'status', state: 'TASK_STATE_WORKING' } as const;
const ASKS = { kind: 'status', state: 'TASK_STATE_INPUT_REQUIRED' } as const;

/** Takes items and settles them silently, like a server that loses them. */
function lose(log: MemoryLog, role = 'agent.echo' as const) {
  const stop = new AbortController();
  const jobs: Job[] = [];
  const taking = log.work.take(role, { slots: 8, signal: stop.signal }, async job => {
    jobs.push(job);
  });
  return {
    jobs,
    stop: async () => {
      stop.abort();
      await taking;
    },
  };
}

/** A worker takes the item of a new task, which is then lost, and writes that it is working. */
async function beginAndLose(log: MemoryLog): Promise<void> {
  const lost = lose(log);
  await sendMessage(log);
  await until(() => lost.jobs.length > 0);
  await lost.stop();
  await write(writerOf(log), WORKS);
}

test('the work of a turn that has not begun is queued again with its message, its metadata and its owner', TIMEOUT, async () => {
  const log = createMemoryLog();
  const relay = await relayOn(log.another(), { lostTurns: TIMES });
  const owner = { tenant: 'one', subject: 'ada' };
  const lost = lose(log);
  await sendMessage(log, 't', { messageId: 'm1', text: 'hello', owner });
  await until(() => lost.jobs.length > 1, 'the item is queued again');
  await lost.stop();
  const [first, second] = lost.jobs.map(({ work: { queuedAt: _queuedAt, newest: _newest, ...work } }) => work);
  assert.deepEqual(second, first);
  assert.deepEqual(second!.owner, owner);
  await relay.stop();
});

test('the work of a later turn is queued again with the message that began it', TIMEOUT, async () => {
  const log = createMemoryLog();
  const relay = await relayOn(log.another(), { lostTurns: TIMES });
  await sendMessage(log, 't', { messageId: 'm1' });
  await write(writerOf(log), ASKS);
  await storedWhen(log, ({ aggregate }) => aggregate.state === ASKS.state);
  const lost = lose(log);
  await until(() => lost.jobs.length > 0);
  lost.jobs.length = 0;
  const message = { messageId: 'm2', role: 'ROLE_USER' as const, parts: [{ text: 'the answer' }] };
  const input = {
    kind: 'message',
    message,
    contextId: 'c',
    role: 'agent.echo',
    profile: 'transparent',
    continues: true,
  } as const;
  await log.inputs.append('t', { v: 1, at: Date.now(), from: 'client', input }, { id: 't:msg:m2' });
  await until(() => lost.jobs.length > 1, 'the item is queued again');
  await lost.stop();
  assert.deepEqual(new Set(lost.jobs.map(({ work }) => `${work.turn} ${work.message.messageId}`)), new Set(['2 m2']));
  await relay.stop();
});

test('a turn that had begun fails as retryable when its work item is gone', TIMEOUT, async () => {
  const log = createMemoryLog();
  const relay = await relayOn(log.another(), { lostTurns: TIMES });
  await beginAndLose(log);
  const { facts } = (await storedWhen(log, ({ aggregate }) => isTerminal(aggregate.state))).record;
  const { status, metadata } = facts.findLast(fact => fact.kind === 'status.changed')!.event.statusUpdate;
  assert.deepEqual([status.state, metadata?.reason, metadata?.retryable], ['TASK_STATE_FAILED', WORK_LOST, true]);
  await relay.stop();
});

test('a turn also fails if the log has lost its question while the index still shows it', TIMEOUT, async () => {
  const log = createMemoryLog();
  const first = await relayOn(log.another());
  await beginAndLose(log);
  await storedWhen(log, ({ aggregate }) => aggregate.state === WORKS.state);
  await until(async () => (await log.tasks.get('t'))?.value.state === WORKS.state);
  await first.stop();
  const { value: entry } = (await log.tasks.get('t'))!;
  const asked = { ...entry, state: ASKS.state, generation: entry.generation + 1, inputRequest: { n: 1, at: entry.at } };
  await putTask(log, 't', asked);
  const relay = await relayOn(log.another(), { lostTurns: { ...TIMES, waitingSilentMs: 300 } });
  await storedWhen(log, ({ aggregate }) => aggregate.state === 'TASK_STATE_FAILED');
  await relay.stop();
});

test('a turn also fails if the log has lost its end while the index still shows it', TIMEOUT, async () => {
  const log = createMemoryLog({ shards: 1 });
  const first = await relayOn(log.another());
  await beginAndLose(log);
  const { seq } = await storedWhen(log, ({ aggregate }) => aggregate.state === WORKS.state);
  await until(async () => (await log.tasks.get('t'))?.value.state === WORKS.state);
  await sendMessage(log, 'later');
  await storedWhen(log, ({ aggregate }) => aggregate.generation > 0, 'later');
  await first.stop();
  const { value: entry } = (await log.tasks.get('t'))!;
  await putTask(log, 't', { ...entry, state: 'TASK_STATE_COMPLETED', generation: entry.generation + 1, seq: seq + 1 });
  log.loseFacts(seq);
  const relay = await relayOn(log.another(), { lostTurns: TIMES });
  await storedWhen(log, ({ aggregate }) => aggregate.state === 'TASK_STATE_FAILED');
  await until(async () => (await log.tasks.get('t'))?.value.state === 'TASK_STATE_FAILED');
  await relay.stop();
});

test('a silent turn is left alone if its item is in the queue or at a worker', TIMEOUT, async () => {
  const log = createMemoryLog();
  const looks: string[] = [];
  const processLog = log.another();
  const { hasItem } = processLog.work;
  processLog.work.hasItem = async (role, taskId) => {
    const found = await hasItem.call(processLog.work, role, taskId);
    looks.push(`${taskId} ${found}`);
    return found;
  };
  const relay = await relayOn(processLog, { lostTurns: TIMES });
  await sendMessage(log, 'waits');
  await until(() => looks.length > 2);
  const stop = new AbortController();
  const { promise: end, resolve } = Promise.withResolvers<void>();
  let attempts = 0;
  const taking = log.work.take('agent.echo', { slots: 1, signal: stop.signal }, async () => {
    attempts += 1;
    await end;
  });
  await until(() => attempts > 0);
  const before = looks.length;
  await until(() => looks.length > before + 2);
  assert.deepEqual([new Set(looks), attempts], [new Set(['waits true']), 1]);
  resolve();
  stop.abort();
  await taking;
  await relay.stop();
});

test(
  'a turn is examined once UNBEGUN_SILENT_MS, or WAITING_SILENT_MS, has passed since its last change, and not a millisecond earlier',
  TIMEOUT,
  async () => {
    const log = createMemoryLog();
    const relay = await relayOn(log.another());
    await sendMessage(log);
    await until(async () => ((await log.tasks.get('t'))?.value.generation ?? 0) > 0);
    await relay.stop();
    const { value: entry, revision } = (await log.tasks.get('t'))!;
    const { at } = (await log.facts.last('t'))!.record.aggregate;
    const asked = { ...entry, state: ASKS.state };
    const since = Math.max(at, entry.at);
    for (const [nowMs, entryNow, expected] of [
      [since + UNBEGUN_SILENT_MS - 1, entry, 0],
      [since + UNBEGUN_SILENT_MS, entry, 1],
      [since + WAITING_SILENT_MS - 1, asked, 0],
      [since + WAITING_SILENT_MS, asked, 1],
    ] as const) {
      let [checks, looks] = [0, 0];
      const { promise: checked, resolve } = Promise.withResolvers<void>();
      const turns = new LostTurns({
        log: {
          ...log,
          work: {
            ...log.work,
            hasItem: async () => {
              looks += 1;
              return true;
            },
          } as typeof log.work,
        },
        tasks: {
          get open() {
            // The first check has ended when the second one begins.
            checks += 1;
            if (checks > 1) resolve();
            return new Map([['t', { entry: entryNow, revision }]]);
          },
        },
        owns: () => true,
        isBusy: () => false,
        now: () => nowMs,
        logger,
        ...TIMES,
        unbegunSilentMs: UNBEGUN_SILENT_MS,
        begunSilentMs: NEVER_MS,
        waitingSilentMs: WAITING_SILENT_MS,
      });
      await checked;
      turns.stop();
      assert.equal(looks, expected);
    }
  },
);
