import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { DIALECTS, foldEvents } from '@hopline/a2a';
import { GrpcClient } from '@hopline/a2a-grpc/test-client';
import { createClient } from '@hopline/client';
import { userName } from '@hopline/log-jetstream';
import { collect, type Frame, messageParams, rpc, textOf } from '../support/cluster/a2a-stream.ts';
import { Cluster, loginOf } from '../support/cluster/cluster.ts';
import { type Finished, HoplineCommand } from '../support/cluster/hopline-command.ts';

/** A task is exported as a file, and the file is replayed as a stream, served, and imported into another cluster. */

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const QUESTION = 'explain hopline';
/** Credentials of a webhook: they must be in no file. */
const PLANTED = 'planted-webhook-secret';
/** The limit is long because there are two clusters of several processes, and each command is another process. */
const TIMEOUT = { timeout: 180_000 };
const LEGACY_TASK = 'legacy-task';

let folder: string;
let origin: Cluster;
let target: Cluster;
let original: Frame[];
let taskId: string;
/** The facts and inputs as an operator exports them. */
let file: string;

before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'hopline-task-files-'));
  const guide = { name: 'guide', adapter: 'recording', path: join(ROOT, 'infra/local/demo/guide.jsonl') };
  const env = { HOPLINE_PUSH: 'true', HOPLINE_WEBHOOK_ALLOW: '127.0.0.1', HOPLINE_WEBHOOK_HTTP: 'true' };
  [origin, target] = await Promise.all([
    Cluster.start({ users: true, env, agents: [guide] }),
    // A server at which no command can run.
    Cluster.start({ users: true, agents: [], supervisors: 0 }),
  ]);
  const pushNotificationConfig = { url: `http://127.0.0.1:9099/${PLANTED}`, token: PLANTED };
  const params = { ...messageParams(QUESTION), configuration: { pushNotificationConfig } };
  original = await collect(origin.url, { params });
  const [{ event } = assert.fail('no event')] = original;
  taskId = 'task' in event ? event.task.id : assert.fail('the first event is not a task');
  const legacy = { id: LEGACY_TASK, message: { role: 'user', parts: [{ type: 'text', text: QUESTION }] } };
  await (await rpc(origin.url, { method: 'tasks/sendSubscribe', params: legacy })).text();
  file = join(folder, 'task.hopline.jsonl');
  const exported = await hopline(origin, ['export', '--nats', taskId, '--output', file], 'operator');
  assert.deepEqual([exported.code, exported.out, exported.err], [0, '', '']);
}, TIMEOUT);

after(async () => {
  await Promise.all([origin, target].map(cluster => cluster?.[Symbol.asyncDispose]()));
  rmSync(folder, { recursive: true, force: true });
});

/** Runs a command. `user`: the NATS user. */
function hopline(cluster: Cluster, argv: readonly string[], user: 'operator' | 'admin' = 'operator'): Promise<Finished> {
  const login = user === 'admin' ? { NATS_USER: userName('admin', ''), NATS_PASSWORD: 'admin' } : loginOf('operator');
  return new HoplineCommand(cluster.url, argv, '', { ...login, NATS_URL: cluster.nats.url }).finished;
}

/**
 * The task and its stream from the beginning, as clients of 1.0 read them, and also clients of 0.3 or of the legacy form if the task began
 * in it.
 */
async function shown(cluster: Cluster, id: string): Promise<string> {
  const lines: string[] = [];
  for (const dialect of ['1.0', '0.3'] as const) {
    const { get, subscribe } = DIALECTS[dialect].methods;
    const response = await rpc(cluster.url, { dialect, method: get!, params: { id } });
    lines.push(await response.text());
    const stream = await rpc(cluster.url, { dialect, method: subscribe!, params: { id }, lastEventId: '0.0' });
    // Removes the sequences of cursors, which are positions in the cluster's log.
    lines.push((await stream.text()).replaceAll(/^id: (\d+)\.\d+$/gm, 'id: $1'));
  }
  return lines.join('\n');
}

