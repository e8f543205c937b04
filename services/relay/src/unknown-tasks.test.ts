import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { UNKNOWN_BYTES_MAX, UNKNOWN_TASKS_MAX, UnknownTasks } from './unknown-tasks.ts';

/** Looks that the test ends, and the names of those that have begun. */
function looks() {
  const tasks = new UnknownTasks();
  const begun: string[] = [];
  const open = new Map<string, () => void>();
  const admit = (agent: string, name: string, bytes = 1) =>
    tasks.admit(`agent.${agent}`, bytes, () => {
      begun.push(name);
      return new Promise<void>(resolve => open.set(name, resolve));
    });
  const end = async (name: string) => {
    open.get(name)!();
    await nextTurn();
  };
  return { admit, begun, end };
}

test('the looks for one agent happen one after another, and those for another agent do not wait for them', async () => {
  const { admit, begun, end } = looks();
  admit('a', 'a1');
  admit('a', 'a2');
  admit('b', 'b1');
  assert.deepEqual(begun, ['a1', 'b1']);
  await end('a1');
  assert.deepEqual(begun, ['a1', 'b1', 'a2']);
  await end('a2');
  admit('a', 'a3');
  assert.deepEqual(begun, ['a1', 'b1', 'a2', 'a3']);
});

test('an agent has at most 1,024 unknown tasks; another agent is not affected, and a look that ends leaves room', async () => {
  const { admit, end } = looks();
  for (let n = 0; n < UNKNOWN_TASKS_MAX; n += 1) assert.ok(admit('a', `a${n}`));
  assert.equal(admit('a', 'more'), undefined);
  assert.ok(admit('b', 'b'));
  await end('a0');
  assert.ok(admit('a', 'more'));
  assert.equal(admit('a', 'too many'), undefined);
});

test('the inputs of an agent that wait for looks have at most 4 MiB together, further inputs of a task included', async () => {
  const { admit, end } = looks();
  const first = admit('a', 'first', UNKNOWN_BYTES_MAX - 10)!;
  assert.ok(first.add(10));
  assert.equal(first.add(1), false);
  assert.equal(admit('a', 'second', 1), undefined);
  await end('first');
  assert.ok(admit('a', 'second', UNKNOWN_BYTES_MAX));
});
