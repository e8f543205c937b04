import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AgentTurn } from '@hopline/agent';
import type { AgentScript } from '../support/agents/scripted-agent.ts';
import { verifyAttempts } from '../support/task-promises.ts';
import { AgentRuns } from './agent-runs.ts';
import { Random } from './random.ts';
import { Situations } from './situations.ts';
import { VirtualClock, VirtualProcess } from './virtual-clock.ts';

const TURN = { message: { messageId: 'm1', taskId: 'task' }, attempt: 1 } as AgentTurn;
const SCRIPT: AgentScript = { tokens: 3, everyMs: 10, end: 'done' };

/** Two processes receive the first delivery of an item, at 100 and 300 ms. Both run the agent from 500 ms on. */
async function verdict(forgottenAt: number[], { hasEarlierTurn = false } = {}): Promise<{ broken: number; repeated: number }> {
  const clock = new VirtualClock(new Random(1));
  const runs = new AgentRuns(clock, new Situations());
  const processes = ['writer-1', 'writer-2'].map(name => new VirtualProcess(name));
  const item = { taskId: 'task', deliveries: 1 };
  for (const [index, process] of processes.entries()) {
    if (hasEarlierTurn) clock.after(10, () => runs.delivered(process.name, 'writer', { ...item, seq: 1 }));
    clock.after(100 + 200 * index, () => runs.delivered(process.name, 'writer', { ...item, seq: 2 }));
    clock.as(process, () => clock.after(500 + index, () => runs.begin('writer', TURN, SCRIPT)));
  }
  await clock.run(() => false, 1_000);
  let [broken, repeated] = [0, 0];
  verifyAttempts(runs.all, () => (broken += 1), { at: forgottenAt, onRepeated: () => (repeated += 1) });
  return { broken, repeated };
}

test('an attempt may run twice at once if its deliveries were forgotten between the two, whenever the runs begin', async () => {
  assert.deepEqual(await verdict([200]), { broken: 0, repeated: 1 });
});

test('an attempt may not run twice at once if deliveries were forgotten before or after both, or never', async () => {
  for (const at of [[], [50], [400]]) assert.deepEqual(await verdict(at), { broken: 1, repeated: 0 });
});

test('the delivery of an earlier turn does not count', async () => {
  assert.deepEqual(await verdict([50], { hasEarlierTurn: true }), { broken: 1, repeated: 0 });
});