const linesOf = (text: string): { cursor: string }[] =>
  text
    .trim()
    .split('\n')
    .map(line => JSON.parse(line));

const recordsOf = (path: string) =>
  readFileSync(path, 'utf8')
    .split('\n')
    .slice(1)
    .join('\n')
    .replaceAll(/,"sum":"[^"]*"/g, '');

test(
  'an interrupted export from the server continues, and repeating an export changes nothing in a complete file',
  TIMEOUT,
  async () => {
    const whole = join(folder, 'whole.hopline.jsonl');
    const cut = join(folder, 'cut.hopline.jsonl');
    assert.equal((await hopline(origin, ['export', taskId, '--output', whole])).code, 0);
    const text = readFileSync(whole, 'utf8');
    writeFileSync(cut, text);
    truncateSync(cut, Math.round(Buffer.byteLength(text) / 3));
    for (let run = 0; run < 2; run += 1) {
      assert.deepEqual(await hopline(origin, ['export', taskId, '--output', cut]), { code: 0, out: '', err: '' });
      assert.equal(readFileSync(cut, 'utf8'), text);
    }
    const piped = await hopline(origin, ['export', taskId]);
    const rest = piped.out.slice(piped.out.indexOf('\n') + 1);
    assert.equal(rest.replaceAll(/,"sum":"[^"]*"/g, ''), recordsOf(whole));
  },
);

test(
  'an export never contains the credentials of a webhook, and a redacted one contains neither text nor ids',
  TIMEOUT,
  async () => {
    const redacted = await hopline(origin, ['export', '--nats', '--redact', taskId]);
    const served = await hopline(origin, ['export', taskId]);
    for (const text of [redacted.out, served.out, readFileSync(file, 'utf8')]) assert.ok(!text.includes(PLANTED));
    assert.ok(served.out.includes(taskId) && served.out.includes(QUESTION));
    for (const secret of [taskId, QUESTION, 'streamed', 'Ingress']) assert.ok(!redacted.out.includes(secret), secret);
    const path = join(folder, 'redacted.hopline.jsonl');
    writeFileSync(path, redacted.out);
    const replayed = await hopline(origin, ['replay', path, '--pace', 'max']);
    assert.equal(replayed.out.length, textOf(original, 'streaming_result').length);
  },
);

test('a replay prints what a follower printed, from the server and from a file', TIMEOUT, async () => {
  const followed = await hopline(origin, ['follow', taskId]);
  for (const subject of [taskId, file]) {
    const replayed = await hopline(origin, ['replay', subject, '--pace', 'max']);
    assert.deepEqual(replayed, followed);
  }
  const json = await hopline(origin, ['follow', taskId, '--json']);
  const again = await hopline(origin, ['replay', taskId, '--json', '--pace', 'max']);
  // The members have the order of the log, not that of a decoded event.
  assert.deepEqual(linesOf(again.out), linesOf(json.out));
  const cursor = original[5]!.id;
  const part = await hopline(origin, ['replay', file, '--json', '--pace', 'max', '--from', cursor, '--to', original[7]!.id]);
  assert.deepEqual(
    linesOf(part.out).map(({ cursor }) => cursor),
    original.slice(6, 8).map(({ id }) => id),
  );
});

test('a task that is imported under its ids is the same to clients of every dialect, byte by byte', TIMEOUT, async () => {
  const both = join(folder, 'both.hopline.jsonl');
  assert.equal((await hopline(origin, ['export', '--nats', taskId, LEGACY_TASK, '--output', both])).code, 0);
  const imported = await hopline(target, ['import', both, '--same-ids'], 'admin');
  assert.deepEqual(imported, { code: 0, out: `${taskId}\n${LEGACY_TASK}\n`, err: '' });
  for (const id of [taskId, LEGACY_TASK]) assert.equal(await shown(target, id), await shown(origin, id));
  const again = await hopline(target, ['import', file, '--same-ids'], 'admin');
  assert.deepEqual(again, { code: 0, out: `${taskId}\n`, err: '' });
  assert.equal(await shown(target, taskId), await shown(origin, taskId));
});

test('a task that is imported under new ids links to its origin, and is listed', TIMEOUT, async () => {
  const { out, code } = await hopline(target, ['import', file, '--json'], 'admin');
  assert.equal(code, 0);
  const imported = JSON.parse(out) as { taskId: string; contextId: string; origin: string };
  assert.equal(imported.origin, taskId);
  const client = createClient({ url: target.url });
  const task = await client.get(imported.taskId);
  assert.equal(task.metadata?.['hopline.origin'], taskId);
  const { tasks } = await client.list({ contextId: imported.contextId });
  assert.deepEqual(
    tasks.map(({ id }) => id),
    [imported.taskId],
  );
  const events = [];
  for await (const item of client.subscribe(imported.taskId, { cursor: '0.0' })) if ('event' in item) events.push(item.event);
  const { artifacts } = foldEvents(events);
  const expected = foldEvents(original.map(({ event }) => event)).artifacts;
  const contentOf = (all: typeof artifacts) => [...all.values()].map(({ artifactId: _id, ...content }) => content);
  assert.deepEqual(contentOf(artifacts), contentOf(expected));
  assert.ok([...artifacts.keys()].every(id => !expected.has(id)));
});

test('a user who may only read cannot import, and nothing is imported from an invalid file', TIMEOUT, async () => {
  const countOf = async () => (await createClient({ url: target.url }).list()).totalSize;
  const before = await countOf();
  const refused = await hopline(target, ['import', file]);
  assert.equal(refused.code, 1);
  assert.match(refused.err, /NATS does not permit user operator to publish to/);
  const edited = join(folder, 'edited.hopline.jsonl');
  const text = readFileSync(file, 'utf8');
  for (const [content, message] of [
    [text.replace(QUESTION, 'explain nothing'), /the sum does not match/],
    [text.slice(0, -200), /the file ends within this line/],
    [text.replace('"version":1', '"version":2'), /use a newer Hopline/],
  ] as const) {
    writeFileSync(edited, content);
    const { code, err } = await hopline(target, ['import', edited], 'admin');
    assert.equal(code, 2);
    assert.match(err, message);
    assert.equal(err.trim().split('\n').length, 1);
  }
  assert.equal(await countOf(), before);
});

test('a file is served to clients of every binding and dialect, and resumed after cuts', TIMEOUT, async () => {
  const argv = ['serve', file, '--port', '0', '--pace', 'max', '--fault', 'cut=20', '--json'];
  const server = new HoplineCommand('', argv, '');
  try {
    await server.shows('}\n');
    const { url, grpcPort } = JSON.parse(server.out) as { url: string; grpcPort: number };
    const answer = textOf(original, 'streaming_result');
    for (const dialect of ['1.0', '0.3'] as const) {
      const events = [];
      for await (const item of createClient({ url, dialect }).stream({ parts: [{ text: QUESTION }] }))
        if ('event' in item) events.push(item.event);
      const fold = foldEvents(events);
      assert.deepEqual([fold.violations, events.length], [[], original.length]);
      assert.ok(JSON.stringify([...fold.artifacts.values()]).includes(JSON.stringify(answer).slice(1, -1)));
    }
    const listed = await new HoplineCommand(url, ['list', '--json']).finished;
    assert.ok(listed.out.includes(taskId));
    const grpc = new GrpcClient(`127.0.0.1:${grpcPort}`);
    try {
      const task = await grpc.call('GetTask', { id: taskId });
      assert.ok(JSON.stringify(task).includes(JSON.stringify(QUESTION)));
    } finally {
      grpc.close();
    }
  } finally {
    server.kill('SIGINT');
    assert.equal((await server.finished).code, 0);
  }
});
