import assert from 'node:assert/strict';
import { appendFileSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { createClient } from '@hopline/client';
import { accounts, authorization, openJetStreamLog, serverUsers } from '@hopline/log-jetstream';
import { jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { collect } from '../kit/collect.ts';
import { until } from '../kit/until.ts';
import { Cluster } from '../support/cluster/cluster.ts';
import { HoplineCommand } from '../support/cluster/hopline-command.ts';
import { createStreams, startNats } from '../support/nats/nats-server.ts';

const LIMITS = { timeout: 90_000 };
/** Continues its turn when the file exists, with the word in it. */
const AGENT = `import { existsSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
export default { name: 'writer', description: 'Writes', async *run(turn) {
  yield 'begin ';
  const path = turn.text.startsWith('wait ') ? turn.text.slice(5) : undefined;
  if (path !== undefined) while (!existsSync(path)) await sleep(50);
  const word = path === undefined ? '' : readFileSync(path, 'utf8');
  for (let n = 0; n < 20; n++) { yield word + n + ' '; await sleep(5); }
  yield 'end';
} };
`;
const textOf = (word: string) => `begin ${Array.from({ length: 20 }, (_, n) => `${word}${n} `).join('')}end`;

async function hopline(natsUrl: string, ...args: string[]) {
  const environment = { NATS_URL: natsUrl, NATS_USER: 'admin', NATS_PASSWORD: 'admin' };
  return await new HoplineCommand('http://127.0.0.1:1/', args, '', environment).finished;
}

async function removeStreams(natsUrl: string): Promise<void> {
  const nc = await connect({ servers: natsUrl, user: 'admin', pass: 'admin' });
  try {
    const { streams } = await jetstreamManager(nc);
    for (const { config } of await collect(streams.list())) await streams.delete(config.name);
  } finally {
    await nc.close();
  }
}

async function follow(url: string, task: string, cursor?: string) {
  const args = ['follow', task, '--json', ...(cursor === undefined ? [] : ['--cursor', cursor])];
  const { out, err, code } = await new HoplineCommand(url, args).finished;
  return { lines: out.split('\n').filter(line => line !== ''), err, code };
}

test(
  'a backup of a running cluster, restored after its streams were removed, has the tasks and cursors of its moment, and work continues',
  LIMITS,
  async t => {
    const folder = mkdtempSync(join(tmpdir(), 'hopline-backup-'));
    t.after(() => rmSync(folder, { recursive: true }));
    const path = join(folder, 'writer.mjs');
    writeFileSync(path, AGENT);
    const go = join(folder, 'go');
    const backup = join(folder, 'backup');
    const options = { users: true, agents: [{ name: 'writer', adapter: 'module', path }] };
    const users = new Map(serverUsers(['writer']).map(user => [user, { text: user }] as const));

    let ended: string;
    let open: string;
    let lines: string[];
    let lost: string[];
    // The same server, so that nothing but the restore itself shows that the log was replaced.
    const nats = await startNats({ config: authorization(users) });
    t.after(() => nats.stop());
    {
      await using cluster = await Cluster.start({ ...options, nats });
      const asked = await new HoplineCommand(cluster.url, ['ask', 'write', '--json']).finished;
      assert.equal(asked.code, 0, asked.err);
      const waiting = new HoplineCommand(cluster.url, ['ask', `wait ${go}`]);
      await waiting.printed('begin'.length);
      const client = createClient({ url: `${cluster.url}/` });
      const listed = (state: string) =>
        until(async () => (await client.list()).tasks.find(({ status }) => status.state === state)?.id, `${state} in the list`);
      ended = await listed('TASK_STATE_COMPLETED');
      open = await listed('TASK_STATE_WORKING');
      ({ lines } = await follow(cluster.url, ended));
      const made = await hopline(cluster.nats.url, 'backup', backup);
      assert.equal(made.code, 0, made.err);
      assert.match(made.out, /A2A_LOG: \d+ messages, \d+ bytes\n(.*\n)*backup complete/);
      assert.equal(statSync(join(backup, 'A2A_LOG', 'stream.tar.s2')).mode & 0o777, 0o600);
      const again = await hopline(cluster.nats.url, 'backup', backup);
      assert.equal(again.code, 2);
      assert.match(again.err, /is not empty/);
      writeFileSync(go, 'lost ');
      await waiting.finished;
      ({ lines: lost } = await follow(cluster.url, open));
      rmSync(go);
    }

    await removeStreams(nats.url);
    const restored = await hopline(nats.url, 'restore', backup);
    assert.equal(restored.code, 0, restored.err);
    writeFileSync(go, 'kept ');
    await using cluster = await Cluster.start({ ...options, nats });
    const after = await follow(cluster.url, ended);
    assert.deepEqual(after.lines, lines, 'the same events with the same cursors');
    const { cursor } = JSON.parse(lines.at(-3)!);
    assert.deepEqual((await follow(cluster.url, ended, cursor)).lines, lines.slice(-2));
    const [generation, seq] = JSON.parse(lines.at(-1)!).cursor.split('.');
    const later = await follow(cluster.url, ended, `${Number(generation) + 1}.${Number(seq) + 1}`);
    assert.match(later.err, /cursor does not belong to this task/);
    // The turn that ran at the moment of the backup runs again.
    const waited = await new HoplineCommand(cluster.url, ['follow', open]).finished;
    assert.equal(waited.code, 0, waited.err);
    assert.ok(waited.out.endsWith(textOf('kept ')), waited.out);
    // A client that has read a part of the lost answer gets the whole task, not the rest of a different answer.
    const cursors = new Set((await follow(cluster.url, open)).lines.map(line => JSON.parse(line).cursor));
    const read = lost.findIndex(line => line.includes('lost '));
    assert.ok(
      lost.slice(read).every(line => !cursors.has(JSON.parse(line).cursor)),
      'no cursor of the lost answer names another event',
    );
    const resumed = await follow(cluster.url, open, JSON.parse(lost[read]!).cursor);
    assert.ok('gap' in JSON.parse(resumed.lines[0]!), resumed.err);
    assert.ok('task' in JSON.parse(resumed.lines[1]!).event);
    const next = await new HoplineCommand(cluster.url, ['ask', 'write']).finished;
    assert.equal(next.out.trim(), textOf(''));

    // The way of a log into the form in which agents have accounts of their own.
    const withAccounts = await startNats({ config: accounts(users) });
    t.after(() => withAccounts.stop());
    const moved = await hopline(withAccounts.url, 'restore', backup);
    assert.equal(moved.code, 0, moved.err);
    await using other = await Cluster.start({ ...options, nats: withAccounts });
    assert.deepEqual((await follow(other.url, ended)).lines, lines);
    assert.equal((await new HoplineCommand(other.url, ['ask', 'write']).finished).out.trim(), textOf(''));
  },
);

test('a restore rejects an incomplete or changed backup, another prefix, and streams that exist', LIMITS, async t => {
  const folder = mkdtempSync(join(tmpdir(), 'hopline-backup-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const [full, empty] = await Promise.all([startNats(), startNats()]);
  t.after(() => Promise.all([full.stop(), empty.stop()]));
  await createStreams(full.url);
  const run = async (url: string, args: string[], environment: Record<string, string> = {}) =>
    await new HoplineCommand('http://127.0.0.1:1/', args, '', { NATS_URL: url, ...environment }).finished;
  const backup = join(folder, 'backup');
  assert.equal((await run(full.url, ['backup', backup])).code, 0);
  const rejected = async (pattern: RegExp, url = empty.url, from = backup, environment = {}) => {
    const { code, err } = await run(url, ['restore', from], environment);
    assert.equal(code, 2, err);
    assert.match(err, pattern);
  };
  await rejected(/does not contain a complete backup/, empty.url, folder);
  await rejected(/HOPLINE_PREFIX/, empty.url, backup, { HOPLINE_PREFIX: 'blue' });
  await rejected(/stream KV_hopline_leases exists/, full.url);
  const list = join(backup, 'hopline-backup.json');
  const complete = readFileSync(list);
  writeFileSync(list, complete.subarray(0, -10));
  await rejected(/hopline-backup\.json is not JSON: the folder does not contain a complete backup/);
  writeFileSync(list, complete);
  const data = join(backup, 'A2A_LOG', 'stream.tar.s2');
  const intact = readFileSync(data);
  appendFileSync(data, 'x');
  await rejected(/SHA-256 differs/);
  writeFileSync(data, intact);
  const config = join(backup, 'A2A_LOG', 'backup.json');
  const written = readFileSync(config, 'utf8');
  // One digit of the retention, which no other check would notice.
  writeFileSync(config, written.replace(/"max_age": \d/, '"max_age": 9'));
  await rejected(/backup\.json was changed or is incomplete: its SHA-256 differs/);
  writeFileSync(config, written);
  assert.equal((await run(empty.url, ['restore', backup])).code, 0);
});

test(
  'commands that NATS does not permit exit with 1, not as for a server that cannot be reached or a wrong command line',
  LIMITS,
  async t => {
    const folder = mkdtempSync(join(tmpdir(), 'hopline-backup-'));
    t.after(() => rmSync(folder, { recursive: true }));
    const denying = (user: string, ...subjects: string[]) =>
      `{ user: ${user}, password: ${user}, permissions: { publish: { deny: ${JSON.stringify(subjects)} } } }`;
    const half = denying('half', '$JS.API.STREAM.SNAPSHOT.>', '$JS.API.STREAM.RESTORE.>');
    const blind = denying('blind', '$JS.API.DIRECT.GET.>', '$JS.API.CONSUMER.>', '$JS.API.STREAM.MSG.GET.>');
    const config = `authorization { users = [ { user: all, password: all }, ${half}, ${blind}, ${denying('none', '$JS.API.>')} ] }`;
    const [full, empty] = await Promise.all([startNats({ config }), startNats({ config })]);
    t.after(() => Promise.all([full.stop(), empty.stop()]));
    const credentials = { user: 'all', pass: 'all' };
    await (await openJetStreamLog({ servers: full.url, name: 'streams', credentials })).close();
    const run = async (url: string, user: string, ...args: string[]) => {
      const environment = { NATS_URL: url, NATS_USER: user, NATS_PASSWORD: user };
      return await new HoplineCommand('http://127.0.0.1:1/', args, '', environment).finished;
    };
    const isDenied = async (url: string, user: string, ...args: string[]) => {
      const { code, err } = await run(url, user, ...args);
      assert.match(err, new RegExp(`NATS does not permit user ${user} to publish to \\$JS\\.API\\.`));
      assert.equal(code, 1, err);
    };
    const backup = join(folder, 'backup');
    assert.equal((await run(full.url, 'all', 'backup', backup)).code, 0);
    await isDenied(full.url, 'none', 'backup', join(folder, 'first'));
    await isDenied(full.url, 'half', 'backup', join(folder, 'second'));
    await isDenied(full.url, 'none', 'layout');
    await isDenied(empty.url, 'half', 'restore', backup);
    for (const args of [
      ['trace', '--nats', 't'],
      ['export', '--nats', 't'],
      ['verify', '--all'],
      ['erase', 't'],
    ])
      await isDenied(full.url, 'none', ...args);
    await isDenied(full.url, 'blind', 'trace', '--nats', 't');
    await isDenied(full.url, 'blind', 'export', '--nats', 't');
    await isDenied(full.url, 'blind', 'verify', 't');
  },
);
