import assert from 'node:assert/strict';
import test from 'node:test';
import { DEFAULT_SETTINGS } from '@hopline/coalesce';
import {
  type AgentInput,
  type AgentRecord,
  decodeInputRecord,
  INPUT_DEPTH_MAX,
  type InputRecord,
  ordinalsOf,
} from '@hopline/events';
import fc from 'fast-check';
import { until } from '../../../test/kit/until.ts';
import { InputUnreadable, LogUnavailable, Superseded } from './errors.ts';
import type { InputAppendOptions, InputLog } from './input-log.ts';
import {
  APPEND_TIMEOUT_MS,
  BURST_HOLD_MS,
  BURST_TOKENS,
  InputWriter,
  RECORD_INPUT_BYTES_MAX,
  RECORD_TOKENS_MAX,
  WAITING_OVERRUN_FACTOR,
} from './input-writer.ts';
import { createMemoryLog } from './memory/memory-log.ts';
import { GATHER_MS, TextPace } from './text-pace.ts';

const PRODUCER = { id: 'call-1', agent: 'argocd', turn: 2, attempt: 3 };
const OPTIONS = { taskId: 'task-1', producer: PRODUCER };

/** An input log that acknowledges on the test's command. */
function pendingLog() {
  const appended: { record: AgentRecord; options: InputAppendOptions }[] = [];
  let open = 0;
  let openMax = 0;
  let answer: { resolve: () => void; reject: (error: Error) => void } | undefined;
  const log: InputLog = {
    append: (_taskId: string, record: InputRecord, options: InputAppendOptions) => {
      appended.push({ record: structuredClone(record) as AgentRecord, options });
      open += 1;
      openMax = Math.max(openMax, open);
      return new Promise((resolve, reject) => {
        const settle = () => {
          open -= 1;
        };
        answer = {
          resolve: () => {
            settle();
            resolve({ seq: appended.length, duplicate: false });
          },
          reject: error => {
            settle();
            reject(error);
          },
        };
      });
    },
    extent: () => assert.fail('an input writer does not read'),
    read: () => assert.fail('an input writer does not read'),
    recordAt: () => assert.fail('an input writer reads only duplicates'),
    readShard: () => assert.fail('an input writer does not read'),
    unread: () => assert.fail('an input writer does not read'),
    readStoredShard: () => assert.fail('an input writer does not read'),
  };
  const settled = () => new Promise<void>(resolve => setImmediate(resolve));
  return {
    log,
    appended,
    get openMax() {
      return openMax;
    },
    async ack() {
      answer?.resolve();
      await settled();
    },
    async fail(error: Error) {
      answer?.reject(error);
      await settled();
    },
    settled,
  };
}

/** A writer whose first record, with the given number of tokens, has been stored, and the ordinals of its records. */
async function burst(tokens: number) {
  const pending = pendingLog();
  const writer = new InputWriter(pending.log, OPTIONS);
  for (let i = 0; i < tokens; i += 1) writer.token('a', 't', 0);
  await pending.settled();
  await pending.ack();
  const count = ({ record }: { record: AgentRecord }) => record.inputs.reduce((sum, input) => sum + ordinalsOf(input), 0);
  return { writer, pending, sizes: () => pending.appended.map(count) };
}

/** The content of records, token by token, with absolute times. */
function tokensOf(records: AgentRecord[]): unknown[] {
  return records.flatMap(({ at, inputs }) =>
    inputs.flatMap((input): unknown[] =>
      input.kind === 'text'
        ? input.tokens.map((text, i) => ({
            lane: input.lane,
            text,
            at: at + (input.dt?.[i] ?? 0),
            id: input.ids?.[i] || undefined,
          }))
        : [input],
    ),
  );
}

const closeOf = (lane: string): AgentInput => ({ kind: 'close', lane });

