import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { openServers } from './open-servers.ts';
import { exchangeRaw, requestText } from './raw-http.ts';

const GET = 'GET /readyz HTTP/1.1\r\nhost: localhost\r\n';
const POST = 'POST / HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n';
const BODY = '{"jsonrpc":"2.0","id":7,"method":"tasks/get","params":{"id":"x"}}';
const LENGTH = `content-length: ${BODY.length}\r\n`;
/** A request that must never be answered, because it is part of another one. */
const HIDDEN = 'GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n';

/** Allowed responses: none, or only this one. */
const MALFORMED: Record<string, string> = {
  'empty lines': '\r\n\r\n',
  'only a method': 'GET\r\n\r\n',
  'HTTP/0.9': 'GET / HTTP/0.9\r\n\r\n',
  'HTTP/9.9': 'GET / HTTP/9.9\r\nhost: localhost\r\n\r\n',
  'HTTP/2 with prior knowledge': 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  'a TLS handshake': '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03',
  CONNECT: 'CONNECT example.org:443 HTTP/1.1\r\nhost: localhost\r\n\r\n',
  'a blank in the target': 'GET /tasks/a b HTTP/1.1\r\nhost: localhost\r\n\r\n',
  'no Host': 'GET /readyz HTTP/1.1\r\n\r\n',
  'a header without a colon': `${GET}no colon\r\n\r\n`,
  'a NUL in a header': `${GET}x: a\0b\r\n\r\n`,
  'a blank before the colon': `${GET}x : 1\r\n\r\n`,
  'a folded header': `${GET}x: 1\r\n folded\r\n\r\n`,
  'a header of 20 KB': `${GET}x: ${'x'.repeat(20_000)}\r\n\r\n`,
  'a target of 20 KB': `GET /tasks/${'x'.repeat(20_000)} HTTP/1.1\r\nhost: localhost\r\n\r\n`,
  'CL and TE': `${POST}${LENGTH}transfer-encoding: chunked\r\n\r\n0\r\n\r\n${HIDDEN}`,
  'TE and CL': `${POST}transfer-encoding: chunked\r\ncontent-length: 4\r\n\r\n0\r\n\r\n${HIDDEN}`,
  'two lengths that differ': `${POST}${LENGTH}content-length: 1\r\n\r\n${BODY}${HIDDEN}`,
  'a negative length': `${POST}content-length: -1\r\n\r\n${BODY}`,
  'a length with a sign': `${POST}content-length: +${BODY.length}\r\n\r\n${BODY}`,
  'a length in hex': `${POST}content-length: 0x41\r\n\r\n${BODY}`,
  'a length that overflows': `${POST}content-length: 99999999999999999999\r\n\r\n${BODY}`,
  'a list of lengths': `${POST}content-length: ${BODY.length}, 1\r\n\r\n${BODY}`,
  'TE that is not chunked last': `${POST}transfer-encoding: chunked, gzip\r\n\r\n0\r\n\r\n${HIDDEN}`,
  'TE unknown': `${POST}transfer-encoding: xchunked\r\n\r\n0\r\n\r\n${HIDDEN}`,
  'two TE': `${POST}transfer-encoding: chunked\r\ntransfer-encoding: identity\r\n\r\n0\r\n\r\n${HIDDEN}`,
  'a chunk size that is not a number': `${POST}transfer-encoding: chunked\r\n\r\nzz\r\n`,
  'a chunk size that overflows': `${POST}transfer-encoding: chunked\r\n\r\nffffffffffffffffff\r\nx`,
  'a chunk without its line end': `${POST}transfer-encoding: chunked\r\n\r\n1\r\nxx0\r\n\r\n${HIDDEN}`,
  'a body that is shorter than its length': `${POST}content-length: ${BODY.length + 9}\r\n\r\n${BODY}`,
  'an expectation other than 100-continue': `${POST}expect: something\r\n${LENGTH}\r\n${BODY}`,
};

