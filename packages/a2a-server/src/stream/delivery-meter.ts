import { stateWord } from '@hopline/a2a';
import { producerAgent, SUPERVISOR } from '@hopline/task';
import { ATTR, COUNT, type Hop } from '@hopline/telemetry';
import type { A2AServer, OperationContext } from '../a2a-server.ts';
import type { TaskFeed } from '../feed/task-feed.ts';
import type { VisibleEntry } from '../feed/visible-entry.ts';

type Unwritten = { entry: VisibleEntry; agent: string };

/** Counts the events of one stream, and measures the hops of each live chunk once in this process, at the first socket it reaches. */
export class DeliveryMeter {
  readonly #server: A2AServer;
  readonly #hop: Hop;
  readonly #receivedAt: number;
  /** True for the stream of a message, whose client waits for the first text. */
  readonly #isTurn: boolean;
  #hasFirstToken = false;
  #unwritten: Unwritten[] | undefined;

  constructor(server: A2AServer, { hop, receivedAt }: Pick<OperationContext, 'hop' | 'receivedAt'>, isTurn: boolean) {
    this.#server = server;
    this.#hop = hop;
    this.#receivedAt = receivedAt;
    this.#isTurn = isTurn;
  }

  add(entry: VisibleEntry, { aggregate }: TaskFeed): void {
    const hop = this.#hop;
    const { fact } = entry;
    hop.count(COUNT.events);
    if (fact.kind === 'status.changed') hop.set({ [ATTR.a2aState]: stateWord(fact.event.statusUpdate.status.state) });
    if (fact.kind !== 'artifact.updated' || fact.chunk === undefined) return;
    hop.count(COUNT.chunks);
    hop.count(COUNT.tokens, fact.chunk.count);
    if (entry.live === undefined || aggregate === undefined) return;
    // Only the first viewer of a task measures it.
    if (!this.#isTurn && !entry.isUndelivered) return;
    this.#unwritten ??= [];
    this.#unwritten.push({ entry, agent: producerAgent(aggregate, fact.producer) });
  }

  gap(): void {
    this.#hop.count(COUNT.gaps);
  }

  /** Records that all entries so far are on the socket. */
  written(): void {
    const unwritten = this.#unwritten;
    if (unwritten === undefined) return;
    this.#unwritten = undefined;
    const now = Date.now();
    for (const one of unwritten) this.#measure(one, now);
  }

  #measure({ entry, agent }: Unwritten, now: number): void {
    const { metrics } = this.#server;
    const trace = this.#hop.carrier();
    // The supervisor's plan does not count as an answer: it reaches the socket before any agent has begun.
    if (this.#isTurn && !this.#hasFirstToken && agent !== SUPERVISOR) {
      this.#hasFirstToken = true;
      const sinceMs = now - this.#receivedAt;
      this.#hop.max(COUNT.firstTokenMs, sinceMs);
      metrics?.timeToFirstToken.recordMs(sinceMs, { agent }, trace);
    }
    const { fact, live } = entry;
    if (!entry.takeFirstDelivery() || fact.kind !== 'artifact.updated' || live === undefined) return;
    const { readAt, storedAt = readAt } = live;
    metrics?.hopDuration.recordMs(storedAt - fact.at, { hop: 'append', agent }, trace);
    metrics?.hopDuration.recordMs(readAt - storedAt, { hop: 'splice', agent }, trace);
    metrics?.hopDuration.recordMs(now - readAt, { hop: 'socket', agent }, trace);
    metrics?.chunkDuration.recordMs(now - fact.chunk!.firstAt, { agent }, trace);
  }
}
