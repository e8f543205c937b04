import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { BUCKETS, FACTS_STREAM, INPUTS_STREAM } from '@hopline/log-jetstream';
import { until } from '../kit/until.ts';
import { countingTokens, startCountingAgent } from '../support/agents/counting-agent.ts';
import type { RemoteAgent } from '../support/agents/remote-agent.ts';
import { collect } from '../support/cluster/a2a-stream.ts';
import { Cluster } from '../support/cluster/cluster.ts';
import { isPublishAnswer } from '../support/nats/nats-proxy.ts';
import { startWebhook } from '../support/webhooks/webhook.ts';

const TASKS = 10;
const TOKENS = 12;
const TOKEN_MS = 50;
/** Deliveries of an input: to the relay of its shard, and once more if its turn is sampled for the critical path (ADR 192). */
const INPUT_DELIVERIES_MAX = 2;
/** Deliveries of a fact: to the ingress of the viewer, to the supervisor of the turn, and to the relay with the feed of the agent. */
const FACT_DELIVERIES_MAX = 3;
/** A chunk is an input and a fact, each published, acknowledged and delivered. */
const CHUNK_MESSAGES_MAX = 8;
/** A notification is written before it is sent and after it was accepted. */
const PROGRESS_WRITES_MAX = 2;

/** The deliveries of each stored message, and the writes of each stream, as nats-server has sent them to the services. */
class Sent {
  readonly #deliveries = new Map<string, number>();
  readonly #writes = new Map<string, Set<number>>();

  /** `line`: a line of the protocol. In a consumer's delivery, the reply subject contains the stream and the sequence. */
  add(line: string, header: string): void {
    const [, subject = '', , reply = ''] = line.split(' ');
    const [, stream, sequence] =
      /^\$JS\.ACK\.(?:[^.]+\.[^.]+\.)?((?:A2A|KV)_[^.]+)\.[^.]+\.\d+\.(\d+)\./.exec(reply) ??
      (subject.startsWith('a2a.live.') ? [undefined, FACTS_STREAM, /Nats-Sequence: ?(\d+)/i.exec(header)?.[1]] : []);
    if (stream === undefined) return;
    const message = `${stream} ${sequence}`;
    this.#deliveries.set(message, (this.#deliveries.get(message) ?? 0) + 1);
  }

  addWrite(payload: Buffer): void {
    const { stream, seq } = JSON.parse(payload.toString()) as { stream: string; seq?: number };
    if (seq === undefined) return;
    const writes = this.#writes.get(stream) ?? new Set();
    this.#writes.set(stream, writes.add(seq));
  }

  clear(): void {
    this.#deliveries.clear();
    this.#writes.clear();
  }

  writes(stream: string): number {
    return this.#writes.get(stream)?.size ?? 0;
  }

