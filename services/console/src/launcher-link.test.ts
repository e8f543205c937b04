import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { test } from 'node:test';
import type { KillRequest } from '@hopline/local-cluster';
import { LauncherLink } from './launcher-link.ts';

/** A channel whose other end answers each request with `fault`. */
function channelWith(fault: string | undefined, sent: KillRequest[] = []) {
  const channel = Object.assign(new EventEmitter(), {
    send: (message: KillRequest, done: (error: Error | null) => void) => {
      sent.push(message);
      done(null);
      channel.emit('message', { id: message.id, ...(fault !== undefined && { fault }) });
    },
  });
  return channel;
}

test('the token arrives with the first message of the launcher, and each request repeats the one that the page sent', async () => {
  const sent: KillRequest[] = [];
  const channel = channelWith(undefined, sent);
  const link = new LauncherLink(channel);
  assert.equal(link.token, undefined);
  channel.emit('message', { token: 'secret' });
  assert.equal(link.token, 'secret');
  await link.kill('relay-1', 'of the page');
  await link.kill('nats-1', 'secret');
  assert.deepEqual(sent, [
    { id: 1, token: 'of the page', kill: 'relay-1' },
    { id: 2, token: 'secret', kill: 'nats-1' },
  ]);
});

test('a refusal by the launcher is an error with the launcher’s sentence', async () => {
  const link = new LauncherLink(channelWith('relay-1 is not running'));
  await assert.rejects(link.kill('relay-1', 'x'), { code: 'INVALID_PARAMS', message: /relay-1 is not running/ });
});

test('a process that something else started has no launcher', () => {
  assert.equal(new LauncherLink(new EventEmitter()).token, undefined);
});
