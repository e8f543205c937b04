import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import { run } from '../run.ts';

type Params = {
  pageSize: number;
  pageToken?: string;
  historyLength: number;
  includeArtifacts?: boolean;
  text?: string;
  agent?: string;
  minDurationMs?: number;
};

/** A server with these tasks. `reply`: the text of a response that is not a page of tasks. */
async function listing(
  t: TestContext,
  questions: readonly string[],
  reply: (params: Params) => string | undefined = () => undefined,
) {
  const asked: Params[] = [];
  const server = createServer(async (request, response) => {
    const { params } = (await json(request)) as { params: Params };
    asked.push(params);
    const from = Number(params.pageToken ?? 0);
    const tasks = questions.slice(from, from + params.pageSize).map((text, index) => ({
      id: `t-${from + index}`,
      contextId: 'c-1',
      status: { state: 'TASK_STATE_COMPLETED', timestamp: '2026-11-22T08:00:00.000Z' },
      ...(params.historyLength > 0 && { history: [{ messageId: 'm', role: 'ROLE_USER', parts: [{ text }] }] }),
      ...(params.includeArtifacts && { artifacts: [{ artifactId: 'a', parts: [{ text }] }] }),
    }));
    const next = from + tasks.length < questions.length ? { nextPageToken: String(from + tasks.length) } : {};
    response.end(reply(params) ?? JSON.stringify({ jsonrpc: '2.0', id: 1, result: { tasks, ...next } }));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, asked };
}

async function list(url: string, ...argv: string[]) {
  const written = { out: '', err: '' };
  const code = await run(['tasks', '--url', url, ...argv], {
    environment: { NO_COLOR: '1' },
    folder: '/',
    stdin: process.stdin,
    stdout: { write: text => (written.out += text) },
    stderr: { write: text => (written.err += text) },
    signal: new AbortController().signal,
    takeInterrupts: () => {},
  });
  return { code, ...written };
}

const idsOf = (out: string) => out.match(/^t-\d+/gm) ?? [];
/** More bytes than a client reads. */
const TOO_LARGE = ' '.repeat(17 * 1024 * 1024);

test('tasks whose page is too large are read one by one, so that a filter misses none of them', { timeout: 120_000 }, async t => {
  const { url } = await listing(t, ['one', 'two', 'two again'], ({ pageSize }) => (pageSize > 1 ? TOO_LARGE : undefined));
  const found = await list(url, '--text', 'two');
  assert.deepEqual([found.code, idsOf(found.out), found.err], [0, ['t-1', 't-2'], '']);
});

test('a task that is too large by itself is listed without its question, and is named if it cannot be searched', {
  timeout: 120_000,
}, async t => {
  const isLarge = ({ pageToken, historyLength }: Params) => historyLength > 0 && (pageToken ?? '0') === '0';
  const { url } = await listing(t, ['one', 'two'], params => (isLarge(params) ? TOO_LARGE : undefined));
  const all = await list(url);
  assert.deepEqual([idsOf(all.out), all.out.includes('"two"'), all.out.includes('"one"')], [['t-0', 't-1'], true, false]);
  const found = await list(url, '--text', 'o');
  assert.deepEqual([idsOf(found.out), found.err], [['t-1'], 'task t-0 is left out: it is too large to search\n']);
});

test('--json prints tasks without history and artifacts, with or without a filter', async t => {
  const { url } = await listing(t, ['one', 'two']);
  const printed = [
    await list(url, '--json'),
    await list(url, '--json', '--text', 'o'),
    await list(url, '--json', '--limit', '2'),
  ];
  const tasks = printed.map(({ out }) =>
    out
      .trim()
      .split('\n')
      .map(line => JSON.parse(line)),
  );
  const status = { state: 'TASK_STATE_COMPLETED', timestamp: '2026-11-22T08:00:00.000Z' };
  for (const listed of tasks)
    assert.deepEqual(
      listed,
      [0, 1].map(index => ({ id: `t-${index}`, contextId: 'c-1', status })),
    );
});

test('the command stops reading a server that sends empty pages endlessly', { timeout: 120_000 }, async t => {
  const empty = JSON.stringify({ jsonrpc: '2.0', id: 1, result: { tasks: [], nextPageToken: 'more' } });
  const { url, asked } = await listing(t, [], () => empty);
  assert.deepEqual(await list(url, '--text', 'x'), { code: 0, out: '', err: '' });
  assert.ok(asked.length > 1);
});

test('text, agent and duration go to the server, and a server that ignores them is filtered here', async t => {
  const { url, asked } = await listing(t, ['one']);
  assert.equal((await list(url, '--text', 'one', '--agent', 'guide', '--longer', '2s')).out, '');
  assert.deepEqual([asked[0]?.text, asked[0]?.agent, asked[0]?.minDurationMs], ['one', 'guide', 2_000]);
  await list(url, '--longer', '999d');
  assert.equal(asked.at(-1)?.minDurationMs, 365 * 86_400_000, 'the most that a server compares');
});

test('the duration of a working task runs until now, not until its last change of state', { timeout: 120_000 }, async t => {
  const startMs = Date.now() - 95_000;
  const hex = startMs.toString(16).padStart(12, '0');
  const status = { state: 'TASK_STATE_WORKING', timestamp: new Date(startMs).toISOString() };
  const task = { id: `${hex.slice(0, 8)}-${hex.slice(8)}-7000-8000-000000000000`, contextId: 'c-1', status };
  const { url } = await listing(t, [], () => JSON.stringify({ jsonrpc: '2.0', id: 1, result: { tasks: [task] } }));
  assert.match((await list(url)).out, / working +1 m 3\d s /);
  assert.match((await list(url, '--longer', '1m')).out, / working /);
});

test('the columns stay aligned when two agents have answered', async t => {
  const status = { state: 'TASK_STATE_COMPLETED', timestamp: '2026-11-22T08:00:00.000Z' };
  const listed = [['files', 'guide'], ['guide']].map((agents, index) => ({
    id: `t-${index}`,
    contextId: 'c-1',
    status,
    artifacts: agents.map(sourceAgent => ({ artifactId: sourceAgent, parts: [{ text: '' }], metadata: { sourceAgent } })),
  }));
  const { url } = await listing(t, [], () => JSON.stringify({ jsonrpc: '2.0', id: 1, result: { tasks: listed } }));
  const [both = '', one = ''] = (await list(url)).out.split('\n');
  assert.match(both, /files,guide/);
  assert.equal(both.indexOf('c-1'), one.indexOf('c-1'));
});
