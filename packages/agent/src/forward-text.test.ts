import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AgentEvent } from './agent.ts';
import { runTurn } from './run-turn.ts';
import { quiet, scripted, TaskLog } from './task-log.test-kit.ts';

async function run(mode: 'caipe' | 'transparent', events: AgentEvent[]) {
  const task = await TaskLog.create(mode);
  const signal = new AbortController().signal;
  await runTurn(
    { log: task.log, agent: scripted(events), name: 'argocd', logger: quiet, signal, forwardText: false },
    task.job(),
  );
  return { task, fold: await task.fold() };
}

const data = { artifactId: 'd', name: 'table', parts: [{ text: ' And.' }, { data: { a: 1 } }] };

test('text that is not forwarded reaches the supervisor once and complete, with the end of the call; the rest is shown [S2-9 C-5]', async () => {
  const { task, fold } = await run('caipe', [
    { type: 'text', text: 'wrong' },
    { type: 'snapshot', text: 'right ✅' },
    { type: 'tool', phase: 'start', callId: '1', tool: 'x' },
    { type: 'artifact', artifact: data, append: false, lastChunk: true },
    { type: 'done', message: { messageId: 'm', role: 'ROLE_AGENT', parts: [{ text: 'right ✅ And.' }] } },
  ]);
  assert.equal(task.ended()?.withheldText, 'right ✅ And.');
  assert.equal(task.ended()?.message, undefined);
  assert.equal(fold.textOf('streaming_result'), '');
  assert.ok(!JSON.stringify([...fold.artifacts.values()]).includes('right'));
  assert.deepEqual(
    [...fold.artifacts.values()].map(({ name }) => name),
    ['tool_notification_start', 'table', 'tool_notification_end'],
  );
});

test('concurrent texts that are not forwarded are withheld completely, in the order in which they began; other artifacts are shown [S2-9 C-5]', async () => {
  const thought = { artifactId: 'r', name: 'reasoning', parts: [{ text: 'Hm.' }] };
  const { task, fold } = await run('caipe', [
    { type: 'text', text: 'on', stream: 'a' },
    { type: 'text', text: 'tw', stream: 'b' },
    { type: 'artifact', artifact: thought, append: false, lastChunk: true, apart: true },
    { type: 'text', text: 'e ', stream: 'a' },
    { type: 'text-end', stream: 'a' },
    { type: 'text', text: 'o ', stream: 'b' },
    { type: 'text', text: 'loose' },
    { type: 'done' },
  ]);
  assert.equal(task.ended()?.withheldText, 'one two loose');
  assert.equal(fold.textOf('streaming_result'), '');
  assert.equal(fold.textOf('reasoning'), 'Hm.');
  const replaced = await run('caipe', [
    { type: 'text', text: 'one', stream: 'a' },
    { type: 'text', text: 'two', stream: 'b' },
    { type: 'done', standing: 'replaces', message: { messageId: 'm', role: 'ROLE_AGENT', parts: [{ text: 'three' }] } },
  ]);
  assert.equal(replaced.task.ended()?.withheldText, 'three');
  assert.equal(replaced.task.ended()?.message, undefined);
  assert.equal(replaced.fold.artifacts.size, 0);
});

test('text that is not forwarded is limited to what fits into one event', async () => {
  const task = await TaskLog.create('caipe');
  const unitsMax = Math.floor(Math.floor(task.log.recordBytesMax * 0.5) / 6);
  const edge = await run('caipe', [{ type: 'text', text: 'x'.repeat(unitsMax) }, { type: 'done' }]);
  assert.equal(edge.task.ended()?.withheldText?.length, unitsMax);
  const over = await run('caipe', [{ type: 'text', text: 'x'.repeat(unitsMax + 1) }, { type: 'done' }]);
  assert.equal(over.task.ended()?.reason, `the agent sent more than ${unitsMax} characters of text that is not forwarded`);
  const two = (...texts: string[]): AgentEvent[] => texts.map((text, index) => ({ type: 'text', text, stream: String(index) }));
  const whole = await run('caipe', [...two('x'.repeat(unitsMax - 1), 'y'), { type: 'done' }]);
  assert.equal(whole.task.ended()?.withheldText?.length, unitsMax);
  const beyond = await run('caipe', [...two('x'.repeat(unitsMax - 1), 'yz'), { type: 'done' }]);
  assert.equal(beyond.task.ended()?.state, 'TASK_STATE_FAILED');
  // The part of the text that is kept still fits into the event.
  assert.equal(beyond.task.ended()?.withheldText?.length, unitsMax - 1);
  const shorter = await run('caipe', [
    { type: 'text', text: 'x'.repeat(unitsMax) },
    { type: 'snapshot', text: 'y' },
    { type: 'done' },
  ]);
  assert.equal(shorter.task.ended()?.withheldText, 'y');
});

test('profile transparent shows everything that an agent sends, whatever its policy', async () => {
  const { fold } = await run('transparent', [{ type: 'text', text: 'hello' }, { type: 'done' }]);
  assert.equal(fold.textOf('response'), 'hello');
});
