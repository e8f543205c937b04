import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Message } from '@hopline/a2a';
import { Layouts } from '@hopline/events';
import type { Log } from '@hopline/log';
import { inputRecord } from '@hopline/log/test-kit';
import { authorization, INPUTS_STREAM, openJetStreamLog, serverUsers } from '@hopline/log-jetstream';
import { type JetStreamManager, jetstreamManager } from '@nats-io/jetstream';
import { connect, type NatsConnection } from '@nats-io/transport-node';
import { until } from '../../kit/until.ts';
import { loginOf } from '../../support/cluster/cluster.ts';
import { startNatsProxy } from '../../support/nats/nats-proxy.ts';
import { type NatsServer, startNats } from '../../support/nats/nats-server.ts';

const SHARDS = 8;
const LAYOUTS = Layouts.one(SHARDS);
/** More than the messages that a shard keeps for a reader that does not take them, 4 MiB. */
const SLOW_RECORDS = 90;
const SLOW_TEXT = 'x'.repeat(64 * 1024);

/** A task of each shard. */
const TASKS = Array.from({ length: SHARDS }, (_, shard) => {
  for (let n = 0; ; n += 1) if (LAYOUTS.shardOf(`task-${n}`) === shard) return `task-${n}`;
});

/** Reads one shard. While it is held it takes nothing. */
class Reading {
  readonly seqs: number[] = [];
  readonly ended: Promise<void>;
  readonly #stop = new AbortController();
  #held: PromiseWithResolvers<void> | undefined;

  constructor(log: Log, shard: number, from = 1) {
    this.ended = this.#read(log, shard, from);
  }

  hold(): void {
    this.#held = Promise.withResolvers();
  }

  go(): void {
    this.#held?.resolve();
    this.#held = undefined;
  }

  async stop(): Promise<void> {
    this.go();
    this.#stop.abort();
    await this.ended;
  }

  async #read(log: Log, shard: number, from: number): Promise<void> {
    for await (const { seq } of log.inputs.readShard(shard, from, this.#stop.signal)) {
      this.seqs.push(seq);
      await this.#held?.promise;
    }
  }
}

describe('the readers of shards', { timeout: 120_000 }, () => {
  let nats: NatsServer;
  let log: Log;
  let nc: NatsConnection;
  let jsm: JetStreamManager;
  let readings: Reading[] = [];
  const appended = TASKS.map((): number[] => []);
  let count = 0;

  before(async () => {
    nats = await startNats();
    log = await openJetStreamLog({ servers: nats.url, name: 'readers', shards: SHARDS });
    nc = await connect({ servers: nats.url });
    jsm = await jetstreamManager(nc);
    readings = TASKS.map((_, shard) => new Reading(log, shard));
  });
  after(async () => {
    await Promise.all(readings.map(reading => reading.stop()));
    await log?.close();
    await nc?.close();
    await nats?.stop();
  });

  async function append(shards: readonly number[], text?: string): Promise<void> {
    for (const shard of shards) {
      count += 1;
      const id = `${TASKS[shard]}:${count}`;
      appended[shard]!.push((await log.inputs.append(TASKS[shard]!, inputRecord(count, text), { id })).seq);
    }
  }
  const consumers = async () => (await jsm.streams.info(INPUTS_STREAM)).state.consumer_count;
  const ALL = TASKS.map((_, shard) => shard);

  /** Appends to shards until they share one consumer: readers join at the end of the stream. */
  async function joined(shards: readonly number[]): Promise<void> {
    await until(async () => {
      await append(shards);
      return (await consumers()) === 1;
    }, 'one consumer');
  }
  const arrived = (shards: readonly number[]) =>
    until(() => shards.every(shard => readings[shard]!.seqs.length >= appended[shard]!.length), 'all inputs');
  const inOrderAndOnce = () =>
    assert.deepEqual(
      readings.map(({ seqs }) => seqs),
      appended,
    );

  test('all shards of a stream share a consumer, and each gets its inputs in order and once', async () => {
    for (let round = 0; round < 5; round += 1) await append(ALL);
    await arrived(ALL);
    inOrderAndOnce();
    assert.equal(await consumers(), 1);
  });

  test('shards that stop and begin again leave the others undisturbed, and join them while inputs arrive', async () => {
    const some = [1, 4, 5];
    await Promise.all(some.map(shard => readings[shard]!.stop()));
    await append(ALL);
    await arrived(ALL.filter(shard => !some.includes(shard)));
    for (const shard of some) {
      const before = readings[shard]!.seqs;
      readings[shard] = new Reading(log, shard, before.at(-1)! + 1);
      readings[shard].seqs.push(...before);
    }
    await joined(ALL);
    await arrived(ALL);
    inOrderAndOnce();
  });

  test('a slow shard holds up no other one, and gets everything when it goes on', async () => {
    const [slow, ...others] = ALL;
    readings[slow!]!.hold();
    for (let n = 0; n < SLOW_RECORDS; n += 1) await append([slow!], SLOW_TEXT);
    await append(others);
    await arrived(others);
    const taken = readings[slow!]!.seqs.length;
    assert.ok(taken < appended[slow!]!.length, 'the slow shard has not read all');
    readings[slow!]!.go();
    await joined(ALL);
    await arrived(ALL);
    inOrderAndOnce();
  });

  test('a consumer that NATS has lost is replaced', async () => {
    for await (const { name } of jsm.consumers.list(INPUTS_STREAM)) await jsm.consumers.delete(INPUTS_STREAM, name);
    await append(ALL);
    await joined(ALL);
    await arrived(ALL);
    inOrderAndOnce();
  });

  test('half of the shards have a consumer with their subjects, and no other inputs reach it', async () => {
    const kept = ALL.filter(shard => shard % 2 === 0);
    await Promise.all(ALL.filter(shard => !kept.includes(shard)).map(shard => readings[shard]!.stop()));
    const filters = async () => {
      const [consumer] = await jsm.consumers.list(INPUTS_STREAM).next();
      return consumer?.config.filter_subjects?.length;
    };
    await until(async () => {
      await append(ALL);
      return (await filters()) === kept.length;
    }, 'a list of subjects');
    await append(kept);
    await arrived(kept);
    for (const shard of kept) assert.deepEqual(readings[shard]!.seqs, appended[shard]);
  });
});

