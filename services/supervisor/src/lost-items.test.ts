import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import type { AgentInput } from '@hopline/events';
import { type InputWriter, LogFull } from '@hopline/log';
import { abandonLostItems, ITEM_LOST, LOST_ITEMS_CHECK_MS } from './lost-items.ts';
import type { TurnView } from './turn-view.ts';

/** Two open calls. The test decides whose items are in the log. */
function watched(t: TestContext) {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const inputs: AgentInput[] = [];
  const asked: string[] = [];
  const stop = new AbortController();
  const items = new Map<string, boolean | Error>([
    ['agent.writer', true],
    ['agent.reader', true],
  ]);
  const isFull = { value: false };
  const producers: Record<string, { attempt: number; n: number }> = {};
  /** The producers in the log, if this process does not know them yet. */
  const stored: { producers?: Record<string, { attempt: number; n: number }> } = {};
  const view = {
    calls: ['call-1-1', 'call-1-2'],
    ended: () => undefined,
    agentOf: (call: string) => (call === 'call-1-1' ? 'writer' : 'reader'),
    needsCredentials: (call: string) => call === 'call-1-2',
    aggregate: { producers },
  };
  /** Calls that can be queued again. */
  const requestable = new Set<string>();
  const requested: string[] = [];
  const watching = abandonLostItems({
    view: view as unknown as TurnView,
    writer: { add: (input: AgentInput) => void inputs.push(input) } as unknown as InputWriter,
    signal: stop.signal,
    log: {
      work: {
        hasItem: async (role: string) => {
          asked.push(role);
          const has = items.get(role);
          if (has instanceof Error) throw has;
          return has;
        },
      },
      facts: { last: async () => ({ record: { aggregate: { producers: stored.producers ?? producers } } }) },
    } as unknown as Parameters<typeof abandonLostItems>[0]['log'],
    taskId: 't',
    items: {
      queueLost: async call => {
        requested.push(call);
        if (isFull.value) throw new LogFull('full');
        return requestable.delete(call);
      },
    },
    checkMs: LOST_ITEMS_CHECK_MS,
  });
  t.after(async () => {
    stop.abort();
    await watching;
  });
  const check = async (afterMs = LOST_ITEMS_CHECK_MS) => {
    t.mock.timers.tick(afterMs);
    for (let turns = 0; turns < 10; turns += 1) await setImmediate();
  };
  return { inputs, asked, items, producers, stored, requestable, requested, isFull, check };
}

const lost = (call: string) => ({ kind: 'ended', call, state: 'TASK_STATE_FAILED', reason: ITEM_LOST, retryable: true });

test('a call ends once, with a reason, if its agent wrote nothing for a whole interval and its item is gone', async t => {
  const { inputs, items, check } = watched(t);
  items.set('agent.writer', false);
  await check();
  await check(LOST_ITEMS_CHECK_MS - 1);
  assert.deepEqual(inputs, [], 'one millisecond earlier');
  await check(1);
  assert.deepEqual(inputs, [lost('call-1-1')]);
  await check();
  assert.deepEqual(inputs, [lost('call-1-1')]);
});

test('ending a call that waits for credentials ends that wait too', async t => {
  const { inputs, items, check } = watched(t);
  items.set('agent.reader', false);
  await check();
  await check();
  assert.deepEqual(inputs, [{ kind: 'status', state: 'TASK_STATE_WORKING' }, lost('call-1-2')]);
});

test('the item of an agent that writes is not looked up', async t => {
  const { inputs, asked, items, producers, check } = watched(t);
  for (const role of items.keys()) items.set(role, false);
  for (let n = 1; n <= 3; n += 1) {
    for (const call of ['call-1-1', 'call-1-2']) producers[call] = { attempt: 1, n };
    await check();
  }
  assert.deepEqual([inputs, asked], [[], []]);
});

test('a missing item is first queued again, and the call ends if it is missing again; a full queue changes nothing', async t => {
  const { inputs, items, requestable, requested, isFull, check } = watched(t);
  items.set('agent.writer', false);
  requestable.add('call-1-1');
  isFull.value = true;
  await check();
  await check();
  isFull.value = false;
  await check();
  assert.deepEqual([requested, inputs], [['call-1-1', 'call-1-1'], []]);
  items.set('agent.writer', true);
  await check();
  assert.deepEqual([requested.length, inputs], [2, []]);
  items.set('agent.writer', false);
  await check();
  assert.deepEqual(inputs, [lost('call-1-1')]);
});

test('a process that was suspended does not end the call of an agent that has finished in the meantime', async t => {
  const { inputs, items, stored, check } = watched(t);
  await check();
  stored.producers = { 'call-1-1': { attempt: 1, n: 9 } };
  items.set('agent.writer', false);
  await check();
  assert.deepEqual(inputs, []);
  stored.producers = {};
  await check();
  assert.deepEqual(inputs, [lost('call-1-1')]);
});

test('while the log is unavailable, a call stays open until a later check', async t => {
  const { inputs, items, check } = watched(t);
  items.set('agent.writer', new Error('away'));
  await check();
  await check();
  assert.deepEqual(inputs, []);
  items.set('agent.writer', false);
  await check();
  assert.deepEqual(inputs, [lost('call-1-1')]);
});