test('the first token is appended at once; tokens that arrive during the append are the next record', async () => {
  const pending = pendingLog();
  const writer = new InputWriter(pending.log, { ...OPTIONS, trace: { traceparent: 'x' }, timeoutMs: 7 });
  writer.token('a', 'one', 1_000, 'm1');
  await pending.settled();
  for (const [i, text] of ['two', 'three', 'four'].entries()) writer.token('a', text, 1_001 + i);
  await pending.settled();
  assert.equal(pending.appended.length, 1);
  await pending.ack();
  assert.deepEqual(pending.appended, [
    {
      record: { v: 1, at: 1_000, from: PRODUCER, n: 1, inputs: [{ kind: 'text', lane: 'a', tokens: ['one'], ids: ['m1'] }] },
      options: { id: 'task-1:call-1:2:0:3:1', trace: { traceparent: 'x' }, timeoutMs: 7, waitsForRoom: true },
    },
    {
      record: {
        v: 1,
        at: 1_001,
        from: PRODUCER,
        n: 2,
        inputs: [{ kind: 'text', lane: 'a', tokens: ['two', 'three', 'four'], dt: [0, 1, 2] }],
      },
      options: { id: 'task-1:call-1:2:0:3:2', trace: { traceparent: 'x' }, timeoutMs: 7, waitsForRoom: true },
    },
  ]);
  assert.equal(writer.nextN, 5);
});

test('the first record has the times of the work item, and the next record has the times of tool calls that have ended since', async () => {
  const pending = pendingLog();
  const taken = { queuedAt: 1, at: 2, cause: 'redelivery' } as const;
  const writer = new InputWriter(pending.log, { ...OPTIONS, taken });
  writer.token('a', 'one', 5);
  await pending.settled();
  const tool = { name: 'look_up', at: 6, ms: 7 };
  writer.toolEnded(tool);
  writer.token('a', 'two', 13);
  await pending.ack();
  await pending.settled();
  await pending.ack();
  writer.token('a', 'three', 14);
  await pending.settled();
  assert.deepEqual(
    pending.appended.map(({ record }) => [record.taken, record.tools]),
    [
      [taken, undefined],
      [undefined, [tool]],
      [undefined, undefined],
    ],
  );
});

test('requests to models are in the record that follows their end, at most 256 for each writer', async () => {
  const pending = pendingLog();
  const writer = new InputWriter(pending.log, OPTIONS);
  const call = { model: 'm', at: 6, ms: 7, inputTokens: 1, cost: 0.5 };
  for (let count = 0; count < 255; count += 1) writer.modelEnded(call);
  writer.token('a', 'one', 5);
  await pending.settled();
  writer.modelEnded(call);
  writer.modelEnded(call);
  writer.token('a', 'two', 6);
  await pending.ack();
  await pending.settled();
  await pending.ack();
  assert.deepEqual(
    pending.appended.map(({ record }) => record.models?.length),
    [255, 1],
  );
  assert.deepEqual(pending.appended[1]!.record.models, [call]);
});

test('a tool call that ends while a record waits is part of that record, even if the record is the last one', async () => {
  const pending = pendingLog();
  const writer = new InputWriter(pending.log, OPTIONS);
  writer.token('a', 'one', 5);
  await pending.settled();
  writer.token('a', 'two', 6);
  const tool = { name: 'look_up', at: 6, ms: 7 };
  writer.toolEnded(tool);
  writer.add(closeOf('a'), 13);
  const flushed = writer.flush();
  await pending.ack();
  await pending.ack();
  await flushed;
  assert.deepEqual(
    pending.appended.map(({ record }) => record.tools),
    [undefined, [tool]],
  );
});

