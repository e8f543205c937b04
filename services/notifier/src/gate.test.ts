import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Gate, HostGates } from './gate.ts';

const never = new AbortController().signal;
const tick = () => new Promise(resolve => setImmediate(resolve));

test('so many at a time, the others in order, each place once', async () => {
  const gate = new Gate(2);
  const [first, second] = [await gate.enter(never), await gate.enter(never)];
  const entered: number[] = [];
  const leaves = [3, 4, 5].map(n =>
    gate.enter(never).then(leave => {
      entered.push(n);
      return leave!;
    }),
  );
  await tick();
  assert.deepEqual(entered, []);
  first!();
  first!();
  await tick();
  assert.deepEqual(entered, [3]);
  second!();
  await tick();
  assert.deepEqual(entered, [3, 4]);
  (await leaves[0]!)();
  (await leaves[2]!)();
  assert.deepEqual(entered, [3, 4, 5]);
});

test('who gives up waiting takes no place', async () => {
  const gate = new Gate(1);
  const leave = await gate.enter(never);
  const patience = new AbortController();
  const impatient = gate.enter(patience.signal);
  const next = gate.enter(never);
  patience.abort();
  assert.equal(await impatient, undefined);
  leave!();
  assert.ok(await next);
  assert.equal(await gate.enter(AbortSignal.abort()), undefined);
});

test('hosts do not wait for each other, and a host nobody uses is forgotten', async () => {
  const gates = new HostGates(1);
  const slow = await gates.enter('slow', never);
  const waiting = new AbortController();
  const second = gates.enter('slow', waiting.signal);
  const other = await gates.enter('other', never);
  assert.ok(other);
  assert.equal(gates.size, 2);
  waiting.abort();
  assert.equal(await second, undefined);
  slow!();
  other();
  other();
  assert.equal(gates.size, 0);
});
