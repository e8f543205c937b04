import assert from 'node:assert/strict';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { boundedFetch } from './bounded-fetch.ts';

async function serve(t: TestContext, answer: (path: string, response: ServerResponse, body: string) => void): Promise<string> {
  const server = createServer(async (request: IncomingMessage, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    answer(request.url ?? '', response, body);
  });
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  t.after(() => void server.close().closeAllConnections());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const post = (url: string) => boundedFetch(10)(url, { method: 'POST', body: 'said', headers: { 'x-api-key': 'secret' } });

test('a redirect within the origin is followed with method and body, three times; one to elsewhere gets nothing', async t => {
  const asked: string[] = [];
  const stranger = await serve(t, (path, response) => {
    asked.push(path);
    response.end();
  });
  const url = await serve(t, (path, response, body) => {
    const left = Number(path.slice(1));
    if (path === '/away') response.writeHead(307, { location: stranger }).end();
    else if (path === '/get-it') response.writeHead(303, { location: '/0' }).end();
    else if (left > 0) response.writeHead(left % 2 === 0 ? 307 : 308, { location: `/${left - 1}` }).end();
    else response.end(body);
  });
  assert.equal(await (await post(`${url}/3`)).text(), 'said');
  assert.equal((await post(`${url}/4`)).status, 308);
  assert.equal((await post(`${url}/get-it`)).status, 303);
  assert.equal((await post(`${url}/away`)).status, 307);
  assert.deepEqual(asked, []);
});

test('a response of as many bytes as the bound is read, one more breaks it; the stream of a session is left alone', async t => {
  const url = await serve(t, (path, response) => response.end('x'.repeat(Number(path.slice(1)))));
  assert.equal((await (await post(`${url}/10`)).text()).length, 10);
  await assert.rejects((await post(`${url}/11`)).text(), /more than 10 bytes/);
  assert.equal((await (await boundedFetch(10)(`${url}/11`)).text()).length, 11);
});
