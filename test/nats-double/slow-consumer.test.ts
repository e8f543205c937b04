import assert from 'node:assert/strict';
import { test } from 'node:test';
import { until } from '../kit/until.ts';
import { type Clock, REAL_CLOCK } from './clock.ts';
import { NatsDouble } from './nats-double.ts';
import { connectVirtually, listen, type Path, pathOf } from './virtual-network.ts';

const WRITE_DEADLINE_MS = 10_000;
const MESSAGE = 'x'.repeat(100);
const MESSAGES = 20;

/** Messages are passed on at once. Everything that takes time happens in `advance`. */
function manualClock(): Clock & { advance(ms: number): void } {
  const timers = new Set<{ dueAt: number; callback: () => void }>();
  let now = 0;
  return {
    nowMs: () => now,
    after(delayMs, callback) {
      if (delayMs <= 0) return REAL_CLOCK.after(0, callback);
      const timer = { dueAt: now + delayMs, callback };
      timers.add(timer);
      return () => void timers.delete(timer);
    },
    advance(ms) {
      now += ms;
      for (const timer of [...timers]) if (timer.dueAt <= now && timers.delete(timer)) timer.callback();
    },
  };
}

test('a client that reads nothing gets what its socket held and is cut off after the write deadline; one that reads in time is not', async t => {
  const clock = manualClock();
  let cuts = 0;
  const onCut = () => {
    cuts += 1;
  };
  const slowConsumers = { unreadBytesMax: 1_000, writeDeadlineMs: WRITE_DEADLINE_MS, onCut };
  const double = new NatsDouble({ clock, slowConsumers });
  const held: (() => void)[] = [];
  let reads = true;
  const path: Path = { ...pathOf(clock), toClient: arrive => void (reads ? clock.after(0, arrive) : held.push(arrive)) };
  const readAgain = () => {
    reads = true;
    for (const arrive of held.splice(0)) clock.after(0, arrive);
  };
  const writer = await connectVirtually({ servers: listen(double, pathOf(clock)).url });
  const reader = await connectVirtually({ servers: listen(double, path).url, reconnectTimeWait: 1 });
  t.after(async () => {
    await Promise.all([writer.close(), reader.close()]);
    double.close();
  });
  let received = 0;
  const statuses: string[] = [];
  void (async () => {
    for await (const { type } of reader.status()) statuses.push(type);
  })();
  const callback = () => {
    received += 1;
  };
  reader.subscribe('text', { callback });
  await reader.flush();
  const writeMany = async () => {
    reads = false;
    for (let message = 0; message < MESSAGES; message += 1) writer.publish('text', MESSAGE);
    await writer.flush();
  };

  await writeMany();
  clock.advance(WRITE_DEADLINE_MS - 1);
  readAgain();
  await until(() => received === MESSAGES);
  clock.advance(1);
  assert.deepEqual({ cuts, statuses }, { cuts: 0, statuses: [] });

  received = 0;
  await writeMany();
  clock.advance(WRITE_DEADLINE_MS);
  assert.equal(cuts, 1);
  readAgain();
  await until(() => statuses.includes('reconnect'));
  assert.ok(received > 0 && received < MESSAGES, `${received} messages`);
  await reader.flush();
  writer.publish('text', MESSAGE);
  const before = received;
  await until(() => received === before + 1);
});
