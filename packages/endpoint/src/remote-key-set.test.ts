import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { listen } from '../../../test/kit/listen.ts';
import { verdictOnToken } from './bearer-token.ts';
import { createIssuer, RULES, recordingLogger } from './issuer.test-kit.ts';
import {
  KEY_SET_BYTES_MAX,
  KEY_SET_COOLDOWN_MS,
  KEY_SET_FETCH_MS_MAX,
  KEY_SET_FRESH_MS,
  KEY_SET_RETRY_MS,
  RemoteKeySet,
} from './remote-key-set.ts';

const STALE_MS = 5_000;

/** A key server that can be broken, and a clock moved by hand. */
async function open(t: TestContext, keySet: string) {
  const state = { body: keySet, status: 200, required: 0, nowMs: 0, location: '', endless: false };
  const server = createServer((_request, response) => {
    state.required += 1;
    response.writeHead(state.status, state.location === '' ? {} : { location: state.location });
    if (state.endless) response.write(state.body);
    else response.end(state.body);
  });
  await listen(server);
  const { port } = server.address() as AddressInfo;
  const { logger, lines } = recordingLogger();
  const keys = new RemoteKeySet({ url: `http://127.0.0.1:${port}/jwks`, staleMsMax: STALE_MS, logger, now: () => state.nowMs });
  t.after(() => {
    keys.close();
    server.close();
    server.closeAllConnections();
  });
  const ask = async (token: string): Promise<string> => {
    const verdict = await verdictOnToken(token, RULES, keys.find).catch((error: { code: string }) => error.code);
    return typeof verdict === 'string' ? verdict : 'caller' in verdict ? 'taken' : verdict.refusal;
  };
  return { state, lines, ask, keys };
}

test('keys are fetched once and cached', async t => {
  const issuer = await createIssuer();
  const { state, ask } = await open(t, issuer.keySet);
  assert.deepEqual(await Promise.all(Array.from({ length: 20 }, async () => ask(await issuer.token()))), Array(20).fill('taken'));
  state.nowMs = KEY_SET_FRESH_MS - 1;
  assert.equal(await ask(await issuer.token()), 'taken');
  assert.equal(state.required, 1);
});

test('a new key is found at once, but made-up key ids cause at most one request per cooldown', async t => {
  const [old, fresh] = [await createIssuer('k1'), await createIssuer('k2')];
  const { state, ask } = await open(t, old.keySet);
  assert.equal(await ask(await old.token()), 'taken');
  state.body = fresh.keySet;
  for (let n = 0; n < 50; n += 1) assert.equal(await ask(await fresh.token({}, { kid: `made-up-${n}` })), 'not valid');
  assert.equal(state.required, 1);
  state.nowMs = KEY_SET_COOLDOWN_MS;
  assert.equal(await ask(await fresh.token()), 'taken');
  assert.equal(await ask(await old.token()), 'not valid', 'a key that was withdrawn');
  assert.equal(state.required, 2);
});

test('while the URL is unreachable, cached keys apply until they are too old; then callers get UNAVAILABLE', async t => {
  const issuer = await createIssuer();
  const { state, ask, keys, lines } = await open(t, issuer.keySet);
  assert.equal(await ask(await issuer.token()), 'taken');
  state.status = 503;
  state.nowMs = KEY_SET_FRESH_MS + STALE_MS;
  assert.equal(await ask(await issuer.token()), 'taken');
  await keys.refresh();
  assert.match(lines.join(''), /HTTP 503/);
  state.nowMs += KEY_SET_RETRY_MS;
  assert.equal(await ask(await issuer.token()), 'UNAVAILABLE');
  state.status = 200;
  assert.equal(await ask(await issuer.token()), 'UNAVAILABLE', 'it was tried just now');
  state.nowMs += KEY_SET_RETRY_MS;
  assert.equal(await ask(await issuer.token()), 'taken');
});

test('a response that is too large, is not a key set, or redirects is refused', async t => {
  const issuer = await createIssuer();
  const padded = (bytes: number) => issuer.keySet + ' '.repeat(bytes - issuer.keySet.length);
  const { state, ask, lines } = await open(t, padded(KEY_SET_BYTES_MAX + 1));
  const next = async (change: Partial<typeof state>) => {
    Object.assign(state, { location: '', status: 200 }, change);
    state.nowMs += KEY_SET_RETRY_MS;
    return ask(await issuer.token());
  };
  assert.equal(await next({}), 'UNAVAILABLE');
  assert.match(lines.at(-1)!, /exceeds 262144 bytes/);
  assert.equal(await next({ body: '<html>SECRET' }), 'UNAVAILABLE');
  assert.equal(await next({ body: issuer.keySet, status: 302, location: '/elsewhere' }), 'UNAVAILABLE');
  assert.equal(await next({ body: padded(KEY_SET_BYTES_MAX) }), 'taken');
  assert.doesNotMatch(lines.join(''), /SECRET/);
});

test('a response that does not end is abandoned in time', async t => {
  const issuer = await createIssuer();
  const { state, ask, lines } = await open(t, issuer.keySet);
  state.endless = true;
  const startedMs = performance.now();
  assert.equal(await ask(await issuer.token()), 'UNAVAILABLE');
  const tookMs = performance.now() - startedMs;
  assert.ok(tookMs >= KEY_SET_FETCH_MS_MAX - 50 && tookMs < KEY_SET_FETCH_MS_MAX + 10_000, `${tookMs} ms`);
  assert.match(lines.join(''), /not fetched/);
});
