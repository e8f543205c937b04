import assert from 'node:assert/strict';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type TestContext, test } from 'node:test';
import { listen } from '../../../test/kit/listen.ts';
import { boundedFetch } from './bounded-fetch.ts';

async function serve(t: TestContext, answer: (path: string, response: ServerResponse, body: string) => void): Promise<string> {
  const server = createServer(async (request: IncomingMessage, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    answer(request.url ?? '', response, body);
  });
  const origin = await listen(server);
  t.after(() => void server.close().closeAllConnections());
  return origin;
}

const send = boundedFetch({ bytesMax: 10, boundedMethods: ['POST'], redirectsMax: 3, freshConnections: true });
const post = (url: string) => send(url, { method: 'POST', body: 'body', headers: { 'x-api-key': 'secret' } });

test('redirects within the origin keep method and body, three times; another origin receives nothing', async t => {
  const received: string[] = [];
  const otherOrigin = await serve(t, (path, response) => {
    received.push(path);
    response.end();
  });
  const url = await serve(t, (path, response, body) => {
    const left = Number(path.slice(1));
    if (path === '/away') response.writeHead(307, { location: otherOrigin }).end();
    else if (path === '/get-it') response.writeHead(303, { location: '/0' }).end();
    else if (left > 0) response.writeHead(left % 2 === 0 ? 307 : 308, { location: `/${left - 1}` }).end();
    else response.end(body);
  });
  assert.equal(await (await post(`${url}/3`)).text(), 'body');
  assert.equal((await post(`${url}/4`)).status, 308);
  assert.equal((await post(`${url}/get-it`)).status, 303);
  assert.equal((await post(`${url}/away`)).status, 307);
  assert.deepEqual(received, []);
});

test('a response of exactly the bound is read, one byte more rejects; methods outside the list are unbounded', async t => {
  const url = await serve(t, (path, response) => response.end('x'.repeat(Number(path.slice(1)))));
  assert.equal((await (await post(`${url}/10`)).text()).length, 10);
  await assert.rejects((await post(`${url}/11`)).text(), /more than 10 bytes/);
  assert.equal((await (await send(`${url}/11`)).text()).length, 11);
});

test('if redirects are not allowed, a redirect is the response; without a list of methods, every method is bounded', async t => {
  const received: string[] = [];
  const url = await serve(t, (path, response) => {
    received.push(path);
    if (path === '/away') response.writeHead(307, { location: '/0' }).end();
    else response.end('x'.repeat(Number(path.slice(1))));
  });
  const get = (path: string) => boundedFetch({ bytesMax: 10 })(`${url}${path}`);
  assert.equal((await (await get('/10')).text()).length, 10);
  await assert.rejects((await get('/11')).text(), /more than 10 bytes/);
  assert.equal((await get('/away')).status, 307);
  assert.deepEqual(received, ['/10', '/11', '/away']);
});
