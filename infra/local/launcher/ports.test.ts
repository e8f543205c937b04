import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { test } from 'node:test';
import { HOST, isPortFree, requireFreePort } from './ports.ts';

test('a port in use is an error that names another port', async t => {
  const server = createServer().listen(0, HOST);
  t.after(() => server.close());
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  assert.ok(!(await isPortFree(port)));
  await assert.rejects(requireFreePort(port), {
    name: 'LaunchError',
    message: `port ${port} is in use; stop what uses it or choose another: npm start -- --port ${port + 1}`,
  });
});