test('inputs of one synchronous step share a record; lanes and kinds keep their order', async () => {
  const pending = pendingLog();
  const writer = new InputWriter(pending.log, OPTIONS);
  writer.add({ kind: 'open', lane: 'a', artifact: { name: 'answer' } }, 5);
  writer.token('a', 'x', 5);
  writer.token('b', 'y', 5);
  writer.token('a', 'z', 5);
  writer.add(closeOf('a'), 6);
  writer.add({ kind: 'text', lane: 'b', tokens: ['p', 'q'], ids: ['i1', 'i2'] }, 7);
  await pending.settled();
  assert.equal(pending.appended.length, 1);
  assert.equal(pending.appended[0]?.record.n, 1);
  assert.deepEqual(pending.appended[0]?.record.inputs, [
    { kind: 'open', lane: 'a', artifact: { name: 'answer' } },
    { kind: 'text', lane: 'a', tokens: ['x'] },
    { kind: 'text', lane: 'b', tokens: ['y'] },
    { kind: 'text', lane: 'a', tokens: ['z'] },
    { kind: 'close', lane: 'a' },
    { kind: 'text', lane: 'b', tokens: ['p', 'q'], dt: [2, 2], ids: ['i1', 'i2'] },
  ]);
  assert.equal(writer.nextN, 8);
});

test('inputs that follow the first one without waiting for I/O share its record', async () => {
  const { log, appended, settled } = pendingLog();
  const writer = new InputWriter(log, OPTIONS);
  writer.add({ kind: 'status', state: 'TASK_STATE_WORKING' });
  for (let step = 0; step < 20; step++) await writer.ready();
  writer.add({ kind: 'call', call: 'call-1', agent: 'files' });
  await settled();
  assert.deepEqual(
    appended.map(({ record }) => record.inputs.map(({ kind }) => kind)),
    [['status', 'call']],
  );
});

test('a record holds at most RECORD_TOKENS_MAX tokens and RECORD_INPUT_BYTES_MAX bytes', async () => {
  const pending = pendingLog();
  const writer = new InputWriter(pending.log, OPTIONS);
  for (let i = 0; i <= RECORD_TOKENS_MAX; i += 1) writer.token('a', 't', 0);
  writer.token('a', 'x'.repeat(RECORD_INPUT_BYTES_MAX - 12), 0);
  await pending.settled();
  await pending.ack();
  await pending.ack();
  await pending.ack();
  assert.deepEqual(
    pending.appended.map(({ record }) => record.inputs.map(input => input.kind === 'text' && input.tokens.length)),
    [[RECORD_TOKENS_MAX], [1], [1]],
  );
});

test('in a burst a record is held until it is full or BURST_HOLD_MS have passed', async t => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const { writer, pending, sizes } = await burst(BURST_TOKENS);
  writer.token('a', 'more', 0);
  await pending.settled();
  t.mock.timers.tick(BURST_HOLD_MS - 1);
  await pending.settled();
  assert.deepEqual(sizes(), [BURST_TOKENS], 'held');
  t.mock.timers.tick(1);
  await pending.settled();
  assert.deepEqual(sizes(), [BURST_TOKENS, 1]);
  await pending.ack();
  writer.token('a', 'after a small record', 0);
  await pending.settled();
  assert.deepEqual(sizes(), [BURST_TOKENS, 1, 1], 'at once');

  const full = await burst(BURST_TOKENS);
  for (let i = 0; i <= RECORD_TOKENS_MAX; i += 1) full.writer.token('a', 't', 0);
  await full.pending.settled();
  assert.deepEqual(full.sizes(), [BURST_TOKENS, RECORD_TOKENS_MAX]);

  const paused = await burst(BURST_TOKENS);
  t.mock.timers.tick(BURST_HOLD_MS);
  paused.writer.token('a', 'after a pause', 0);
  await paused.pending.settled();
  assert.deepEqual(paused.sizes(), [BURST_TOKENS, 1], 'at once');

  const slower = await burst(BURST_TOKENS - 1);
  slower.writer.token('a', 'more', 0);
  await slower.pending.settled();
  assert.deepEqual(slower.sizes(), [BURST_TOKENS - 1, 1], 'at once');
});

