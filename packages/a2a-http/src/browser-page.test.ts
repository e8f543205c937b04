import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openRig } from './http-server.test-kit.ts';

const BROWSER = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8';

test('a browser that opens the address of a server gets a page that links the console and loads nothing', async t => {
  const rig = await openRig(t, { consoleUrl: 'http://127.0.0.1:8090/?a="<b>&c' });
  const response = await fetch(rig.url, { headers: { accept: BROWSER } });
  const page = await response.text();
  assert.deepEqual([response.status, response.headers.get('content-type')], [200, 'text/html; charset=utf-8']);
  assert.match(response.headers.get('content-security-policy') ?? '', /^default-src 'none'; .*frame-ancestors 'none'$/);
  assert.ok(page.includes('<a href="http://127.0.0.1:8090/?a=&quot;&lt;b>&amp;c">the console</a>'), page);
  assert.doesNotMatch(page, /<script|<img|<link/);
});

test('if no console is known, the page has no link to one', async t => {
  const rig = await openRig(t);
  const page = await (await fetch(rig.url, { headers: { accept: BROWSER } })).text();
  assert.deepEqual(
    [...page.matchAll(/href="([^"]*)"/g)].map(([, href]) => href),
    ['/.well-known/agent-card.json'],
  );
});

test('clients, other paths and other methods get the same responses as without the page', async t => {
  const rig = await openRig(t, { consoleUrl: 'http://127.0.0.1:8090/' });
  for (const accept of ['application/json', '*/*', 'text/event-stream']) {
    const response = await fetch(rig.url, { headers: { accept } });
    assert.deepEqual([response.status, ((await response.json()) as { error: string }).error], [404, 'not found'], accept);
  }
  assert.equal((await fetch(`${rig.url}/nowhere`, { headers: { accept: BROWSER } })).status, 404);
  const posted = await fetch(rig.url, { method: 'POST', headers: { accept: BROWSER } });
  assert.match(posted.headers.get('content-type') ?? '', /^application\/json/);
});
