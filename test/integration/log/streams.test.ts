import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { SHARDS_DEFAULT } from '@hopline/events';
import { defineConfig } from '@hopline/lifecycle';
import { freePort } from '@hopline/local-cluster';
import { type Log, LogMismatch, LogUnavailable } from '@hopline/log';
import {
  BUCKETS,
  checkNats,
  DUPLICATE_WINDOW_MS,
  FACTS_DUPLICATE_WINDOW_MS,
  FACTS_STREAM,
  INPUTS_DUPLICATE_WINDOW_MS,
  INPUTS_STREAM,
  LEASES_AGE_MS,
  LOG_SETTINGS,
  MAX_AGES_DEFAULT,
  MAX_BYTES_DEFAULT,
  openJetStreamLog,
  WORK_STREAM,
} from '@hopline/log-jetstream';
import { StoredScenario } from '@hopline/task/test-kit';
import { type JetStreamManager, jetstreamManager } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/nats-core';
import { connect } from '@nats-io/transport-node';
import { succeeds } from '../../kit/succeeds.ts';
import { until } from '../../kit/until.ts';
import { startNatsProxy } from '../../support/nats/nats-proxy.ts';
import { type NatsServer, startNats } from '../../support/nats/nats-server.ts';

/** Half the default time limit of opening. */
/** The description of the streams of a new log. */
const DESCRIPTION = `hopline format=1 shards=${SHARDS_DEFAULT}`;
const AT_ONCE_MS = 15_000;
const nanos = (ms: number) => ms * 1_000_000;

describe('the streams of the log', () => {
  let server: NatsServer;
  let nc: NatsConnection;
  let jsm: JetStreamManager;
  before(async () => {
    server = await startNats();
    nc = await connect({ servers: server.url });
    jsm = await jetstreamManager(nc);
  });
  after(async () => {
    await nc?.close();
    await server?.stop();
  });
  const open = (options = {}) => openJetStreamLog({ servers: server.url, name: 'streams', ...options });
  const config = async (name: string) => (await jsm.streams.info(name)).config;
  test('services that start at the same time create the streams with the expected settings', async () => {
    const logs = await Promise.all(Array.from({ length: 5 }, () => open()));
    await Promise.all(logs.map(log => log.check()));
    await Promise.all(logs.map(log => log.close()));
    const buckets = [BUCKETS.leases, BUCKETS.messageIds, BUCKETS.agents].map(name => `KV_${name}`);
    const [raw, facts, work, leases, ids, agents] = await Promise.all(
      [INPUTS_STREAM, FACTS_STREAM, WORK_STREAM, ...buckets].map(config),
    );
    const pick = (found: object | undefined, wanted: object) =>
      assert.deepEqual(
        Object.fromEntries(Object.keys(wanted).map(key => [key, (found as Record<string, unknown>)[key]])),
        wanted,
      );
    const common = {
      description: DESCRIPTION,
      storage: 'file',
      num_replicas: 1,
      allow_direct: true,
      deny_delete: true,
    };
    const windowOf = (ms: number) => ({ duplicate_window: nanos(ms) });
    const inputsAge = nanos(MAX_AGES_DEFAULT.inputsMs);
    const factsAge = nanos(MAX_AGES_DEFAULT.factsMs);
    pick(raw, {
      ...common,
      ...windowOf(INPUTS_DUPLICATE_WINDOW_MS),
      subjects: ['a2a.raw.>'],
      retention: 'limits',
      max_age: inputsAge,
      max_bytes: MAX_BYTES_DEFAULT.inputs,
    });
    pick(facts, {
      ...common,
      ...windowOf(FACTS_DUPLICATE_WINDOW_MS),
      subjects: ['a2a.log.>'],
      retention: 'limits',
      max_age: factsAge,
      max_bytes: MAX_BYTES_DEFAULT.facts,
    });
    assert.deepEqual({ src: facts?.republish?.src, dest: facts?.republish?.dest }, { src: 'a2a.log.>', dest: 'a2a.live.>' });
    pick(work, {
      ...common,
      ...windowOf(DUPLICATE_WINDOW_MS),
      subjects: ['a2a.work.>'],
      retention: 'workqueue',
      discard: 'new',
      max_bytes: MAX_BYTES_DEFAULT.work,
    });
    pick(leases, { ...common, max_msgs_per_subject: 1, max_age: nanos(LEASES_AGE_MS), max_bytes: MAX_BYTES_DEFAULT.keyValue });
    pick(ids, { ...common, max_msgs_per_subject: 1, max_age: factsAge });
    pick(agents, { ...common, max_msgs_per_subject: 1, max_age: factsAge });
  });

  test('another number of shards rejects with LogMismatch and advice', async () => {
    await (await open()).close();
    await assert.rejects(open({ shards: 8 }), (error: Error) => {
      assert.ok(error instanceof LogMismatch);
      const difference = `A2A_RAW has description "${DESCRIPTION}", expected "hopline format=1 shards=8": start every service`;
      assert.ok(error.message.includes(difference), error.message);
      return true;
    });
    for (const shards of [0, 257, 1.5]) await assert.rejects(open({ shards }), LogMismatch);
  });

  test('streams of another format reject with LogMismatch, the format and advice, and stay as they are', async () => {
    await (await open()).close();
    const description = DESCRIPTION.replace('format=1', 'format=2');
    await jsm.streams.update(INPUTS_STREAM, { description });
    await assert.rejects(open(), (error: Error) => {
      assert.ok(error instanceof LogMismatch);
      assert.match(error.message, /^stream A2A_RAW has format 2; this version of Hopline has format 1: start the version that /);
      return true;
    });
    assert.equal((await config(INPUTS_STREAM)).description, description);
    await jsm.streams.update(INPUTS_STREAM, { description: DESCRIPTION });
  });

  test('ages and bytes that an operator tuned are left unchanged', async () => {
    await (await open()).close();
    await jsm.streams.update(INPUTS_STREAM, { max_age: nanos(3_600_000), max_bytes: 1024 * 1024 * 1024 });
    await (await open({ maxAges: { inputsMs: 7_200_000 } })).close();
    assert.equal((await config(INPUTS_STREAM)).max_age, nanos(3_600_000));
  });
});

