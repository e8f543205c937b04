import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { boundedFetch } from './bounded-fetch.ts';

test('a response of as many bytes as the bound is read, one more breaks it; a redirect is an answer, and takes no key anywhere', async t => {
  const asked: string[] = [];
  const server = createServer(({ url = '' }, response) => {
    asked.push(url);
    if (url === '/away') response.writeHead(307, { location: '/0' }).end();
    else response.end('x'.repeat(Number(url.slice(1))));
  });
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  t.after(() => void server.close().closeAllConnections());
  const get = (path: string) => boundedFetch(10)(`http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`);
  assert.equal((await (await get('/10')).text()).length, 10);
  await assert.rejects((await get('/11')).text(), /more than 10 bytes/);
  assert.equal((await get('/away')).status, 307);
  assert.deepEqual(asked, ['/10', '/11', '/away']);
});