test('a record of a burst is not held when an input that is not text, or a flush, waits for it', async t => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const closed = await burst(BURST_TOKENS);
  closed.writer.token('a', 'more', 0);
  closed.writer.add(closeOf('a'), 0);
  await closed.pending.settled();
  assert.deepEqual(closed.sizes(), [BURST_TOKENS, 2]);

  const flushed = await burst(BURST_TOKENS);
  flushed.writer.token('a', 'more', 0);
  await flushed.pending.settled();
  const flushing = flushed.writer.flush();
  await flushed.pending.ack();
  await flushing;
  assert.deepEqual(flushed.sizes(), [BURST_TOKENS, 1]);

  const awaited = await burst(0);
  for (let i = 0; i < BURST_TOKENS; i += 1) awaited.writer.token('a', 't', 0);
  await awaited.pending.settled();
  awaited.writer.token('a', 'more', 0);
  const both = awaited.writer.flush();
  await awaited.pending.ack();
  await awaited.pending.ack();
  await both;
  assert.deepEqual(awaited.sizes(), [BURST_TOKENS, 1]);
});

test('a token larger than a record is split on code points, and only its first piece has the id', async () => {
  const pending = pendingLog();
  const writer = new InputWriter(pending.log, OPTIONS);
  const text = `x${'👍'.repeat(RECORD_INPUT_BYTES_MAX / 2)}`;
  writer.token('a', text, 0, 'm1');
  for (let i = 0; i < 20; i += 1) await pending.ack();
  await writer.flush();
  const tokens = tokensOf(pending.appended.map(({ record }) => record)) as { text: string; id?: string }[];
  assert.equal(tokens.map(token => token.text).join(''), text);
  assert.ok(tokens.every(token => token.text.isWellFormed()));
  assert.deepEqual(
    tokens.map(token => token.id),
    ['m1', ...tokens.slice(1).map(() => undefined)],
  );
  for (const { record } of pending.appended)
    assert.ok(Buffer.byteLength(JSON.stringify(record.inputs)) <= RECORD_INPUT_BYTES_MAX + 1_024);
});

test('an input that readers could not read is not stored, and the writer continues', async () => {
  const pending = pendingLog();
  const writer = new InputWriter(pending.log, OPTIONS);
  const nested = (levels: number): AgentInput => {
    const payload: unknown = JSON.parse('['.repeat(levels - 1) + ']'.repeat(levels - 1));
    return { kind: 'step', step: 's', payload };
  };
  const artifact = { kind: 'artifact', lane: 'a', artifact: {}, append: false, last: true } as const;
  const unreadable = [
    nested(INPUT_DEPTH_MAX + 1),
    { ...artifact, parts: [{ raw: Buffer.from('x') }] },
    { ...artifact, parts: [undefined] },
    { ...artifact, parts: new Array(1) },
    { ...artifact, artifact: { metadata: new Date(0) }, parts: [] },
    { kind: 'status', state: 'done' },
    { kind: 'remote-run', run: () => {} },
  ] as unknown as Exclude<AgentInput, { kind: 'text' }>[];
  for (const input of unreadable) {
    const stored = JSON.parse(JSON.stringify({ v: 1, at: 1, from: PRODUCER, n: 1, inputs: [input] }));
    assert.deepEqual(decodeInputRecord(stored), { ...stored, inputs: [{ kind: 'malformed' }] });
    assert.throws(() => writer.add(input), InputUnreadable);
    assert.throws(() => writer.addHeld(input, 1), InputUnreadable);
  }
  writer.add(nested(INPUT_DEPTH_MAX));
  await pending.settled();
  assert.deepEqual(
    pending.appended.map(({ record }) => [record.n, record.inputs]),
    [[1, [nested(INPUT_DEPTH_MAX)]]],
  );
});

test('ready resolves only below waitingBytesMax', async () => {
  const pending = pendingLog();
  const writer = new InputWriter(pending.log, { ...OPTIONS, waitingBytesMax: 100 });
  await writer.ready();
  writer.token('a', 'x'.repeat(60), 0);
  await writer.ready();
  await pending.settled();
  assert.equal(writer.isReady, true);
  writer.token('a', 'x'.repeat(60), 0);
  assert.equal(writer.isReady, false);
  let ready = false;
  void writer.ready().then(() => {
    ready = true;
  });
  await pending.settled();
  assert.equal(ready, false);
  await pending.ack();
  assert.equal(ready, true);
});

