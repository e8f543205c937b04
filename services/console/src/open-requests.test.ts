import assert from 'node:assert/strict';
import { test } from 'node:test';
import { A2AError } from '@hopline/a2a';
import { OpenRequests } from './open-requests.ts';

const refused = (code: string) => (error: unknown) => error instanceof A2AError && error.code === code;
const caller = (token: string, address = '192.0.2.1') => ({ credentials: { authorization: `Bearer ${token}` }, address });

test('one caller gets at most a fifth of the slots, and another caller at the same address still finds room', () => {
  const requests = new OpenRequests(10);
  const anna = [requests.acquire(caller('anna')), requests.acquire(caller('anna'))];
  assert.throws(() => requests.acquire(caller('anna')), refused('QUOTA_EXCEEDED'));
  requests.acquire(caller('bert'));
  anna[0]!.release();
  anna[0]!.release();
  assert.ok(anna[0]!.signal.aborted);
  requests.acquire(caller('anna'));
  assert.throws(() => requests.acquire(caller('anna')), refused('QUOTA_EXCEEDED'));
});

test('one address gets at most four fifths of the slots, whatever credentials it makes up; without credentials it gets a fifth', () => {
  const requests = new OpenRequests(10);
  for (let n = 0; n < 8; n += 1) requests.acquire(caller(`${n}`));
  assert.throws(() => requests.acquire(caller('8')), refused('QUOTA_EXCEEDED'));
  const anonymous = { credentials: {}, address: '192.0.2.2' };
  for (let n = 0; n < 2; n += 1) requests.acquire(anonymous);
  assert.throws(() => requests.acquire(caller('other', '192.0.2.3')), refused('UNAVAILABLE'));
  const few = new OpenRequests(10);
  for (let n = 0; n < 2; n += 1) few.acquire(anonymous);
  assert.throws(() => few.acquire(anonymous), refused('QUOTA_EXCEEDED'));
});

test('aborting all requests leaves them counted until they end', () => {
  const requests = new OpenRequests(1);
  const { signal, release } = requests.acquire(caller('anna'));
  requests.abortAll();
  assert.ok(signal.aborted);
  assert.throws(() => requests.acquire(caller('bert')), refused('UNAVAILABLE'));
  release();
  requests.acquire(caller('bert'));
});