test('malformed and ambiguous requests get an error or no response, and bytes after them are not answered as a request', {
  concurrency: 16,
}, async t => {
  const { urls, log } = await openServers(t);
  const append = log.inputs.append.bind(log.inputs);
  let appended = 0;
  log.inputs.append = (...args) => {
    appended += 1;
    return append(...args);
  };
  const cases: Promise<void>[] = [];
  for (const [kind, url] of Object.entries(urls)) {
    for (const [name, bytes] of Object.entries(MALFORMED))
      cases.push(
        t.test(`${kind}: ${name}`, async () => {
          const { statuses, body } = await exchangeRaw(url, bytes);
          assert.ok(statuses.length <= 1, `${statuses}`);
          assert.ok(
            statuses.every(status => status >= 400 && status < 500),
            `${statuses}`,
          );
          assert.doesNotMatch(body, /node_modules|\.ts:\d|"alive"|something/);
        }),
      );
    cases.push(
      t.test(`${kind}: a whole request is answered, which proves that the cases above are refused`, async () => {
        assert.equal((await exchangeRaw(url, `${GET}\r\n`)).status, 200);
        assert.deepEqual((await exchangeRaw(url, `${GET}\r\n${GET}\r\n`)).statuses, [200, 200]);
      }),
    );
    cases.push(
      t.test(`${kind}: no upgrade to WebSocket or HTTP/2`, async () => {
        for (const protocol of ['websocket', 'h2c']) {
          const upgrade = `${GET}connection: upgrade, http2-settings\r\nupgrade: ${protocol}\r\nhttp2-settings: AAMAAABk\r\n\r\n`;
          assert.ok(!(await exchangeRaw(url, upgrade)).statuses.includes(101));
        }
      }),
    );
  }
  await Promise.all(cases);
  assert.equal(appended, 0);
});

const JSON_RPC = { name: 'JSON-RPC', line: 'POST /', headers: { host: 'localhost' }, body: BODY };
const REST = { name: 'HTTP+JSON', line: 'POST /message:send', headers: { host: 'localhost', 'a2a-version': '1.0' }, body: '{}' };

/** Types that a form can send, and others that are not JSON. */
const TYPES = [
  undefined,
  '',
  'text/plain',
  'text/plain; charset=utf-8',
  'application/x-www-form-urlencoded',
  'multipart/form-data; boundary=x',
  'text/json',
  'application/json5',
  'application/jsonp',
  'application/xml',
  'application/octet-stream',
  'text/plain, application/json',
  'application/json, text/plain',
  'application/*',
  '*/*',
];

test('bodies of other types than JSON are refused before they are read', async t => {
  const { urls } = await openServers(t);
  for (const { name, line, headers, body } of [JSON_RPC, REST]) {
    for (const type of TYPES)
      await t.test(`${name}: ${type ?? 'no type'}`, async () => {
        const typed = { ...headers, ...(type !== undefined && { 'content-type': type }) };
        const answer = await exchangeRaw(urls.ingress, requestText({ line, headers: typed, body }));
        assert.ok([400, 415].includes(answer.status), `${answer.status}`);
        assert.match(answer.body, /CONTENT_TYPE_NOT_SUPPORTED/);
      });
    for (const type of ['application/json', 'application/json; charset=utf-8', 'APPLICATION/JSON', 'application/a2a+json'])
      await t.test(`${name}: ${type} is read`, async () => {
        const answer = await exchangeRaw(
          urls.ingress,
          requestText({ line, headers: { ...headers, 'content-type': type }, body }),
        );
        assert.doesNotMatch(answer.body, /CONTENT_TYPE_NOT_SUPPORTED/);
      });
    await t.test(`${name}: a compressed body is refused`, async () => {
      const head = requestText({
        line,
        headers: { ...headers, 'content-type': 'application/json', 'content-encoding': 'gzip' },
        body,
      });
      const answer = await exchangeRaw(urls.ingress, head.replace(body, gzipSync(body).toString('latin1').slice(0, body.length)));
      assert.equal(answer.status, 415);
      assert.match(answer.body, /CONTENT_TYPE_NOT_SUPPORTED/);
    });
  }
});
