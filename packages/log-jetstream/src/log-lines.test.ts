import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLogger } from '@hopline/telemetry';
import { LogLines } from './log-lines.ts';

test('a defect in a check is logged as an error with its stack, once in ten seconds', t => {
  t.mock.timers.enable({ apis: ['Date'] });
  let nowMs = 0;
  t.mock.method(performance, 'now', () => nowMs);
  const lines: { msg: string; level: unknown; reason?: string; err?: { stack?: string } }[] = [];
  const destination = { write: (line: string) => void lines.push(JSON.parse(line)) };
  const written = new LogLines(createLogger({ service: 'relay', instance: 'test', level: 'debug', destination }));
  const event = { type: 'check-failed', what: 'leaders', error: new TypeError('x is undefined') } as const;
  written.onEvent(event);
  written.onEvent(event);
  nowMs = 10_001;
  written.onEvent(event);
  assert.deepEqual(
    lines.map(({ msg, reason }) => [msg, reason]),
    [
      ['log: check_failed', 'leaders'],
      ['log: check_failed', 'leaders'],
    ],
  );
  assert.match(JSON.stringify(lines[0]), /TypeError.*x is undefined/);
});

test('an error of the server is logged with its text', () => {
  const lines: { msg: string; reason?: string }[] = [];
  const destination = { write: (line: string) => void lines.push(JSON.parse(line)) };
  const written = new LogLines(createLogger({ service: 'relay', instance: 'test', level: 'debug', destination }));
  written.onEvent({ type: 'server-error', message: 'maximum subscriptions exceeded' });
  assert.deepEqual(
    lines.map(({ msg, reason }) => [msg, reason]),
    [['log: server_error', 'maximum subscriptions exceeded']],
  );
});