for (const isPermitted of [true, false]) {
  const title = isPermitted
    ? 'a relay with its own NATS user may share a consumer among some shards'
    : 'without the permission to read a list of subjects, as in an earlier configuration of NATS, each shard has a consumer';
  test(title, { timeout: 120_000 }, async t => {
    const LIST = `"$JS.API.CONSUMER.CREATE.${INPUTS_STREAM}.*"`;
    const config = authorization(new Map(serverUsers([]).map(user => [user, { text: user }])));
    assert.ok(config.includes(LIST), 'the test removes nothing');
    const nats = await startNats({ config: isPermitted ? config : config.replaceAll(LIST, '"unused"') });
    t.after(() => nats.stop());
    const open = (user: 'relay' | 'ingress', more = {}) => {
      const { NATS_USER, NATS_PASSWORD } = loginOf(user);
      return openJetStreamLog({
        servers: nats.url,
        name: user,
        user,
        credentials: { user: NATS_USER, pass: NATS_PASSWORD },
        ...more,
      });
    };
    const relay = await open('relay', { shards: SHARDS });
    t.after(() => relay.close());
    const ingress = await open('ingress');
    t.after(() => ingress.close());
    const shards = [1, 2, 3];
    const readings = shards.map(shard => new Reading(relay, shard));
    const message: Message = { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'x' }] };
    const input = { kind: 'message', message, contextId: 'c', role: 'supervisor', profile: 'caipe' } as const;
    const seqs: number[] = [];
    for (const shard of shards) {
      const record = { v: 1, at: 1, from: 'client', input } as const;
      seqs.push((await ingress.inputs.append(TASKS[shard]!, record, { id: TASKS[shard]! })).seq);
    }
    await until(() => readings.every(reading => reading.seqs.length > 0), 'the inputs');
    assert.deepEqual(
      readings.map(reading => reading.seqs),
      seqs.map(seq => [seq]),
    );
    const { NATS_USER: user, NATS_PASSWORD: pass } = loginOf('relay');
    const nc = await connect({ servers: nats.url, user, pass, inboxPrefix: '_INBOX.hopline.relay' });
    const { state } = await (await jetstreamManager(nc)).streams.info(INPUTS_STREAM);
    await nc.close();
    assert.equal(state.consumer_count, isPermitted ? 1 : shards.length);
    await Promise.all(readings.map(reading => reading.stop()));
  });
}

test('on a server without lists of subjects, each shard keeps a consumer of its own', { timeout: 120_000 }, async t => {
  await using stack = new AsyncDisposableStack();
  const nats = await startNats();
  stack.defer(() => nats.stop());
  const proxy = await startNatsProxy(nats.port);
  stack.defer(() => proxy.close());
  proxy.rewrite = line => line.replace(/("version":")[^"]*/, '$12.9.10');
  const heartbeats = new Map<string, number>();
  proxy.lose = ({ subject, header }) => {
    if (header.includes('Idle Heartbeat')) heartbeats.set(subject, (heartbeats.get(subject) ?? 0) + 1);
    return false;
  };
  const log = await openJetStreamLog({ servers: proxy.url, name: 'old', shards: SHARDS });
  stack.defer(() => log.close());
  const readings = [0, 1].map(shard => new Reading(log, shard));
  stack.defer(async () => {
    await Promise.all(readings.map(reading => reading.stop()));
  });
  // A consumer sends one each second. Those of readers that were joined again and again lived for less than two seconds.
  await until(() => [...heartbeats.values()].filter(count => count >= 4).length === readings.length, 'consumers that last');
  t.diagnostic(`${heartbeats.size} consumers`);
  assert.equal(heartbeats.size, readings.length);
});
