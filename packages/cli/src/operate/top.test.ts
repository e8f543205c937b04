import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { type TestContext, test } from 'node:test';
import { MetricsText, type ReadProcess, snapshotOf, type TopReading, type TopSnapshot } from '@hopline/local-cluster';
import { REFUSED_ORIGIN } from '../../../../test/kit/refused.ts';
import { type Reply, startServer } from '../one-task-server.test-kit.ts';
import { run } from '../run.ts';
import { topLines } from './top-lines.ts';

const METRICS = `# HELP hopline_tokens_total Tokens in stored chunks
# TYPE hopline_tokens_total counter
hopline_tokens_total{service="relay",agent="argocd"} 1200
hopline_tokens_total{service="relay",agent="a \\"b\\"\\n, c=\\"d\\""} 1.5e1 1700000000000
hopline_shard_lag{service="relay",shard="3"} 7
hopline_shard_lag{service="relay",shard="4"} 2
hopline_open_tasks{service="relay",state="working"} 3
process_memory_usage_bytes 104857600
not a sample
hopline_wrong NaN
hopline_path_time_seconds_total{service="relay",hop="talk",agent="argocd"} 3
hopline_path_time_seconds_total{service="relay",hop="agent",agent="argocd"} 1
hopline_hop_duration_seconds_sum{service="relay",hop="hold",agent="argocd"} 9
`;

const reading = (monotonicMs: number, processes?: ReadProcess[]): TopReading => {
  const agents = [{ name: 'argocd', description: '', skills: [], state: 'live' as const, default: false }];
  // Acts as if the wall clock were set back between any two readings.
  return { at: 9_000 - monotonicMs, monotonicMs, tasks: [], counts: { working: 0 }, agents, processes, missing: [] };
};
const relay = (pid: number, text: string): ReadProcess => ({
  service: 'relay',
  instance: 'relay-1',
  pid,
  url: 'http://h',
  restarts: 1,
  isReady: true,
  isStarting: false,
  fault: null,
  metrics: new MetricsText(text),
});
const SNAPSHOT: TopSnapshot = {
  ...snapshotOf('http://127.0.0.1:8000/', reading(0, [relay(1, METRICS)]), reading(2_000, [relay(1, METRICS)])),
  tasks: { submitted: 0, working: 30 },
  live: Array.from({ length: 30 }, (_, index) => ({
    id: `task-${index}`,
    state: 'working',
    since: '1970-01-01T00:00:00Z',
    contextId: 'c',
  })),
};

test('a screen fits every width: text is wrapped, tables lose their last columns', () => {
  for (const columns of [20, 40, 80, 200]) {
    const lines = topLines(SNAPSHOT, columns);
    assert.deepEqual(
      lines.filter(line => line.length > columns),
      [],
      `${columns}`,
    );
    assert.ok(lines.some(line => line.startsWith('task-19')) && !lines.some(line => line.startsWith('task-20')));
  }
  const wide = topLines(SNAPSHOT, 200).join('\n');
  assert.match(wide, /your tasks: 30 working\n\nall tasks: 3 working; open streams 0; lag 9 records\n/);
  assert.match(wide, /\ncritical paths: talk 75 %, agent 25 %\n/);
  assert.match(wide, /AGENT +STATE +ACTIVE +TOKENS\/S +FIRST TOKEN +TURNS +FAILED\nargocd +live +0 +0\.0 +- +0 +0\n/);
  assert.match(wide, /relay-1 +ready +0 % +100 MiB +0 ms +1\n/);
  const [agent] = SNAPSHOT.agents;
  const failing = topLines({ ...SNAPSHOT, agents: [{ ...agent!, failing: 'http_500' }] }, 200).join('\n');
  assert.match(failing, /\nargocd +live, its last turns failed \(http_500\)/m);
  const down = topLines({ ...SNAPSHOT, agents: [{ ...agent!, fault: 'ECONNREFUSED' }] }, 200).join('\n');
  assert.match(down, /\nargocd +live, does not answer \(ECONNREFUSED\) +0 /);
  assert.match(topLines(SNAPSHOT, 20).join('\n'), /AGENT +STATE\n/);
});

const TASK = { id: 't-1', contextId: 'c-1', status: { state: 'TASK_STATE_WORKING', timestamp: '2026-11-22T08:00:00Z' } };
const AGENTS = { agents: [{ name: 'argocd', description: 'deploys', skills: [], state: 'live', default: true }] };
const REPLIES: Record<string, Reply> = {
  ListTasks: { result: { tasks: [TASK], nextPageToken: '', totalSize: 1 } },
  'GET /agents': { page: JSON.stringify(AGENTS) },
  'GET /metrics': { page: METRICS },
  'GET /readyz': { page: '{"ready":true,"degraded":[]}' },
};

