import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { stream } from '@durable-streams/client';
import { Fold, type StreamResponse } from '@hopline/a2a';
import { LONG_POLL_MS_MAX } from '../../packages/durable-streams-http/src/durable-streams-front.ts';
import { countingTokens } from '../support/agents/counting-agent.ts';
import { type RemoteAgent, startRemoteAgent } from '../support/agents/remote-agent.ts';
import { collect, frames, messageParams } from '../support/cluster/a2a-stream.ts';
import { Cluster } from '../support/cluster/cluster.ts';
import { newestPythonWith } from '../support/python/python-with-httpx.ts';

/** The clients of Durable Streams, unchanged, over a real cluster: they follow a task, resume at another replica, and end with it. */

const TOKENS = countingTokens(120);
const WHOLE = TOKENS.join('');

/** Tokens before which an agent waits until its test goes on. */
const HELD_AT = 20;

/** By question: the agent waits in mid-text, because a test may be slower than any pause. */
const held = new Map<string, PromiseWithResolvers<void>>();

let remote: RemoteAgent;
let cluster: Cluster;

before(async () => {
  remote = await startRemoteAgent({
    dialect: '0.3',
    script: async function* ({ text }) {
      if (text === 'ask') return yield { inputRequired: 'Which one?' };
      for (const [index, token] of TOKENS.entries()) {
        if (index === HELD_AT) await held.get(text)?.promise;
        yield { token };
        yield { pause: held.has(text) ? 15 : 0 };
      }
      yield { complete: true };
    },
  });
  cluster = await Cluster.shared({ replicas: 2, agents: [{ name: 'streamer', adapter: 'a2a', url: remote.url }] });
});

after(async () => {
  await cluster?.[Symbol.asyncDispose]();
  await remote?.close();
});

function generationsOf(messages: readonly StreamResponse[]): unknown[] {
  return messages.map(message => (Object.values(message)[0] as { metadata?: { generation?: number } }).metadata?.generation);
}

function assertWhole(messages: readonly StreamResponse[]): void {
  assert.deepEqual(
    generationsOf(messages),
    messages.map((_message, index) => index + 1),
  );
  const fold = new Fold();
  for (const message of messages) fold.add(message);
  assert.deepEqual(fold.violations, []);
  assert.equal(fold.textOf('streaming_result'), WHOLE);
  assert.equal(fold.task?.status.state, 'TASK_STATE_COMPLETED');
}

function streamUrl(taskId: string, ingress = 0): string {
  return new URL(`tasks/${taskId}/stream`, cluster.ingresses[ingress]!.url).href;
}

/** Starts a task and resolves with its id while it runs. */
async function startTask(text: string): Promise<string> {
  for await (const { event } of frames(cluster.url, { text })) if ('task' in event) return event.task.id;
  throw new Error('the stream has no task');
}

/** Starts a task whose agent stops in mid-text until `release`. */
async function startHeld(): Promise<{ taskId: string; release: () => void }> {
  const text = `held ${held.size}`;
  const released = Promise.withResolvers<void>();
  held.set(text, released);
  return { taskId: await startTask(text), release: released.resolve };
}

const hasText = (messages: readonly StreamResponse[]) => JSON.stringify(messages).includes('"streaming_result"');

async function endedTask(): Promise<string> {
  const [first] = await collect(cluster.url, { text: 'go' });
  return (first!.event as { task: { id: string } }).task.id;
}

/** Reads with the client until `isEnough`, or to the end of the stream. Resolves with the offset after the last message. */
async function readTo(
  url: string,
  live: 'sse' | 'long-poll',
  messages: StreamResponse[],
  { offset = '-1', isEnough = () => false }: { offset?: string; isEnough?: () => boolean } = {},
): Promise<{ offset: string; streamClosed: boolean }> {
  const cut = new AbortController();
  const response = await stream<StreamResponse>({ url, offset, live, json: true, signal: cut.signal, warnOnHttp: false });
  const position = { offset, streamClosed: false };
  const ended = Promise.withResolvers<void>();
  response.subscribeJson(batch => {
    if (cut.signal.aborted) return;
    messages.push(...batch.items);
    Object.assign(position, { offset: batch.offset, streamClosed: batch.streamClosed });
    if (!batch.streamClosed && !isEnough()) return;
    cut.abort();
    ended.resolve();
  });
  // The client resolves `closed` before it passes the last messages on.
  response.closed.catch(ended.reject);
  await ended.promise;
  return position;
}

for (const live of ['sse', 'long-poll'] as const)
  test(`${live}: the client follows a task, and resumes at another replica at its offset`, { timeout: 120_000 }, async () => {
    const { taskId, release } = await startHeld();
    const messages: StreamResponse[] = [];
    const { offset } = await readTo(streamUrl(taskId), live, messages, { isEnough: () => hasText(messages) });
    const rest = readTo(streamUrl(taskId, 1), live, messages, { offset });
    release();
    assert.equal((await rest).streamClosed, true);
    assertWhole(messages);
  });

test('a client that polls survives the death of its ingress', { timeout: 120_000 }, async () => {
  const { taskId, release } = await startHeld();
  const messages: StreamResponse[] = [];
  let dead: Promise<unknown> | undefined;
  const { streamClosed } = await readTo(streamUrl(taskId), 'long-poll', messages, {
    isEnough: () => {
      if (hasText(messages))
        dead ??= cluster.ingresses[0]!.kill()
          .then(() => cluster.ingresses[0]!.start())
          .then(release);
      return false;
    },
  });
  await dead;
  assert.equal(streamClosed, true);
  assertWhole(messages);
});