test('a source that ignores ready fails, so memory is bounded', () => {
  const pending = pendingLog();
  const writer = new InputWriter(pending.log, { ...OPTIONS, waitingBytesMax: 100 });
  const most = 100 * WAITING_OVERRUN_FACTOR;
  let waiting = 0;
  const fill = () => {
    // Each token takes one byte of text and twelve other bytes.
    for (; waiting <= 10 * most; waiting += 13) writer.token('a', 'x', 0);
  };
  assert.throws(fill, RangeError);
  assert.ok(waiting > most && waiting <= most + 13, `${waiting} bytes are waiting`);
});

test('flush waits for the inputs added before it, not for later ones', async () => {
  const pending = pendingLog();
  const writer = new InputWriter(pending.log, OPTIONS);
  await writer.flush();
  writer.token('a', 'one', 0);
  let flushed = false;
  const flushing = writer.flush().then(() => {
    flushed = true;
  });
  await pending.settled();
  writer.token('a', 'two', 0);
  assert.equal(flushed, false);
  await pending.ack();
  assert.equal(flushed, true);
  await flushing;
});

test('after a failed append the writer appends nothing more and rejects with the same error', async () => {
  const pending = pendingLog();
  const writer = new InputWriter(pending.log, { ...OPTIONS, waitingBytesMax: 1 });
  writer.token('a', 'one', 0);
  await pending.settled();
  writer.token('a', 'two', 0);
  const waiting = [writer.flush(), writer.ready()].map(promise => assert.rejects(promise, LogUnavailable));
  await pending.fail(new LogUnavailable('gone'));
  await Promise.all(waiting);
  assert.equal(pending.appended.length, 1);
  assert.throws(() => writer.token('a', 'three', 0), LogUnavailable);
  assert.throws(() => writer.add(closeOf('a')), LogUnavailable);
  await assert.rejects(writer.flush(), LogUnavailable);
  await assert.rejects(writer.ready(), LogUnavailable);
  assert.equal(writer.isReady, false, 'a source that asks first awaits ready, and learns of the failure');
});

test('tokens, order, times and ids are kept at any speed of the log, with contiguous ordinals and one record in flight', async () => {
  const token = fc.record({
    kind: fc.constant('token' as const),
    lane: fc.constantFrom('a', 'b'),
    text: fc.string({ unit: 'binary', maxLength: 40 }),
    wait: fc.nat(3),
    id: fc.option(fc.string({ minLength: 1, maxLength: 5 }), { nil: undefined }),
  });
  const close = fc.record({ kind: fc.constant('close' as const), lane: fc.constantFrom('a', 'b') });
  const ack = fc.constant({ kind: 'ack' as const });
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.oneof({ weight: 5, arbitrary: token }, close, ack), { maxLength: 60 }),
      fc.boolean(),
      async (steps, holds) => {
        const pending = pendingLog();
        const writer = new InputWriter(pending.log, { ...OPTIONS, ...(holds && { pace: new TextPace(DEFAULT_SETTINGS) }) });
        const expected: unknown[] = [];
        let now = 1_000;
        for (const step of steps) {
          if (step.kind === 'ack') await pending.ack();
          else if (step.kind === 'close') {
            writer.add(closeOf(step.lane), now);
            expected.push(closeOf(step.lane));
          } else {
            now += step.wait;
            writer.token(step.lane, step.text, now, step.id);
            expected.push({ lane: step.lane, text: step.text, at: now, id: step.id });
          }
        }
        let flushed = false;
        const flushing = writer.flush().then(() => {
          flushed = true;
        });
        for (await pending.settled(); !flushed; await pending.ack());
        await flushing;
        const records = pending.appended.map(({ record }) => record);
        assert.deepEqual(tokensOf(records), expected);
        let n = 1;
        for (const record of records) {
          assert.equal(record.n, n);
          n += record.inputs.reduce((sum, input) => sum + (input.kind === 'text' ? input.tokens.length : 1), 0);
          assert.equal(record.heldMs !== undefined, holds && record.inputs.some(({ kind }) => kind === 'text'));
        }
        assert.equal(writer.nextN, n);
        assert.ok(pending.openMax <= 1);
      },
    ),
    { numRuns: 200 },
  );
});

