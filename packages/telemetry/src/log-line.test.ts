import assert from 'node:assert/strict';
import test from 'node:test';
import { parseLogRecord, printable, showLogRecord, timeOfDay } from './log-line.ts';
import { createLogger, type LogFormat } from './logger.ts';

function capture(format: LogFormat) {
  const lines: string[] = [];
  const destination = { write: (line: string) => void lines.push(line) };
  return { lines, log: createLogger({ service: 'relay', instance: 'relay-1', level: 'trace', format, destination }) };
}

test('a pretty line has local time, level, message, error and members, and no JSON', () => {
  const { log, lines } = capture('pretty');
  log.warn({ shard: 3, reason: 'lease lost', settings: { HOPLINE_PORT: 1 } }, 'shard released');
  assert.match(lines[0]!, /^\d\d:\d\d:\d\d\.\d{3} {2}warn {2}shard released {2}shard=3 {2}reason="lease lost"\n$/);
  log.warn({ err: new Error('refused') }, 'webhook failed');
  assert.match(lines[1]!, / {2}warn {2}webhook failed: refused\n$/);
});

test('the format auto is pretty only on a terminal', t => {
  const { isTTY } = process.stdout;
  t.after(() => Object.assign(process.stdout, { isTTY }));
  for (const [terminal, expected] of [
    [true, /^\d\d:\d\d:\d\d\.\d{3} {2}info {2}ready\n$/],
    [false, /^\{.*"msg":"ready"\}\n$/],
  ] as const) {
    Object.assign(process.stdout, { isTTY: terminal });
    const { log, lines } = capture('auto');
    log.info('ready');
    assert.match(lines.join(''), expected);
  }
});

test('an error is shown with its stack, from level error on', () => {
  const { log, lines } = capture('pretty');
  log.error({ err: new Error('refused') }, 'drain failed');
  assert.match(lines[0]!, / {2}error drain failed: refused\n {4}at .*log-line\.test/);
  assert.ok(lines[0]!.endsWith('\n'));
});

test('a value cannot control a terminal or begin a line of its own', () => {
  const { log, lines } = capture('pretty');
  const hostile = 'a\x1b[2J\r\n12:00:00.000  info  forged\x9b\u202e\u2028\x7f';
  log.error({ agent: hostile, err: new Error(hostile) }, 'turn failed');
  const [head, ...stack] = lines.join('').trimEnd().split('\n');
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters that must be absent
  assert.doesNotMatch(head!, /[\x00-\x1f\x7f-\x9f\u2028\u202e]/);
  assert.match(head!, /a\\u001b\[2J\\u000d\\u000a12:00:00/);
  assert.ok(stack.every(line => line.startsWith('    at ')));
  assert.equal(printable('naïve שלום 日本語 👩‍👩‍👧'), 'naïve שלום 日本語 👩‍👩‍👧');
});

test('a pretty line is redacted like a JSON line [S4-43]', () => {
  const { log, lines } = capture('pretty');
  const err = Object.assign(new Error('at nats://user:PLANTED@host'), { cause: new Error('Bearer PLANTED') });
  log.child({ token: 'PLANTED' } as object).fatal({ err, parts: [{ text: 'PLANTED' }] } as object, 'Basic PLANTED');
  assert.doesNotMatch(lines.join(''), /PLANTED/);
  assert.match(lines[0]!, /token=\[redacted\]/);
});

test('text that is not a JSON line is not a record', () => {
  for (const line of ['', 'plain', '{"level":', '[1]']) assert.equal(parseLogRecord(line), undefined);
  assert.equal(showLogRecord({ msg: 'one', n: 1, o: { a: 1 }, none: '' }), '      one  n=1  o={"a":1}  none=""');
  assert.match(timeOfDay(0), /^\d\d:00:00\.000$/);
});