test('both replicas answer with the same bytes, and an ended task may be cached', async () => {
  const taskId = await endedTask();
  const [one, two] = await Promise.all([fetch(streamUrl(taskId)), fetch(streamUrl(taskId, 1))]);
  const bytes = await one.text();
  assert.equal(await two.text(), bytes);
  assertWhole(JSON.parse(bytes));
  const names = ['content-type', 'stream-closed', 'stream-up-to-date', 'cache-control', 'x-content-type-options'];
  assert.deepEqual(
    names.map(name => one.headers.get(name)),
    ['application/json', 'true', 'true', 'private, max-age=60, stale-while-revalidate=300', 'nosniff'],
  );
  const etag = one.headers.get('etag')!;
  assert.equal(two.headers.get('etag'), etag);
  const cached = await fetch(streamUrl(taskId), { headers: { 'if-none-match': etag } });
  assert.deepEqual([cached.status, await cached.text()], [304, '']);
  const offset = one.headers.get('stream-next-offset')!;
  for (const [query, status] of [
    [`offset=${offset}`, 200],
    [`offset=${offset}&live=long-poll`, 204],
    ['offset=now', 200],
  ] as const) {
    const end = await fetch(`${streamUrl(taskId)}?${query}`);
    assert.deepEqual(
      [end.status, end.headers.get('stream-closed'), end.headers.get('stream-next-offset')],
      [status, 'true', offset],
    );
    assert.equal(await end.text(), status === 200 ? '[]' : '');
  }
});

test('the stream of a task that waits for the user stays open, and `now` is its tail', async () => {
  const taskId = await startTask('ask');
  const url = streamUrl(taskId);
  let now: Response;
  do now = await fetch(`${url}?offset=now`);
  while (!(await (await fetch(url)).text()).includes('TASK_STATE_INPUT_REQUIRED'));
  assert.equal(now.headers.get('stream-closed'), null);
  const head = await fetch(url, { method: 'HEAD' });
  assert.deepEqual([head.status, head.headers.get('cache-control')], [200, 'no-store']);
  const rest = await fetch(`${url}?offset=${head.headers.get('stream-next-offset')}`);
  assert.deepEqual(
    [await rest.json(), rest.headers.get('stream-up-to-date'), rest.headers.get('cache-control')],
    [[], 'true', 'private, no-cache'],
  );
});

test('anything but a read of a known task is refused', async () => {
  const taskId = await endedTask();
  const cases: [string, RequestInit, number][] = [
    [streamUrl(randomUUID()), {}, 404],
    [`${streamUrl(taskId)}?offset=41.40`, {}, 400],
    [`${streamUrl(taskId)}?offset=`, {}, 400],
    [`${streamUrl(taskId)}?offset=-1&offset=now`, {}, 400],
    [`${streamUrl(taskId)}?live=sse`, {}, 400],
    [`${streamUrl(taskId)}?offset=-1&live=always`, {}, 400],
    // Beyond every event of the task.
    [`${streamUrl(taskId)}?offset=000000000099999_000000000000001`, {}, 400],
    [streamUrl(taskId), { method: 'POST', body: 'x', headers: { 'content-type': 'text/plain' } }, 405],
    [streamUrl(taskId), { method: 'PUT' }, 405],
    [streamUrl(taskId), { method: 'DELETE' }, 405],
  ];
  for (const [url, init, status] of cases) assert.equal((await fetch(url, init)).status, status, `${init.method} ${url}`);
});

test('a long poll without a message lasts LONG_POLL_MS_MAX, and one with a message ends at once', {
  timeout: 90_000,
}, async () => {
  const taskId = await startTask('ask');
  const url = streamUrl(taskId);
  while (!(await (await fetch(url)).text()).includes('TASK_STATE_INPUT_REQUIRED'));
  const poll = async (from: string) => {
    const start = performance.now();
    const response = await fetch(`${url}?offset=${from}&live=long-poll`);
    return { status: response.status, text: await response.text(), ms: performance.now() - start, headers: response.headers };
  };
  const quiet = await poll('now');
  assert.deepEqual([quiet.status, quiet.text, quiet.headers.get('stream-up-to-date')], [204, '', 'true']);
  assert.ok(quiet.ms >= LONG_POLL_MS_MAX, `${quiet.ms} ms`);
  const offset = quiet.headers.get('stream-next-offset')!;
  const [next] = await Promise.all([poll(offset), collect(cluster.url, { params: messageParams('go', { taskId }) })]);
  assert.equal(next.status, 200);
  assert.notEqual(next.text, '[]');
});

test('the Python client follows and resumes', { timeout: 300_000 }, async t => {
  const found = await newestPythonWith(['durable-streams==0.1.0']);
  if ('skip' in found) return t.skip(found.skip);
  const script = fileURLToPath(new URL('durable_streams_client.py', import.meta.url));
  const { taskId, release } = await startHeld();
  const running = promisify(execFile)(found.python, [script, streamUrl(taskId)]);
  // Its first line: it has read the beginning. It does not know that a stream can end, so a long poll at the end would never return.
  running.child.stdout!.once('data', release);
  const { stdout } = await running;
  assertWhole(JSON.parse(stdout.slice(stdout.indexOf('\n'))));
});
