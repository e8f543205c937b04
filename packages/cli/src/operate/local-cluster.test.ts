import assert from 'node:assert/strict';
import { once } from 'node:events';
import { appendFileSync, mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { type TestContext, test } from 'node:test';
import { until } from '../../../../test/kit/until.ts';
import { run } from '../run.ts';

function newHome(t: TestContext): string {
  const home = mkdtempSync(join(tmpdir(), 'hopline-home-'));
  mkdirSync(join(home, 'logs'));
  t.after(() => rmSync(home, { recursive: true }));
  return home;
}

async function hopline(home: string, argv: string[], signal = new AbortController().signal, onOut = (_out: string) => {}) {
  const written = { out: '', err: '' };
  const code = await run(argv, {
    environment: { HOPLINE_HOME: home, NO_COLOR: '1' },
    folder: home,
    stdin: Readable.from([]),
    stdout: {
      write: text => {
        written.out += text;
        onOut(written.out);
      },
    },
    stderr: { write: text => (written.err += text) },
    signal,
    takeInterrupts: () => {},
  });
  return { code, ...written };
}

/** A process whose /readyz answers with this status and body. */
async function probed(t: TestContext, status: number, body: object): Promise<string> {
  const server = createServer((_request, response) => response.writeHead(status).end(JSON.stringify(body))).listen(
    0,
    '127.0.0.1',
  );
  await once(server, 'listening');
  t.after(() => server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Above any process id that Linux and macOS assign. */
const GONE = 2 ** 22 + 1;

const row = (instance: string, url: string, more: object = {}) => ({
  service: instance.replace(/-\w+$/, ''),
  instance,
  pid: process.pid,
  url,
  restarts: 0,
  ...more,
});

test('status lists each process with its state, and each agent with the reason why it cannot work', async t => {
  const home = newHome(t);
  const ready = await probed(t, 200, { ready: true, degraded: [] });
  const degraded = await probed(t, 200, { ready: true, degraded: [{ check: 'agent', reason: 'ECONNREFUSED' }] });
  const old = await probed(t, 200, { ready: true, degraded: [{ check: 'api_keys', reason: 'previous_content_in_use' }] });
  const waiting = await probed(t, 503, { ready: false, not_ready: [{ check: 'log', reason: 'LogUnavailable' }] });
  const processes = [
    row('ingress-1', ready),
    row('ingress-2', old),
    row('sub-agent-argocd', degraded, { agent: { name: 'argocd', target: '127.0.0.1:8001' } }),
  ];
  const write = (all: object[]) =>
    writeFileSync(join(home, 'run.json'), JSON.stringify({ url: 'http://h/', nats: 'nats://n:1', logs: '/l', processes: all }));
  write(processes);
  const { code, out } = await hopline(home, ['status']);
  assert.equal(code, 0);
  assert.match(out, /^Hopline http:\/\/h\/ {3}NATS nats:\/\/n:1 \(not started by Hopline\)/);
  assert.match(out, new RegExp(`ingress +ingress-1 +${process.pid} +${new URL(ready).port} +ready +0\n`));
  assert.match(out, / ready, but is degraded \(api_keys: previous_content_in_use\) +0\n/);
  assert.match(out, /\nargocd +cannot be reached \(ECONNREFUSED 127\.0\.0\.1:8001\)\n/);
  write([
    ...processes,
    row('relay-1', waiting, { restarts: 3 }),
    row('relay-2', '', { pid: null, ending: 'exit code 78' }),
    row('nats-1', 'nats://n', { pid: GONE }),
  ]);
  const failed = await hopline(home, ['status', '--json']);
  assert.equal(failed.code, 1);
  const rows = failed.out
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line));
  assert.deepEqual(
    rows.slice(3).map(({ instance, restarts, isReady, fault }) => [instance, restarts, isReady, fault]),
    [
      ['relay-1', 3, false, 'is not ready (log: LogUnavailable)'],
      ['relay-2', 0, false, 'is not running (exit code 78)'],
      ['nats-1', 0, false, `is not running (process ${GONE} is gone)`],
    ],
  );
});

test('status without a cluster prints the command that starts one', async t => {
  const { code, err } = await hopline(newHome(t), ['status']);
  assert.equal(code, 2);
  assert.match(err, /no local cluster is running .*npm start/);
});

const line = (second: number, msg: string, more = {}) =>
  `${JSON.stringify({ level: 'info', time: `2026-11-22T08:00:0${second}.000Z`, service: 's', instance: 'i', ...more, msg })}\n`;

test('the logs of all services, or of one, are printed in the order of their times', async t => {
  const home = newHome(t);
  writeFileSync(join(home, 'logs/relay-1.log'), line(1, 'one', { shards: 16 }) + line(3, 'three'));
  writeFileSync(join(home, 'logs/relay-1.log.1'), line(0, 'older'));
  writeFileSync(join(home, 'logs/nats-1.log'), '[7] 2026/11/22 08:00:02.000000 [INF] two\n');
  writeFileSync(join(home, 'logs/sub-agent-dice.log'), 'plain text\n');
  const all = await hopline(home, ['logs']);
  const zone = new Date('2026-11-22T08:00:01Z').getHours() - 8;
  if (zone === 0)
    assert.deepEqual(all.out.trimEnd().split('\n'), [
      'sub-agent-dice  plain text',
      '08:00:01.000  relay-1         info  one  shards=16',
      '08:00:02.000  nats-1          [INF] two',
      '08:00:03.000  relay-1         info  three',
    ]);
  assert.equal((await hopline(home, ['logs', 'relay', '--lines', '1', '--json'])).out, line(3, 'three'));
  const nats = { time: '2026-11-22T08:00:02.000Z', level: 'info', instance: 'nats-1', msg: 'two' };
  if (zone === 0) assert.deepEqual(JSON.parse((await hopline(home, ['logs', 'nats', '--json'])).out), nats);
  const plain = { level: 'info', instance: 'sub-agent-dice', msg: 'plain text' };
  assert.deepEqual(JSON.parse((await hopline(home, ['logs', 'dice', '--json'])).out), plain);
  assert.equal((await hopline(home, ['logs', 'relay', '--lines', '0'])).out, '');
  for (const name of ['dice', 'sub-agent', 'sub-agent-dice'])
    assert.equal((await hopline(home, ['logs', name])).out, 'plain text\n');
  const none = await hopline(home, ['logs', 'nothing']);
  assert.deepEqual(
    [none.code, none.err],
    [2, 'hopline: there is no log of nothing; there are nats-1, relay-1, sub-agent-dice\n'],
  );
  assert.equal((await hopline(home, ['logs', '--lines', '100001'])).code, 2);
});

test('a service’s log line cannot start a new line or control the terminal; --json has it unchanged, and makes an object of a line that is text', async t => {
  const home = newHome(t);
  const hostile = line(1, 'turn failed', { agent: 'a\x1b[2J\nforged', reason: 'no\u202eroute' });
  writeFileSync(join(home, 'logs/relay-1.log'), `${hostile}plain\x1b[2J\n`);
  const { out } = await hopline(home, ['logs', 'relay']);
  assert.match(
    out,
    /^[\d:.]+ {2}info {2}turn failed {2}agent="a\\u001b\[2J\\nforged" {2}reason=no\\u202eroute\n[\d:.]+ {2}plain\\u001b\[2J\n$/,
  );
  const plain = { time: '2026-11-22T08:00:01.000Z', level: 'info', instance: 'relay-1', msg: 'plain\x1b[2J' };
  assert.equal((await hopline(home, ['logs', 'relay', '--json'])).out, `${hostile}${JSON.stringify(plain)}\n`);
});

test('reading the end of a long log starts at a whole line; a last line without a line end is printed, too', async t => {
  const home = newHome(t);
  const path = join(home, 'logs/relay-1.log');
  const filler = line(1, 'x'.repeat(1_000));
  writeFileSync(path, `${filler.repeat(5_000)}killed while it wrote`);
  const { out } = await hopline(home, ['logs', '--json', '--lines', '100000']);
  const lines = out.trimEnd().split('\n');
  assert.ok(lines[0] === filler.trimEnd(), lines[0]!.slice(0, 80));
  assert.equal(JSON.parse(lines.at(-1)!).msg, 'killed while it wrote');
});

test('logs -f prints new lines, even after the log was emptied, and the lines of a service that starts later', {
  timeout: 120_000,
}, async t => {
  const home = newHome(t);
  const path = join(home, 'logs/relay-1.log');
  writeFileSync(path, line(1, 'past'));
  const stop = new AbortController();
  const seen = { out: '' };
  const following = hopline(home, ['logs', '-f', '--json'], stop.signal, out => (seen.out = out));
  const printed = async (text: string) => {
    await until(() => seen.out.includes(text));
  };
  await printed('past');
  appendFileSync(path, line(2, 'added').slice(0, 20));
  appendFileSync(path, line(2, 'added').slice(20));
  await printed('added');
  truncateSync(path);
  appendFileSync(path, line(3, 'later'));
  await printed('later');
  writeFileSync(join(home, 'logs/relay-2.log'), line(4, 'second relay'));
  await printed('second relay');
  stop.abort();
  assert.equal((await following).code, 130);
  assert.equal(seen.out, ['past', 'added', 'later', 'second relay'].map((msg, i) => line(i + 1, msg)).join(''));
});
