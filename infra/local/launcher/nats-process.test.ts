import assert from 'node:assert/strict';
import { test } from 'node:test';
import { homePaths } from './home.ts';
import { natsConfig } from './nats-process.ts';
import { NatsUsers } from './nats-users.ts';

test('nats-server listens on the loopback address, stores in the home and accepts payloads of 8 MB', () => {
  const config = natsConfig(homePaths('/home/a "b"'), { port: 4222, monitor: 8222 }, new NatsUsers(['guide'], undefined));
  assert.match(config, /^listen: "127\.0\.0\.1:4222"$/m);
  assert.match(config, /^http: "127\.0\.0\.1:8222"$/m);
  assert.match(config, /^max_payload: 8MB$/m);
  assert.match(config, /store_dir: "\/home\/a \\"b\\"\/nats"/);
});