test('an append is retried for APPEND_TIMEOUT_MS by default', async () => {
  const timeouts: unknown[] = [];
  const append = async (...[, , options]: Parameters<InputLog['append']>) => {
    timeouts.push(options.timeoutMs);
    return { seq: 1, duplicate: false };
  };
  const writer = new InputWriter({ append } as InputLog, OPTIONS);
  writer.token('answer', 'x');
  await writer.flush();
  assert.deepEqual(timeouts, [APPEND_TIMEOUT_MS]);
});

test('if two runs have the same attempt number, as after a kill of nats-server, only the first to write continues', async () => {
  const log = createMemoryLog();
  const token = async (writer: InputWriter, text: string) => {
    writer.token('answer', text);
    await writer.flush();
  };
  const [first, second] = [new InputWriter(log.inputs, OPTIONS), new InputWriter(log.inputs, OPTIONS)];
  await token(first, 'first ');
  await assert.rejects(token(second, 'second '), Superseded);
  await token(first, 'goes on');
  const texts: string[] = [];
  for await (const { record } of log.inputs.read(OPTIONS.taskId))
    if ('inputs' in record) for (const input of record.inputs) if (input.kind === 'text') texts.push(...input.tokens);
  assert.deepEqual(texts, ['first ', 'goes on']);
});

test('another item, turn or attempt of a call writes separate records, although its ordinals restart', async () => {
  const log = createMemoryLog();
  const { producer } = OPTIONS;
  const producers = [producer, { ...producer, item: 7 }, { ...producer, turn: 3 }, { ...producer, attempt: 4 }];
  for (const one of producers) {
    const writer = new InputWriter(log.inputs, { ...OPTIONS, producer: one });
    writer.token('answer', 'text');
    await writer.flush();
  }
  const stored: unknown[] = [];
  for await (const { record } of log.inputs.read(OPTIONS.taskId)) stored.push(record.from);
  assert.deepEqual(stored, producers);
});

test('a record whose first acknowledgement was lost is stored once, and its writer continues', async () => {
  const log = createMemoryLog();
  const append: InputLog['append'] = async (...args) => {
    await log.inputs.append(...args);
    return log.inputs.append(...args);
  };
  const writer = new InputWriter({ ...log.inputs, append, recordAt: (taskId, seq) => log.inputs.recordAt(taskId, seq) }, OPTIONS);
  writer.add({ kind: 'open', lane: 'answer', artifact: { name: 'a' } });
  writer.token('answer', 'half \ud83d');
  await writer.flush();
  writer.token('answer', '\ude00');
  await writer.flush();
  let records = 0;
  for await (const _stored of log.inputs.read(OPTIONS.taskId)) records += 1;
  assert.equal(records, 2);
});

/** A writer that holds text and whose first token is stored. Its log stores without delay. */
async function holding(coalesce = { ...DEFAULT_SETTINGS, eventCostMs: 60_000, holdMsMax: 60_000 }) {
  const held = heldLog();
  const writer = new InputWriter(held.log, { ...OPTIONS, pace: new TextPace(coalesce) });
  writer.token('a', 'first ');
  await held.acknowledge(1);
  const texts = () =>
    held.appended.map(({ inputs }) => inputs.map(input => (input.kind === 'text' ? input.tokens.join('') : input.kind)));
  const settled = () => new Promise<void>(resolve => setImmediate(resolve));
  return { ...held, writer, texts, settled };
}

