import { stateWord } from '@hopline/a2a';
import { producerAgent } from '@hopline/task';
import { ATTR, COUNT } from '@hopline/telemetry';
import type { A2AServer, OperationContext } from '../a2a-server.ts';
import type { TaskFeed } from '../feed/task-feed.ts';
import type { VisibleEntry } from '../feed/visible-entry.ts';

type Unwritten = { entry: VisibleEntry; agent: string };

/** Counts the events of one stream, and measures the hops of each live chunk once in this process, at the first socket it reaches. */
export class DeliveryMeter {
  readonly #server: A2AServer;
  readonly #context: OperationContext;
  /** The stream belongs to a message, so its client waits for the first text. */
  readonly #isTurn: boolean;
  readonly #seenAgents = new Set<string>();
  #unwritten: Unwritten[] = [];

  constructor(server: A2AServer, context: OperationContext, isTurn: boolean) {
    this.#server = server;
    this.#context = context;
    this.#isTurn = isTurn;
  }

  add(entry: VisibleEntry, { aggregate }: TaskFeed): void {
    const { hop } = this.#context;
    const { fact } = entry;
    hop.count(COUNT.events);
    if (fact.kind === 'status.changed') hop.set({ [ATTR.a2aState]: stateWord(fact.event.statusUpdate.status.state) });
    if (fact.kind !== 'artifact.updated' || fact.chunk === undefined) return;
    hop.count(COUNT.chunks);
    hop.count(COUNT.tokens, fact.chunk.count);
    if (entry.live === undefined || aggregate === undefined) return;
    this.#unwritten.push({ entry, agent: producerAgent(aggregate, fact.producer) });
  }

  /** All entries so far are on the socket. */
  written(): void {
    if (this.#unwritten.length === 0) return;
    const now = Date.now();
    for (const unwritten of this.#unwritten) this.#measure(unwritten, now);
    this.#unwritten = [];
  }

  #measure({ entry, agent }: Unwritten, now: number): void {
    const { metrics } = this.#server;
    const { receivedAt, hop } = this.#context;
    if (this.#isTurn && !this.#seenAgents.has(agent)) {
      this.#seenAgents.add(agent);
      if (this.#seenAgents.size === 1) hop.max(COUNT.firstTokenMs, now - receivedAt);
      metrics?.timeToFirstToken.recordMs(now - receivedAt, { agent });
    }
    const { fact, live } = entry;
    if (!entry.takeFirstDelivery() || fact.kind !== 'artifact.updated' || live === undefined) return;
    const { readAt, storedAt = readAt } = live;
    metrics?.hopDuration.recordMs(storedAt - fact.at, { hop: 'append', agent });
    metrics?.hopDuration.recordMs(readAt - storedAt, { hop: 'splice', agent });
    metrics?.hopDuration.recordMs(now - readAt, { hop: 'socket', agent });
    metrics?.chunkDuration.recordMs(now - fact.chunk!.firstAt, { agent });
  }
}
