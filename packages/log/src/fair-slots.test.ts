import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FairSlots } from './fair-slots.ts';
import { heapWatch, SCARCE_SLOTS_MIN } from './heap-watch.ts';

type Entry = { queue: string; begun: boolean; release: () => void };

function reserve(slots: FairSlots<string>, queue: string): Entry {
  const slot = slots.reserve(queue);
  const entry = { queue, begun: false, release: slot.release };
  void slot.ready.then(() => {
    entry.begun = true;
  });
  return entry;
}

const settled = () => new Promise(resolve => setImmediate(resolve));

test('a queue has room up to its own limit and up to the slots that others have left', () => {
  const slots = new FairSlots<string>(4, queue => (queue === 'a' ? 4 : 3));
  assert.deepEqual([slots.room('a'), slots.room('b')], [4, 3]);
  const held = [reserve(slots, 'b'), reserve(slots, 'b'), reserve(slots, 'b')];
  assert.deepEqual([slots.room('a'), slots.room('b')], [1, 0]);
  held[0]!.release();
  held[0]!.release();
  assert.deepEqual([slots.room('a'), slots.room('b')], [2, 1], 'released once');
});

test('a free slot goes to the queue that runs the fewest items, or, among equals, to the one served longest ago', async () => {
  const slots = new FairSlots<string>(2, () => 2);
  const first = reserve(slots, 'a');
  const second = reserve(slots, 'a');
  const waiting = ['a', 'b', 'c', 'b'].map(queue => reserve(slots, queue));
  assert.equal(slots.room('d'), -4);
  const order: string[] = [];
  const running = [first, second];
  while (running.length > 0) {
    running.shift()!.release();
    await settled();
    for (const entry of waiting.filter(
      one => one.begun && !running.includes(one) && !order.includes(`${waiting.indexOf(one)}`),
    )) {
      order.push(`${waiting.indexOf(entry)}`);
      running.push(entry);
    }
  }
  assert.deepEqual(
    order.map(index => waiting[Number(index)]!.queue),
    ['b', 'c', 'a', 'b'],
  );
  assert.equal(slots.room('a'), 2);
});

test('an item that leaves while it waits does not take a slot; listeners are called after each change', async () => {
  const slots = new FairSlots<string>(1, () => 1);
  let changes = 0;
  const unlisten = slots.listen(() => {
    changes += 1;
  });
  const running = reserve(slots, 'a');
  const leaving = reserve(slots, 'b');
  leaving.release();
  assert.equal(slots.room('b'), 0);
  running.release();
  await settled();
  assert.deepEqual([slots.room('b'), leaving.begun, changes], [1, false, 4]);
  unlisten();
  reserve(slots, 'b');
  assert.equal(changes, 4);
});

test('a worker whose heap is nearly full takes no further items, but always runs SCARCE_SLOTS_MIN', () => {
  let nowMs = 0;
  let used = 79;
  const watch = heapWatch(
    () => nowMs,
    () => ({ used_heap_size: used, heap_size_limit: 100 }) as ReturnType<typeof import('node:v8').getHeapStatistics>,
  );
  const slots = new FairSlots<string>(1_000, () => 1_000, { isScarce: watch });
  const held = Array.from({ length: SCARCE_SLOTS_MIN }, () => reserve(slots, 'a'));
  assert.equal(slots.room('a'), 1_000 - SCARCE_SLOTS_MIN);
  used = 81;
  nowMs += 1_000;
  assert.equal(slots.room('a'), 0);
  held[0]!.release();
  assert.equal(slots.room('a'), 1_000 - SCARCE_SLOTS_MIN + 1);
});

test('a worker that cannot run items has no room, and keeps the items that it has', () => {
  let isOpen = true;
  const slots = new FairSlots<string>(2, () => 2, { isOpen: () => isOpen });
  let changes = 0;
  slots.listen(() => {
    changes += 1;
  });
  const held = reserve(slots, 'a');
  isOpen = false;
  slots.changed();
  assert.deepEqual([slots.room('a'), changes], [0, 2]);
  held.release();
  assert.equal(slots.room('a'), 0);
  isOpen = true;
  assert.equal(slots.room('a'), 2);
});