/** A server removes the files of a deleted stream asynchronously, so each of these tests has its own server. */
async function onNewServer(
  run: (open: (options?: object) => Promise<Log>, jsm: JetStreamManager) => Promise<void>,
): Promise<void> {
  const server = await startNats();
  const nc = await connect({ servers: server.url });
  try {
    await run(options => openJetStreamLog({ servers: server.url, name: 'streams', ...options }), await jetstreamManager(nc));
  } finally {
    await nc.close();
    await server.stop();
  }
}

/** The streams as versions from before 2026-11-24 created them. */
async function asBefore(jsm: JetStreamManager): Promise<void> {
  for (const name of [INPUTS_STREAM, FACTS_STREAM])
    await jsm.streams.update(name, { duplicate_window: nanos(DUPLICATE_WINDOW_MS), metadata: {} });
}

test('a service without a number of shards takes the number from the streams', () =>
  onNewServer(async open => {
    // Logs of earlier versions have 16.
    assert.notEqual(SHARDS_DEFAULT, 16);
    await (await open({ shards: 16 })).close();
    for (const options of [{}, { user: 'relay' }, { user: 'ingress' }, { user: 'ingress', shards: 16 }]) {
      const log = await open(options);
      assert.equal(log.shards, 16);
      await log.close();
    }
  }));

test('the windows of an earlier version are shortened, the windows of an operator are not', () =>
  onNewServer(async (open, jsm) => {
    const windows = async () => {
      await (await open()).close();
      const streams = [INPUTS_STREAM, FACTS_STREAM, WORK_STREAM].map(name => jsm.streams.info(name));
      return (await Promise.all(streams)).map(({ config }) => config.duplicate_window / 1_000_000);
    };
    const expected = [INPUTS_DUPLICATE_WINDOW_MS, FACTS_DUPLICATE_WINDOW_MS, DUPLICATE_WINDOW_MS];
    assert.deepEqual(await windows(), expected);
    await asBefore(jsm);
    assert.deepEqual(await windows(), expected);
    await jsm.streams.update(INPUTS_STREAM, { duplicate_window: nanos(60_000) });
    assert.deepEqual(await windows(), [60_000, ...expected.slice(1)]);
  }));