/** With `isLocal`, the server is the ingress of the local cluster; with `isAway` it cannot be reached, and the process answers its probes only. */
async function openTop(t: TestContext, { isLocal = true, isAway = false, replies = REPLIES } = {}) {
  const server = await startServer(replies);
  const home = mkdtempSync(join(tmpdir(), 'hopline-home-'));
  t.after(async () => {
    await server[Symbol.asyncDispose]();
    rmSync(home, { recursive: true });
  });
  const process_ = { service: 'ingress', instance: 'ingress-1', pid: process.pid, url: server.url, restarts: 0 };
  const asked = isAway ? `${REFUSED_ORIGIN}/` : server.url;
  const url = isLocal ? asked : 'http://elsewhere/';
  writeFileSync(join(home, 'run.json'), JSON.stringify({ url, nats: 'nats://n', logs: '', processes: [process_] }));
  const written = { out: '', err: '', raw: [] as boolean[] };
  const stdin = Object.assign(new PassThrough(), { isTTY: true, setRawMode: (isRaw: boolean) => written.raw.push(isRaw) });
  const start = (argv: string[], isTTY: boolean, onOut = () => {}) =>
    run(['top', ...argv], {
      environment: { HOPLINE_URL: asked, HOPLINE_HOME: home, NO_COLOR: '1' },
      folder: home,
      stdin,
      stdout: {
        isTTY,
        columns: 100,
        rows: 50,
        write: text => {
          written.out += text;
          onOut();
        },
      },
      stderr: { write: text => (written.err += text) },
      signal: new AbortController().signal,
      takeInterrupts: () => {},
    });
  return { start, written, stdin };
}

test('in a pipe top prints one snapshot as lines, with --json as one object', async t => {
  const { start, written } = await openTop(t);
  assert.equal(await start([], false), 0);
  assert.match(written.out, /^Hopline http[\s\S]*lag 9 records[\s\S]*argocd +live[\s\S]*ingress-1 +ready[\s\S]*t-1 +working/);
  written.out = '';
  assert.equal(await start(['--json'], false), 0);
  const { tasks, live, cluster, agents, processes, missing } = JSON.parse(written.out);
  assert.deepEqual([tasks.working, live[0].id, cluster.lag, cluster.openTasks, missing], [1, 't-1', 9, { working: 3 }, []]);
  assert.deepEqual([agents[0].name, processes[0].instance, processes[0].memoryBytes], ['argocd', 'ingress-1', 104_857_600]);
});

test("with only a server's address, or a server without lists, top names the parts that are missing", async t => {
  const { start, written } = await openTop(t, { isLocal: false });
  assert.equal(await start([], false), 0);
  assert.match(written.out, /missing: rates, lag, processes and the load of agents: known only for the cluster of `npm start`/);
  assert.doesNotMatch(written.out, /a second|INSTANCE/);
  const { 'GET /agents': _agents, ...others } = REPLIES;
  const without = await openTop(t, { isLocal: false, replies: others });
  assert.equal(await without.start([], false), 0);
  assert.match(without.written.out, /missing: agents: the server does not list them/);
});

test('on a terminal q quits, Ctrl-C interrupts, and the terminal is restored', { timeout: 120_000 }, async t => {
  for (const [key, code] of [
    ['q', 0],
    ['\u0003', 130],
  ] as const) {
    const { start, written, stdin } = await openTop(t);
    const ended = start([], true, () => written.out.includes('q quits') && stdin.write(`x${key}`));
    assert.equal(await ended, code);
    assert.deepEqual(written.raw, [true, false]);
    assert.ok(written.out.startsWith('\x1b[H\x1b[2JHopline http'));
    assert.equal(stdin.isPaused(), true);
  }
});

test('while the server of a running cluster is away, top shows the processes and what is missing, and goes on', {
  timeout: 120_000,
}, async t => {
  const { start, written, stdin } = await openTop(t, { isAway: true });
  assert.equal(await start(['--json'], false), 0);
  const { cluster, processes, missing, tasks } = JSON.parse(written.out);
  assert.deepEqual([cluster.lag, processes[0].instance, tasks], [9, 'ingress-1', {}]);
  assert.deepEqual(missing.map((line: string) => line.split(':')[0]).toSorted(), ['agents', 'tasks']);
  written.out = '';
  const screens = () => written.out.split('q quits').length - 1;
  const ended = start([], true, () => screens() === 2 && stdin.write('q'));
  assert.equal(await ended, 0);
  assert.match(written.out, /your tasks: unknown[\s\S]*ingress-1 +ready[\s\S]*missing: /);
});
