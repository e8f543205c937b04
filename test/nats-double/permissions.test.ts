import assert from 'node:assert/strict';
import { test } from 'node:test';
import { REAL_CLOCK } from './clock.ts';
import { NatsDouble } from './nats-double.ts';
import { connectVirtually, listen, pathOf } from './virtual-network.ts';

test('a user publishes and subscribes only where its permissions allow it, and each refusal is reported', async t => {
  const denied: string[] = [];
  const reads = { publish: { allow: ['text.*'], deny: ['text.secret'] }, subscribe: { allow: ['text.>'] } };
  const users = [
    { user: 'admin', pass: 'a' },
    { user: 'reader', pass: 'r', permissions: reads },
  ];
  const double = new NatsDouble({ clock: REAL_CLOCK, users, onDenied: what => void denied.push(what) });
  const { url: servers } = listen(double, pathOf(REAL_CLOCK));
  await assert.rejects(connectVirtually({ servers, user: 'reader', pass: 'wrong' }), /Authorization Violation/);
  const admin = await connectVirtually({ servers, user: 'admin', pass: 'a' });
  const reader = await connectVirtually({ servers, user: 'reader', pass: 'r' });
  t.after(async () => {
    await Promise.all([admin.close(), reader.close()]);
    double.close();
  });
  const received: string[] = [];
  admin.subscribe('>', { callback: (_, { subject }) => void received.push(subject) });
  await admin.flush();
  for (const subject of ['text.a', 'text.secret', 'text.a.b', 'other']) reader.publish(subject);
  reader.subscribe('text.>');
  reader.subscribe('>');
  await reader.flush();
  await admin.flush();
  assert.deepEqual(received, ['text.a']);
  assert.deepEqual(denied, [
    'reader: Publish to "text.secret"',
    'reader: Publish to "text.a.b"',
    'reader: Publish to "other"',
    'reader: Subscription to ">"',
  ]);
});