test('records are compact in new streams, and in streams of an earlier version once a setting asks for it', () =>
  onNewServer(async (open, jsm) => {
    let records = 0;
    /** The version of the record that a log stores. */
    const versionOf = async (options: object) => {
      const log = await open(options);
      const taskId = `t${++records}`;
      const scenario = new StoredScenario(log.facts, taskId);
      await scenario.message('hello').store();
      assert.deepEqual((await log.facts.last(taskId))?.record, scenario.newest?.record);
      await log.close();
      const stored = await jsm.streams.getMessage(FACTS_STREAM, { last_by_subj: `a2a.log.*.${taskId}` });
      return stored?.json<{ v: number }>().v;
    };
    assert.equal(await versionOf({}), 2);
    await asBefore(jsm);
    assert.equal(await versionOf({}), 1);
    assert.equal(await versionOf({ user: 'ingress', compactsRecords: true }), 1, 'only the creator of streams changes them');
    assert.equal(await versionOf({ compactsRecords: true }), 2);
    assert.equal(await versionOf({}), 2, 'the stream remembers it');
  }));

test('an account that allows too few consumers is refused; the error has the number that it must allow', async t => {
  const limits = 'jetstream: { max_file: 8GB, max_streams: 100, max_consumers: 1000 }';
  const server = await startNats({ config: `accounts { A { ${limits}, users: [{ user: a, password: a }] } }` });
  t.after(() => server.stop());
  const opening = openJetStreamLog({ servers: server.url, name: 'limited', credentials: { user: 'a', pass: 'a' } });
  await assert.rejects(opening, {
    name: 'LogMismatch',
    message: /A2A_RAW .* cannot be created: .*: the JetStream limits of the NATS account must allow 20000 consumers$/,
  });
});

test('replicas that the server cannot provide reject with LogMismatch and leave no stream behind', () =>
  onNewServer(async open => {
    await assert.rejects(open({ replicas: 3 }), LogMismatch);
    await (await open()).close();
  }));

test('insufficient storage rejects with LogMismatch and the requested size', () =>
  onNewServer(async open => {
    const opening = open({ maxBytes: { facts: 1024 ** 5 } });
    await assert.rejects(opening, /A2A_LOG \(1 replicas, 1125899906842624 bytes\) cannot be created/);
  }));

for (const { stream, problem } of [
  { stream: { name: INPUTS_STREAM, subjects: ['other.>'] }, problem: /subjects \["other\.>"\], expected \["a2a\.raw\.>"\]/ },
  { stream: { name: FACTS_STREAM, subjects: ['a2a.log.>'] }, problem: /A2A_LOG has republish null/ },
  { stream: { name: WORK_STREAM, subjects: ['a2a.work.>'] }, problem: /retention "limits", expected "workqueue"/ },
]) {
  test(`a stream ${stream.name} with other settings rejects with LogMismatch`, () =>
    onNewServer(async (open, jsm) => {
      await jsm.streams.add(stream);
      await assert.rejects(open(), (error: Error) => {
        assert.ok(error instanceof LogMismatch);
        assert.match(error.message, problem);
        return true;
      });
    }));
}

test('without a server the log rejects with LogUnavailable in time', async () => {
  const port = await freePort();
  const began = Date.now();
  await assert.rejects(
    openJetStreamLog({ servers: `nats://user:secret@127.0.0.1:${port}`, name: 'none', openTimeoutMs: 500 }),
    (error: Error) => {
      assert.ok(error instanceof LogUnavailable);
      assert.doesNotMatch(error.message, /secret|user/);
      return true;
    },
  );
  assert.ok(Date.now() - began < AT_ONCE_MS);
});

