import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { QUEUE_NOTICE_AFTER_MS, QUEUE_NOTICE_MS_MIN, QueueWaits } from './queue-waits.ts';

const SECOND = 1_000;

/** One wait, on a clock of its own. `ahead`: the answer of the log. */
class Waiting {
  ahead: number | undefined | 'unavailable' = 0;
  asked = 0;
  counted = 0;
  readonly shown: (number | 'cleared')[] = [];
  readonly waits: QueueWaits;
  readonly #t: TestContext;
  #nowMs = 0;

  constructor(t: TestContext, wasShown = false) {
    this.#t = t;
    t.mock.timers.enable({ apis: ['setTimeout'] });
    this.waits = new QueueWaits({
      work: {
        ahead: async () => {
          this.asked += 1;
          if (this.ahead === 'unavailable') throw new Error('unavailable');
          return this.ahead;
        },
      },
      onWaiting: change => {
        this.counted += change;
      },
      now: () => this.#nowMs,
    });
    const show = (ahead: number) => void this.shown.push(ahead);
    const clear = () => void this.shown.push('cleared');
    this.waits.add('t', { role: 'agent.a', taskId: 't', wasShown, show, clear });
  }

  async pass(ms: number): Promise<this> {
    for (let passed = 0; passed < ms; passed += SECOND) {
      this.#nowMs += SECOND;
      this.#t.mock.timers.tick(SECOND);
      for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
    }
    return this;
  }
}

test('a turn that begins at once causes no request', async t => {
  const waiting = new Waiting(t);
  waiting.waits.end('t');
  await waiting.pass(10 * QUEUE_NOTICE_AFTER_MS);
  assert.deepEqual([waiting.asked, waiting.shown, waiting.counted], [0, [], 0]);
});

test('a wait is shown and counted, shown again only after a tenth of the items ahead are done, and cleared when the turn begins', async t => {
  const waiting = new Waiting(t);
  waiting.ahead = 200;
  await waiting.pass(QUEUE_NOTICE_AFTER_MS + SECOND);
  assert.deepEqual([waiting.shown, waiting.counted], [[200], 1]);
  waiting.ahead = 100;
  await waiting.pass(SECOND);
  assert.deepEqual(waiting.shown, [200], 'not so soon');
  await waiting.pass(QUEUE_NOTICE_MS_MIN);
  assert.deepEqual(waiting.shown, [200, 100]);
  for (const ahead of [95, 130]) {
    waiting.ahead = ahead;
    await waiting.pass(2 * QUEUE_NOTICE_MS_MIN);
  }
  assert.deepEqual(waiting.shown, [200, 100], 'hardly a change, and no way back');
  waiting.waits.end('t');
  assert.deepEqual([waiting.shown, waiting.counted], [[200, 100, 'cleared'], 0]);
  const { asked } = waiting;
  await waiting.pass(10 * SECOND);
  assert.equal(waiting.asked, asked);
});

test('a wait ends when a worker has the item, even if its turn is silent; a question that fails is asked again', async t => {
  const waiting = new Waiting(t);
  waiting.ahead = 'unavailable';
  await waiting.pass(3 * SECOND);
  assert.deepEqual(waiting.shown, []);
  waiting.ahead = 1;
  await waiting.pass(2 * SECOND);
  waiting.ahead = undefined;
  await waiting.pass(2 * SECOND);
  assert.deepEqual([waiting.shown, waiting.counted], [[1, 'cleared'], 0]);
});

test('a notice of an earlier process is also cleared, and a dropped wait clears nothing', async t => {
  const taken = new Waiting(t, true);
  taken.ahead = undefined;
  await taken.pass(3 * SECOND);
  assert.deepEqual(taken.shown, ['cleared']);
  t.mock.timers.reset();
  const dropped = new Waiting(t, true);
  await dropped.pass(3 * SECOND);
  dropped.waits.drop('t');
  assert.deepEqual([dropped.shown, dropped.counted], [[0], 0]);
});
