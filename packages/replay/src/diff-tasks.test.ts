import assert from 'node:assert/strict';
import { test } from 'node:test';
import { diffTasks } from './diff-tasks.ts';
import { agent, call, close, ended, open, plainAnswer, status, supervisor, TaskBuilder, text } from './stored-task.test-kit.ts';

const answer = (...tokens: string[]) =>
  new TaskBuilder()
    .message()
    .send(supervisor(), status('TASK_STATE_WORKING'), call)
    .send(agent(), open(), text('a', ...tokens), close(), ended);

test('the same answer in other chunks and at other times is equal', () => {
  const { same, differences, a, b } = diffTasks(
    plainAnswer().stored({ eventCostMs: 0 }),
    plainAnswer().stored({ eventCostMs: 2_000 }),
  );
  assert.deepEqual([same, differences], [true, []]);
  assert.ok(a.frames > b.frames && a.tokens === b.tokens && a.characters === b.characters);
  assert.deepEqual([a.calls, a.firstTextMs], [[{ agent: 'writer', ms: 255 }], 50]);
});

test("the first text comes from an agent, not from the supervisor's plan", () => {
  const planned = new TaskBuilder()
    .message()
    .after(10)
    .send(supervisor(), open('plan'), text('plan', '1. Writer'), close('plan'), call)
    .after(500)
    .send(agent(), open(), text('a', 'yes'), close(), ended)
    .stored();
  assert.ok(diffTasks(planned, planned).a.firstTextMs! >= 510);
});

test('different text, ends, calls and messages are named', () => {
  const done = answer('yes').send(supervisor(), status('TASK_STATE_COMPLETED', 'bye')).stored();
  const failed = answer('no').send(supervisor(), status('TASK_STATE_FAILED')).stored();
  const { same, differences } = diffTasks(done, failed);
  assert.equal(same, false);
  assert.deepEqual(differences, [
    { name: 'states', a: 'working, completed', b: 'working, failed' },
    { name: 'message 2', a: 'agent: bye', b: undefined },
    { name: 'artifact a', a: 'yes', b: 'no' },
  ]);
  const none = new TaskBuilder().message().send(supervisor(), status('TASK_STATE_COMPLETED')).stored();
  assert.deepEqual(
    diffTasks(none, done).differences.map(({ name }) => name),
    ['calls', 'message 2', 'artifact a'],
  );
});

test('an artifact that both tasks have is not a difference even if one task has more artifacts of that name', () => {
  const working = () => new TaskBuilder().message().send(supervisor(), status('TASK_STATE_WORKING'), call);
  const notice = (lane: string) => ({ ...open(lane), artifact: { name: 'notice' } });
  const sent = (...texts: string[]) =>
    working()
      .send(agent(), ...texts.flatMap((one, index) => [notice(`n${index}`), text(`n${index}`, one), close(`n${index}`)]), ended)
      .send(supervisor(), status('TASK_STATE_COMPLETED'))
      .stored();
  assert.deepEqual(diffTasks(sent('list', 'guide'), sent('guide')).differences, [
    { name: 'artifact notice 2', a: 'list', b: undefined },
  ]);
  assert.deepEqual(diffTasks(sent('guide', 'guide'), sent('guide', 'other', 'late')).differences, [
    { name: 'artifact notice 2', a: 'guide', b: 'late' },
    { name: 'artifact notice 3', a: undefined, b: 'other' },
  ]);
});

test('parts that are equal are listed, too', () => {
  const done = answer('yes').send(supervisor(), status('TASK_STATE_COMPLETED')).stored();
  assert.deepEqual(diffTasks(done, done).parts, [
    { name: 'states', a: 'working, completed', b: 'working, completed' },
    { name: 'calls', a: 'writer completed', b: 'writer completed' },
    { name: 'message 1', a: 'user: hi', b: 'user: hi' },
    { name: 'artifact a', a: 'yes', b: 'yes' },
  ]);
});