test('a fault of a server is reported with its address and what to do', { timeout: 120_000 }, async t => {
  const locked = await startNats({ config: 'authorization { user: "relay", password: "secret" }' });
  const plain = await startNats({ withoutJetStream: true });
  t.after(() => Promise.all([locked.stop(), plain.stop()]));
  const port = await freePort();
  // A server that refuses connections is tried until the time is over; the others answer at once.
  const cases: [servers: string, expected: string, openTimeoutMs?: number][] = [
    [
      `nats://127.0.0.1:${port}`,
      `NATS at nats://127.0.0.1:${port} refuses the connection: start nats-server, or correct NATS_URL`,
      500,
    ],
    [
      locked.url.replace('//', '//relay:wrong@'),
      `NATS at ${locked.url} rejects the credentials: check NATS_CREDS_FILE, NATS_CREDS, NATS_TOKEN, or NATS_USER and NATS_PASSWORD`,
    ],
    [plain.url, `JetStream is off at ${plain.url}: start nats-server with -js`],
  ];
  for (const [servers, message, openTimeoutMs = 20_000] of cases) {
    await assert.rejects(openJetStreamLog({ servers, name: 'wrong', openTimeoutMs }), { name: 'LogUnavailable', message });
    const settings = defineConfig(LOG_SETTINGS).load({ NATS_URL: servers });
    await assert.rejects(checkNats(settings), { name: 'LogUnavailable', message });
  }
});

test('a server that is too old is refused at the start, and by the check, with the version to use', async t => {
  const server = await startNats();
  t.after(() => server.stop());
  const proxy = await startNatsProxy(server.port);
  t.after(() => proxy.close());
  const servers = proxy.url;
  const start = async (version: string, replicas: number) => {
    proxy.rewrite = line => line.replace(/("version":")[^"]*/, `$1${version}`);
    const opened = await openJetStreamLog({ servers, name: 'old', replicas }).then(
      log => log.close(),
      (error: Error) => `${error.name}: ${error.message}`,
    );
    const settings = defineConfig(LOG_SETTINGS).load({ NATS_URL: servers, HOPLINE_REPLICAS: `${replicas}` });
    const checked = await checkNats(settings).catch((error: Error) => error.message);
    assert.equal(checked, opened?.replace('LogMismatch: ', ''));
    return opened;
  };
  assert.equal(await start('2.8.4', 1), 'LogMismatch: NATS server 2.8.4 is too old: use 2.9.0 or newer');
  assert.equal(await start('2.9.0', 1), undefined);
  assert.match(
    (await start('2.10.29', 3)) ?? '',
    /^LogMismatch: .* 3 replicas need 2\.11\.0 or newer; use 1 replica or a newer server$/,
  );
});

test('a server that can be used passes the check, and a missing file of credentials is a fault of the settings', async t => {
  const server = await startNats();
  t.after(() => server.stop());
  const config = defineConfig(LOG_SETTINGS);
  await checkNats(config.load({ NATS_URL: server.url }));
  await assert.rejects(checkNats(config.load({ NATS_URL: server.url, NATS_CREDS_FILE: '/nowhere/a.creds' })), {
    name: 'ConfigError',
    message: 'NATS_CREDS_FILE: /nowhere/a.creds cannot be read (ENOENT)',
  });
});

test('opening waits for a server that starts later', async () => {
  const port = await freePort();
  const opening = openJetStreamLog({ servers: `127.0.0.1:${port}`, name: 'early' });
  await new Promise(resolve => setTimeout(resolve, 300));
  const server = await startNats({ port });
  const log = await opening;
  await log.check();
  await log.close();
  await server.stop();
});

test('user and password come from the options or the URL; without them opening rejects at once', async () => {
  const server = await startNats({ config: 'authorization { user: "relay", password: "p@ss/word" }' });
  const began = Date.now();
  await assert.rejects(openJetStreamLog({ servers: server.url, name: 'anonymous' }), LogUnavailable);
  assert.ok(Date.now() - began < AT_ONCE_MS);
  const bare = server.url.replace('nats://', '');
  const inUrl = await openJetStreamLog({ servers: `nats://relay:p%40ss%2Fword@${bare}`, name: 'url' });
  const inOptions = await openJetStreamLog({ servers: bare, name: 'options', credentials: { user: 'relay', pass: 'p@ss/word' } });
  await Promise.all([inUrl.check(), inOptions.check()]);
  await inUrl.close();
  await inOptions.close();
  await server.stop();
});

test('check rejects with LogUnavailable while the server is down, and resolves after its restart', async () => {
  const server = await startNats();
  const log = await openJetStreamLog({ servers: server.url, name: 'check' });
  await server.kill();
  await assert.rejects(log.check(), LogUnavailable);
  await server.restart();
  await until(() => succeeds(log.check()));
  await log.close();
  await server.stop();
});
