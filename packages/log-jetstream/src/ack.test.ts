import assert from 'node:assert/strict';
import test from 'node:test';
import { headers, type Msg } from '@nats-io/nats-core';
import { parseAck } from './ack.ts';

function answer(payload: unknown, code = 0): Msg {
  const text = payload === undefined ? '' : typeof payload === 'string' ? payload : JSON.stringify(payload);
  const data = Buffer.from(text);
  return { data, headers: code ? headers(code, 'status') : undefined, json: () => JSON.parse(text) } as unknown as Msg;
}

const error = (err_code: number, code = 400, description = 'reason') => ({
  error: { code, err_code, description },
  stream: 'S',
  seq: 0,
});

test('an ack means stored, even for a duplicate', () => {
  assert.deepEqual(parseAck(answer({ stream: 'S', seq: 5 })), { verdict: 'stored', seq: 5, duplicate: false });
  assert.deepEqual(parseAck(answer({ stream: 'S', seq: 5, duplicate: true, domain: 'hub' })), {
    verdict: 'stored',
    seq: 5,
    duplicate: true,
  });
});

test('transient errors are retried: no leader, in process, too many requests, full, unavailable, unreadable', () => {
  const transient = [
    answer(undefined, 503),
    answer(undefined),
    answer('nonsense'),
    answer({}),
    answer(error(10158, 409)),
    answer(error(10164)),
  ];
  transient.push(
    answer(error(10167, 429)),
    answer(error(10077, 503)),
    answer(error(10077)),
    answer(error(10008, 503)),
    answer(error(1, 500)),
  );
  for (const msg of transient) assert.equal(parseAck(msg).verdict, 'retry');
});

test('a stream without room is full, not unavailable', () => {
  const full = { verdict: 'full', reason: 'maximum bytes exceeded', stream: 'S' };
  assert.deepEqual(parseAck(answer(error(10077, 503, 'maximum bytes exceeded'))), full);
});

test('lasting errors are classified', () => {
  assert.deepEqual(parseAck(answer(error(10071))), { verdict: 'conflict', reason: 'reason' });
  assert.deepEqual(parseAck(answer(error(10054))), { verdict: 'too-large', reason: 'reason' });
  assert.deepEqual(parseAck(answer(error(10060))), { verdict: 'refused', reason: 'reason' });
});