test('the first text of each lane is sent at once, and later text is held until the rule sends it', async () => {
  const { writer, appended, acknowledge, texts } = await holding();
  writer.token('a', 'second ');
  // Awaits only microtasks, so that no timer fires in between.
  for (let step = 0; step < 5; step += 1) await undefined;
  assert.deepEqual(texts(), [['first ']]);
  await acknowledge(2);
  assert.deepEqual(texts(), [['first '], ['second ']]);
  writer.token('b', 'another lane ');
  for (let step = 0; step < 5; step += 1) await undefined;
  assert.deepEqual(texts().at(-1), ['another lane ']);
  assert.deepEqual([appended[0]?.heldMs, appended[2]?.heldMs], [0, 0]);
  assert.ok(appended[1]!.heldMs! > 0);
});

test('held text is sent with a non-text input, at a flush, when a record is full, and when a source waits for room', async () => {
  const closed = await holding();
  closed.writer.token('a', 'held ');
  closed.writer.add(closeOf('a'));
  await closed.acknowledge(2);
  assert.deepEqual(closed.texts(), [['first '], ['held ', 'close']]);

  const flushed = await holding();
  flushed.writer.token('a', 'held ');
  await flushed.settled();
  await flushed.writer.flush();
  assert.deepEqual(flushed.texts(), [['first '], ['held ']]);

  const full = await holding();
  for (let count = 0; count <= RECORD_TOKENS_MAX; count += 1) full.writer.token('a', 't');
  await full.acknowledge(2);
  // The rest may have been sent as well, if the rule expected no more text.
  assert.deepEqual(
    full.appended.slice(0, 2).map(({ inputs }) => ordinalsOf(inputs[0]!)),
    [1, RECORD_TOKENS_MAX],
  );
  await full.writer.flush();

  const { log, appended } = heldLog();
  const narrow = new InputWriter(log, {
    ...OPTIONS,
    pace: new TextPace({ ...DEFAULT_SETTINGS, holdMsMax: 60_000 }),
    waitingBytesMax: 50,
  });
  for (let count = 0; count < 20; count += 1) {
    narrow.token('a', 'x'.repeat(20));
    await narrow.ready();
  }
  assert.ok(appended.length > 1);
  await narrow.flush();
});

test('a held input does not wait for held text beyond its own time, and text does not wait for it', async () => {
  const first = await holding();
  first.writer.token('a', 'held ');
  first.writer.addHeld(REMOTE_RUN, 10);
  await first.acknowledge(2);
  assert.deepEqual(first.texts().at(-1), ['held ', 'remote-run']);
  const second = await holding({ ...DEFAULT_SETTINGS, eventCostMs: 60_000, holdMsMax: 10 });
  second.writer.addHeld(REMOTE_RUN, 60_000);
  second.writer.token('a', 'held ');
  await second.acknowledge(2);
  assert.deepEqual(second.texts().at(-1), ['remote-run', 'held ']);
});

test('held text of several writers is sent together, and a first text does not wait for it', async t => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const pace = new TextPace({ ...DEFAULT_SETTINGS, eventCostMs: 1e-9 });
  const { log, appended } = heldLog();
  const writers = ['one', 'two', 'three'].map(taskId => new InputWriter(log, { ...OPTIONS, taskId, pace }));
  const settled = () => new Promise<void>(resolve => setImmediate(resolve));
  for (const writer of writers) writer.token('a', 'first');
  await settled();
  await settled();
  assert.equal(appended.length, 3);
  for (const writer of writers) writer.token('a', 'due at once');
  await settled();
  assert.ok(appended.length >= 4, 'nothing left before it');
  t.mock.timers.tick(GATHER_MS);
  await settled();
  assert.equal(appended.length, 6);
});

test('without a rule, or if every token is a chunk, no text is held and no record has heldMs', async () => {
  for (const coalesce of [undefined, { ...DEFAULT_SETTINGS, eventCostMs: 0 }]) {
    const { log, appended, acknowledge } = heldLog();
    const writer = new InputWriter(log, { ...OPTIONS, ...(coalesce && { pace: new TextPace(coalesce) }) });
    for (let count = 1; count <= 3; count += 1) {
      writer.token('a', 'x');
      await acknowledge(count);
    }
    assert.ok(appended.every(record => record.heldMs === undefined));
  }
});

