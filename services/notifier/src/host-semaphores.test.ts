import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HostSemaphores } from './host-semaphores.ts';

const never = new AbortController().signal;

test('hosts do not wait for each other, and an unused host is removed', async () => {
  const hosts = new HostSemaphores(1);
  const slow = await hosts.acquire('slow', never);
  const waiting = new AbortController();
  const second = hosts.acquire('slow', waiting.signal);
  const other = await hosts.acquire('other', never);
  assert.ok(other);
  assert.equal(hosts.size, 2);
  waiting.abort();
  assert.equal(await second, undefined);
  slow!();
  other();
  other();
  assert.equal(hosts.size, 0);
});