  /** Deliveries of each message of a stream. */
  deliveries(stream: string): number[] {
    return [...this.#deliveries].filter(([message]) => message.startsWith(`${stream} `)).map(([, count]) => count);
  }

  most(stream: string): number {
    return Math.max(0, ...this.deliveries(stream));
  }
}

const sum = (counts: readonly number[]): number => counts.reduce((total, count) => total + count, 0);

for (const each of [1, 4]) {
  describe(`messages of NATS with ${each} of each service`, () => {
    const sent = new Sent();
    let one: RemoteAgent;
    let paced: RemoteAgent;
    let relays: Cluster;
    let cluster: Cluster;

    before(async () => {
      one = await startCountingAgent(['one'], 0);
      paced = await startCountingAgent(countingTokens(TOKENS), TOKEN_MS);
      const agents = [
        { name: 'one', adapter: 'a2a', url: one.url },
        { name: 'paced', adapter: 'a2a', url: paced.url },
      ];
      const env = {
        // A share of the log for each tenant needs no process that follows all tasks.
        HOPLINE_TENANT_STORED_PERCENT: '50',
        HOPLINE_PUSH: 'true',
        HOPLINE_WEBHOOK_ALLOW: '127.0.0.1',
        HOPLINE_WEBHOOK_HTTP: 'true',
      };
      // Relays first: the others wait for the streams only for a time that so many processes at once may exceed.
      relays = await Cluster.start({ agents: [], proxied: true, ingresses: 0, relays: each, supervisors: 0, env });
      cluster = await Cluster.start({
        nats: relays.nats,
        agents: Array.from({ length: each }, () => agents).flat(),
        proxied: true,
        ...{ ingresses: each, relays: 0, supervisors: each, notifiers: each },
        env,
      });
      for (const { natsProxy } of [relays, cluster]) {
        let header = '';
        natsProxy!.lose = frame => {
          header = frame.header;
          if (isPublishAnswer(frame)) sent.addWrite(frame.payload);
          return false;
        };
        natsProxy!.rewrite = line => {
          sent.add(line, header);
          return line;
        };
      }
      // The first tasks open what all others share.
      for (const name of ['one', 'paced']) await ask(name);
    });

    after(async () => {
      await cluster?.[Symbol.asyncDispose]();
      await relays?.[Symbol.asyncDispose]();
      await one?.close();
      await paced?.close();
    });

    const ask = (name: string, configuration = {}) =>
      collect(cluster.url, {
        dialect: '1.0',
        method: 'SendStreamingMessage',
        params: {
          message: { messageId: randomUUID(), role: 'ROLE_USER', parts: [{ text: 'x' }] },
          metadata: { agent: name },
          configuration,
        },
      });

    test('no change of a task is delivered to each process', { timeout: 120_000 }, async () => {
      sent.clear();
      for (let n = 0; n < TASKS; n += 1) await ask('one');
      assert.ok(sent.deliveries(INPUTS_STREAM).length >= 2 * TASKS && sent.deliveries(FACTS_STREAM).length >= 2 * TASKS);
      assert.ok(sent.most(INPUTS_STREAM) <= INPUT_DELIVERIES_MAX, `${sent.most(INPUTS_STREAM)} deliveries of an input`);
      assert.ok(sent.most(FACTS_STREAM) <= FACT_DELIVERIES_MAX, `${sent.most(FACTS_STREAM)} deliveries of a fact`);
      for (const bucket of [BUCKETS.tasks, BUCKETS.taskLists, BUCKETS.messageIds, BUCKETS.contexts])
        assert.deepEqual(sent.deliveries(`KV_${bucket}`), [], bucket);
    });

    test('a chunk of a stream at the pace of a model is at most eight messages', { timeout: 120_000 }, async () => {
      sent.clear();
      await ask('paced');
      const [inputs, facts] = [INPUTS_STREAM, FACTS_STREAM].map(stream => sent.writes(stream)) as [number, number];
      const delivered = sum(sent.deliveries(FACTS_STREAM)) + Math.min(inputs, sum(sent.deliveries(INPUTS_STREAM)));
      const messages = 2 * (inputs + facts) + delivered;
      const pairs = Math.max(inputs, facts);
      assert.ok(pairs >= 3, `${pairs} records`);
      assert.ok(messages <= CHUNK_MESSAGES_MAX * pairs, `${messages} messages of ${inputs} inputs and ${facts} facts`);
    });

    test('a notification of a webhook is written twice, and one notifier reads its task', { timeout: 120_000 }, async () => {
      await using webhook = await startWebhook();
      sent.clear();
      await ask('one', { taskPushNotificationConfig: { id: 'w', url: webhook.url } });
      await until(() => webhook.notifications.some(({ body }) => JSON.stringify(body).includes('TASK_STATE_COMPLETED')));
      await until(() => sent.writes(`KV_${BUCKETS.pushProgress}`) > 0);
      const writesMax = PROGRESS_WRITES_MAX * webhook.notifications.length;
      const writes = sent.writes(`KV_${BUCKETS.pushProgress}`);
      assert.ok(writes <= writesMax, `${writes} writes for ${webhook.notifications.length} notifications`);
      assert.deepEqual(sent.deliveries(`KV_${BUCKETS.pushProgress}`), []);
      assert.ok(sent.most(FACTS_STREAM) <= FACT_DELIVERIES_MAX + 1, `${sent.most(FACTS_STREAM)} deliveries of a fact`);
      // Each notifier follows the bucket of webhooks (ADR 248), which changes with a webhook and not with its notifications.
      assert.ok(
        sent.most(`KV_${BUCKETS.pushConfigs}`) <= each,
        `${sent.most(`KV_${BUCKETS.pushConfigs}`)} deliveries of a webhook`,
      );
    });
  });
}