test('tokens that arrive while a record is in flight are held as one arrival', async t => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const pending = pendingLog();
  const writer = new InputWriter(pending.log, {
    ...OPTIONS,
    pace: new TextPace({ ...DEFAULT_SETTINGS, eventCostMs: 60_000, holdMsMax: 60_000 }),
  });
  writer.token('a', 'first', 0);
  await pending.settled();
  writer.token('a', 'second', 0);
  await pending.ack();
  assert.equal(pending.appended.length, 1, 'the acknowledgement does not send what the rule holds');
  writer.token('a', 'third', 0);
  const flushed = writer.flush();
  await pending.settled();
  await pending.ack();
  await flushed;
  assert.deepEqual(
    pending.appended.map(({ record }) => record.inputs.map(input => ordinalsOf(input))),
    [[1], [2]],
  );
});

const REMOTE_RUN = { kind: 'remote-run', run: { id: 'r' } } as const;

test('a held input is sent with the next one, in one record', async () => {
  const { log, appended, acknowledge } = heldLog();
  const writer = new InputWriter(log, OPTIONS);
  writer.addHeld(REMOTE_RUN, 60_000);
  await new Promise(resolve => setTimeout(resolve, 20));
  assert.equal(appended.length, 0);
  writer.token('answer', 'a');
  await acknowledge(1);
  assert.deepEqual(
    appended[0]?.inputs.map(({ kind }) => kind),
    ['remote-run', 'text'],
  );
  writer.addHeld(REMOTE_RUN, 60_000);
  await acknowledge(0);
  assert.equal(appended.length, 1, 'an acknowledgement does not send it by itself');
  await writer.flush();
  assert.deepEqual([appended.length, appended[1]?.n], [2, 3]);
});

test('a held input added while a record is in flight is not sent when that record is acknowledged', async () => {
  const { log, appended, acknowledge } = heldLog();
  const writer = new InputWriter(log, OPTIONS);
  writer.token('answer', 'a');
  await acknowledge(1, () => writer.addHeld(REMOTE_RUN, 60_000));
  await new Promise(resolve => setTimeout(resolve, 20));
  assert.equal(appended.length, 1);
  writer.token('answer', 'b');
  await acknowledge(2);
  assert.deepEqual(
    appended[1]?.inputs.map(({ kind }) => kind),
    ['remote-run', 'text'],
  );
});

test('a held input waits for its whole time when the input held before it was sent early', async t => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const { log, appended } = heldLog();
  const writer = new InputWriter(log, OPTIONS);
  const settled = () => new Promise<void>(resolve => setImmediate(resolve));
  writer.addHeld(REMOTE_RUN, 1_000);
  await settled();
  writer.token('answer', 'a');
  await settled();
  await settled();
  assert.equal(appended.length, 1);
  writer.addHeld(REMOTE_RUN, 60_000);
  await settled();
  t.mock.timers.tick(1_000);
  await settled();
  assert.equal(appended.length, 1);
});

test('a held input is sent after its hold time without waiting for another', async () => {
  const { log, appended, acknowledge } = heldLog();
  new InputWriter(log, OPTIONS).addHeld(REMOTE_RUN, 10);
  await acknowledge(1);
  assert.deepEqual(appended[0]?.inputs, [REMOTE_RUN]);
});

/** A log that stores at once. `acknowledge` waits for the given number of records and runs `during` while the last of them is in flight. */
function heldLog() {
  const appended: AgentRecord[] = [];
  let during = () => {};
  const append = async (_taskId: string, record: InputRecord) => {
    appended.push(structuredClone(record) as AgentRecord);
    during();
    return { seq: appended.length, duplicate: false };
  };
  const acknowledge = async (count: number, inFlight = () => {}) => {
    during = inFlight;
    await until(() => appended.length >= count);
    await new Promise(resolve => setImmediate(resolve));
    during = () => {};
  };
  return { log: { append } as unknown as InputLog, appended, acknowledge };
}
