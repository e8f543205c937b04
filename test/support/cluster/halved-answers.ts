import assert from 'node:assert/strict';
import type { StreamResponse } from '@hopline/a2a';
import { GrpcClient } from '@hopline/a2a-grpc/test-client';
import type { Step } from '../agents/remote-agent.ts';
import { type Frame, frames, shapeOf } from './a2a-stream.ts';
import type { Cluster } from './cluster.ts';

const WORDS = Array.from({ length: 40 }, (_, index) => `${index} Grüße 👩‍🚀 `);
const TEXT = WORDS.join('');
const HALF = 20;

const artifactsOf = (events: readonly StreamResponse[]) =>
  events.flatMap(event => ('artifactUpdate' in event ? [event.artifactUpdate.artifact] : []));

function textOf(events: readonly StreamResponse[]): string {
  const answers = artifactsOf(events).filter(({ name }) => name === 'streaming_result');
  return answers.flatMap(({ parts }) => parts.map(part => part.text)).join('');
}

export function assertWhole(list: readonly Frame[]): void {
  assert.equal(textOf(list.map(({ event }) => event)), TEXT);
  assert.equal(shapeOf(list.at(-1)!), 'status:completed');
  const ids = list.map(({ id }) => id);
  assert.deepEqual(ids, [...new Set(ids)]);
}

/**
 * An agent for tests of load balancers, and clients that read its answers through one. The second half of an answer follows when the test opens the
 * gate, or after a silence if the message is `silent`.
 */
export class HalvedAnswers {
  readonly #silenceMs: number;
  #gate = Promise.withResolvers<void>();

  constructor(silenceMs: number) {
    this.#silenceMs = silenceMs;
  }

  async *script({ text }: { text: string }): AsyncGenerator<Step> {
    for (const word of WORDS.slice(0, HALF)) yield { token: word };
    if (text === 'silent') yield { pause: this.#silenceMs };
    else await this.#gate.promise;
    for (const word of WORDS.slice(HALF)) yield { token: word };
    yield { complete: true };
  }

  /** Answers to later questions wait for `open`. */
  close(): void {
    this.#gate = Promise.withResolvers();
  }

  open(): void {
    this.#gate.resolve();
  }

  /** Reads a stream until it ends or breaks. `act` is called once, when the first half has arrived. `log`: the load balancer's log. */
  async read(url: string, request: Parameters<typeof frames>[1], act: () => void, log: () => string): Promise<Frame[]> {
    const list: Frame[] = [];
    let hasActed = false;
    try {
      for await (const frame of frames(url, request)) {
        list.push(frame);
        if (hasActed || textOf(list.map(({ event }) => event)) !== WORDS.slice(0, HALF).join('')) continue;
        hasActed = true;
        act();
      }
    } catch (thrown) {
      assert.ok(hasActed, `${thrown}; ${log()}`);
    }
    return list;
  }

  /** The events of a stream that was cut, and those after them. */
  async resumed(url: string, list: readonly Frame[]): Promise<Frame[]> {
    const { id } = list[0]!.result as { id: string };
    const rest: Frame[] = [];
    const again = { method: 'tasks/resubscribe', params: { id }, lastEventId: list.at(-1)!.id };
    for await (const frame of frames(url, again)) rest.push(frame);
    return [...list, ...rest];
  }

  /**
   * Two streams. The load balancer sends one of them to a replica that dies, and that stream is resumed without a gap while the replica is
   * away.
   */
  async assertReplicaDies(url: string, [replica]: Cluster['ingresses'], log: () => string): Promise<void> {
    this.close();
    let killed: Promise<void> | undefined;
    let talking = 0;
    const onHalf = () => {
      talking += 1;
      if (talking === 2) killed = replica!.kill().then(() => this.open());
    };
    const read = () => this.read(url, { text: 'count' }, onHalf, log);
    const streams = await Promise.all([read(), read()]);
    await killed;
    const broken = streams.filter(list => shapeOf(list.at(-1)!) !== 'status:completed');
    assert.ok(broken.length > 0, 'both streams were sent to the replica that lives');
    for (const list of streams) assertWhole(broken.includes(list) ? await this.resumed(url, list) : list);
    await replica!.start();
  }

  /** A stream over gRPC goes through with its metadata, and a client that cancels it can resume. */
  async assertGrpc(url: string): Promise<void> {
    this.close();
    const client = new GrpcClient(url);
    try {
      const parts = [{ text: 'count' }];
      const sent = { message: { messageId: crypto.randomUUID(), role: 'ROLE_USER', parts } };
      const stream = client.stream('SendStreamingMessage', sent);
      const [first] = await stream.take(1);
      assert.match(String((await stream.headers).get('first-event-id')[0]), /^1\./);
      stream.call.cancel();
      const back = client.stream('SubscribeToTask', { id: first.task.id }, { metadata: { 'last-event-id': '1.0' } });
      this.open();
      const events = [first, ...(await back.rest())];
      assert.equal(textOf(events), TEXT);
      assert.equal(String((await back.trailers).get('last-event-id')[0]).split('.')[0], String(events.length));
    } finally {
      client.close();
    }
  }
}
