import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import test from 'node:test';
import { context, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { withTrace } from './active-trace.test-kit.ts';
import { createLogger, LINES_DELAY_MS, LineBuffer, type LogFields, setLogLevel, taskLogger } from './logger.ts';

const TRACE_ID = '0af7651916cd43dd8448eb211c80319c';
const SPAN_ID = 'b7ad6b7169203331';

function capture(level: 'debug' | 'info' | 'silent' = 'info') {
  const lines: string[] = [];
  const log = createLogger({ service: 'relay', instance: 'relay-1', level, destination: { write: line => lines.push(line) } });
  return { log, lines, parsed: () => lines.map(line => JSON.parse(line)) };
}

test('a line is JSON with level, time, service, instance, its fields and the message', () => {
  const { log, parsed } = capture();
  log.warn({ shard: 3, reason: 'lost' }, 'shard released');
  const [line] = parsed();
  assert.equal(new Date(line.time).toISOString(), line.time);
  const { time: _, ...rest } = line;
  assert.deepEqual(rest, {
    level: 'warn',
    service: 'relay',
    instance: 'relay-1',
    shard: 3,
    reason: 'lost',
    msg: 'shard released',
  });
});

test('the level of a logger and its children can change while they are in use', () => {
  const { log, parsed } = capture('info');
  const before = log.child({ shard: 1 });
  setLogLevel(log, 'debug');
  log.debug('one');
  taskLogger(log, 't-1').debug('two');
  before.debug('three');
  setLogLevel(log, 'info');
  before.debug('no');
  log.debug('no');
  assert.deepEqual(
    parsed().map(({ msg }) => msg),
    ['one', 'two', 'three'],
  );
});

test('lines below the level are not written', () => {
  const { log, lines } = capture('info');
  log.debug('no');
  log.child({ shard: 1 }).debug('no');
  const silent = capture('silent');
  silent.log.fatal('no');
  assert.deepEqual([...lines, ...silent.lines], []);
});

test('a task logger adds task_id to every line, also to the lines of its children', () => {
  const { log, parsed } = capture();
  taskLogger(log, 't-1').child({ agent: 'argocd' }).info('taken');
  assert.equal(parsed()[0].task_id, 't-1');
  assert.equal(parsed()[0].agent, 'argocd');
});

test('a planted secret reaches no line: field, child field, error, message [S4-43]', () => {
  const { log, lines } = capture();
  const planted = { authorization: 'PLANTED', nested: { text: 'PLANTED' } } as unknown as LogFields;
  log.info(planted, 'fields');
  log.child(planted).child(planted).info('child');
  log.error({ err: Object.assign(new Error('nats://u:PLANTED@h'), { request: { token: 'PLANTED' } }) }, 'error');
  log.error(`Bearer PLANTED and nats://u:PLANTED@h`);
  assert.equal(lines.length, 4);
  assert.doesNotMatch(lines.join(''), /PLANTED/);
});

test('an error under err has its type, message, stack and code once', () => {
  const { log, parsed } = capture();
  log.error({ err: Object.assign(new RangeError('too far'), { code: 'E1' }) }, 'failed');
  const { err, msg } = parsed()[0];
  assert.deepEqual([err.type, err.message, err.code, msg], ['RangeError', 'too far', 'E1', 'failed']);
  assert.match(err.stack, /logger\.test/);
});

test('every line within a trace has its trace id and span id, even after an await; other lines have none', async () => {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  const { log, parsed } = capture();
  try {
    await withTrace({ traceparent: `00-${TRACE_ID}-${SPAN_ID}-01` }, async () => {
      await Promise.resolve();
      log.info('inside');
    });
    log.info('outside');
  } finally {
    context.disable();
    trace.disable();
  }
  const [inside, outside] = parsed();
  assert.equal(inside.trace_id, TRACE_ID);
  assert.equal(inside.span_id, SPAN_ID);
  assert.equal('trace_id' in outside, false);
});

test('lines within LINES_DELAY_MS are one write; a warning is written at once, after all earlier lines', async () => {
  const writes: string[][] = [];
  const written = Promise.withResolvers<void>();
  const output = {
    write: (lines: string) => {
      writes.push(
        lines
          .trimEnd()
          .split('\n')
          .map(line => JSON.parse(line).msg),
      );
      written.resolve();
    },
  };
  const log = createLogger({ service: 'relay', instance: 'relay-1', level: 'info', destination: new LineBuffer(output) });
  const startedMs = performance.now();
  log.info('one');
  log.child({ shard: 1 }).info('two');
  assert.deepEqual(writes, []);
  await written.promise;
  assert.ok(performance.now() - startedMs >= LINES_DELAY_MS - 1);
  log.info('three');
  log.warn('four');
  log.info('five');
  assert.deepEqual(writes, [
    ['one', 'two'],
    ['three', 'four'],
  ]);
  const filler = 'x'.repeat(1024);
  for (let index = 0; index < 16; index += 1) log.info(filler);
  assert.equal(writes.length, 3, 'a full buffer is written at once');
  log.error('last');
});

test('a process that exits at once has written every line, in order', () => {
  const program = `import { createLogger } from ${JSON.stringify(new URL('logger.ts', import.meta.url).href)};
    const log = createLogger({ service: 'relay', instance: 'relay-1', level: 'info' });
    log.info('one');
    log.info('two');
    process.exit(0);`;
  const output = execFileSync(process.execPath, ['--input-type=module', '--eval', program], { encoding: 'utf8' });
  assert.deepEqual(
    output
      .trimEnd()
      .split('\n')
      .map(line => JSON.parse(line).msg),
    ['one', 'two'],
  );
});

test('a process whose standard output is on a full disk goes on, and writes the lines that wait once there is room', () => {
  const program = `import fs from 'node:fs';
    import { createLogger } from ${JSON.stringify(new URL('logger.ts', import.meta.url).href)};
    const { writeSync } = fs;
    let isFull = true;
    fs.writeSync = (fd, ...rest) => {
      if (fd === 1 && isFull) throw Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' });
      return writeSync(fd, ...rest);
    };
    const log = createLogger({ service: 'relay', instance: 'relay-1', level: 'info' });
    log.warn('one');
    log.warn('two');
    for (let n = 0; n < 20_000; n++) log.warn('filler');
    isFull = false;
    for (const message of ['more', 'last']) log.warn(message);`;
  const output = execFileSync(process.execPath, ['--input-type=module', '--eval', program], {
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
  });
  const lines = output
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line));
  const messages = lines.map(({ msg }) => msg).filter(msg => msg !== 'filler');
  assert.deepEqual([...messages.slice(0, 2), messages.at(-1)], ['one', 'two', 'last']);
  assert.ok(lines.length < 12_000, `${lines.length} lines waited`);
});
