import { codePoints, isInProgress, isTerminal, stateWord } from '@hopline/a2a';
import { isVisible, type Layouts, rawSubject, shardOf, type TaskAggregate, type TraceCarrier } from '@hopline/events';
import type { StoredFacts, StoredInput } from '@hopline/log';
import {
  ATTR,
  COUNT,
  correlationOf,
  DESTINATION,
  errorWord,
  type Hop,
  messagingAttributes,
  ownerAttributes,
  SPAN,
  startHop,
} from '@hopline/telemetry';
import type { StoredChange } from './pipeline-context.ts';

type TaskHopOptions = {
  taskId: string;
  layouts: Layouts;
  newest: StoredFacts | undefined;
  /** True if the task is open and was begun by another relay. */
  isTakeover: boolean;
};

type Sums = {
  newest: TaskAggregate | undefined;
  bytesIn: number;
  events: number;
  chunks: number;
  tokens: number;
  characters: number;
  heldMsMax: number;
  waitMsMax: number;
};

/**
 * The relay's spans for one task: for each turn a short span when its message is read, then one span per segment, never one per token or
 * chunk. A turn is below the request that sent its message. A relay that takes over continues below the span of the previous relay.
 */
export class TaskHop {
  readonly #options: TaskHopOptions;
  #hop: Hop | undefined;
  /** Newest span of the turn, from this relay or the previous one. */
  #previous: TraceCarrier | undefined;
  /** Why the next hop begins in the middle of a turn. */
  #cause: 'takeover' | 'reload' | 'continuation';
  #isTakeover: boolean;
  #unfoldedSince: number;
  #hasInput = false;
  /** Counts of the hop's current segment. */
  #sums = noSums();

  constructor(options: TaskHopOptions) {
    const { newest, isTakeover } = options;
    this.#options = options;
    this.#previous = newest?.trace;
    this.#isTakeover = isTakeover;
    this.#unfoldedSince = newest?.record.aggregate.at ?? 0;
    this.#cause = this.#isTakeover ? 'takeover' : 'reload';
  }

  /** Trace context for everything that the task stores and queues. Its span is already exported. */
  carrier(): TraceCarrier {
    return this.#hop?.carrier() ?? this.#previous ?? {};
  }

  /**
   * Returned once, if this relay continues a task that another relay began: the time since which no relay had folded it, in epoch
   * milliseconds. That is the time of the other relay's last record, or of the first input that it left unfolded.
   */
  takeTakeover(): number | undefined {
    if (!this.#isTakeover) return undefined;
    this.#isTakeover = false;
    return this.#unfoldedSince;
  }

  /** Called for an input that was not folded before. */
  input(input: StoredInput, aggregate: TaskAggregate | undefined): void {
    if (this.#isTakeover && !this.#hasInput) this.#unfoldedSince = Math.max(this.#unfoldedSince, input.storedAt);
    this.#hasInput = true;
    const isMessage = isNewMessage(input, aggregate);
    if (isMessage && this.#hop !== undefined) this.#end('superseded');
    if (this.#hop === undefined) {
      // Inputs of an ended task are rejected, so they begin no hop.
      if (aggregate !== undefined && isTerminal(aggregate.state)) return;
      this.#hop = this.#start(input, aggregate, isMessage);
    }
    this.#sums.bytesIn += input.bytes;
    if (input.trace === undefined) return;
    if (input.record.from === 'client') this.#hop.linkRequest(input.trace);
    else this.#hop.link(input.trace);
  }

  rejected(count: number): void {
    this.#hop?.count(COUNT.rejected, count);
  }

  /** The numbers come from facts, so that they agree with the log. */
  stored({ facts, aggregate }: StoredChange): void {
    if (this.#hop === undefined) return;
    const sums = this.#sums;
    for (const fact of facts) {
      if (isVisible(fact)) sums.events += 1;
      if (fact.kind !== 'artifact.updated' || fact.chunk === undefined) continue;
      const { count, heldMs, waitMs = 0 } = fact.chunk;
      sums.chunks += 1;
      sums.tokens += count;
      sums.characters += codePoints(fact.event.artifactUpdate.artifact.parts[0]?.text ?? '');
      sums.heldMsMax = Math.max(sums.heldMsMax, heldMs);
      sums.waitMsMax = Math.max(sums.waitMsMax, waitMs);
    }
    const { state } = aggregate;
    sums.newest = aggregate;
    if (!isInProgress(state)) this.#end(stateWord(state));
  }

  fail(error: unknown): void {
    this.#hop?.fail(errorWord(error));
    this.#hop = undefined;
  }

  /** Called when the pipeline stops, because the shard was released or the task is idle. */
  end(): void {
    this.#end('stopped');
  }

  #end(outcome: string): void {
    this.#hop?.set({ [ATTR.outcome]: outcome });
    this.#hop?.end();
    this.#hop = undefined;
  }

  #report(hop: Hop): void {
    const { newest, bytesIn, events, chunks, tokens, characters, heldMsMax, waitMsMax } = this.#sums;
    this.#sums = noSums();
    if (newest !== undefined) hop.set({ [ATTR.a2aState]: stateWord(newest.state), [ATTR.generation]: newest.generation });
    if (bytesIn > 0) hop.count(COUNT.bytesIn, bytesIn);
    if (events > 0) hop.count(COUNT.events, events);
    if (chunks === 0) return;
    hop.count(COUNT.chunks, chunks);
    hop.count(COUNT.tokens, tokens);
    hop.count(COUNT.characters, characters);
    hop.max(COUNT.heldMsMax, heldMsMax);
    hop.max(COUNT.waitMsMax, waitMsMax);
  }

  #start(input: StoredInput, aggregate: TaskAggregate | undefined, isMessage: boolean): Hop {
    const { taskId, layouts } = this.#options;
    const previous = this.#previous;
    const cause = previous === undefined ? undefined : isMessage ? 'continuation' : this.#cause;
    const message = input.record.from === 'client' && input.record.input.kind === 'message' ? input.record.input : undefined;
    const shard = shardOf(taskId, layouts);
    const subject = { destination: rawSubject(taskId, layouts, input.writer), consumer: `relay-shard-${shard}` };
    const hop = startHop(SPAN.processInput, {
      kind: 'consumer',
      parent: (isMessage ? input.trace : previous) ?? input.trace ?? {},
      links: [...(previous === undefined ? [] : [previous]), ...(input.trace === undefined ? [] : [input.trace])],
      attributes: {
        ...messagingAttributes(DESTINATION.raw, { operation: 'process', ...subject }),
        [ATTR.a2aTask]: taskId,
        [ATTR.genAiConversation]: aggregate?.contextId ?? message?.contextId,
        [ATTR.shard]: shard,
        [ATTR.correlation]: correlationOf(message?.metadata),
        [ATTR.cause]: cause,
        ...ownerAttributes(aggregate?.owner ?? message?.owner),
      },
      receive: {
        name: SPAN.receiveInput,
        queuedAt: input.storedAt,
        attributes: messagingAttributes(DESTINATION.raw, { operation: 'receive', ...subject }),
      },
    });
    hop.beforeSegmentEnd(() => this.#report(hop));
    this.#previous = hop.carrier();
    this.#cause = 'continuation';
    return hop;
  }
}

function noSums(): Sums {
  return { newest: undefined, bytesIn: 0, events: 0, chunks: 0, tokens: 0, characters: 0, heldMsMax: 0, waitMsMax: 0 };
}

/** Whether the input is a new message, which creates the task or starts its next turn. */
function isNewMessage({ record }: StoredInput, aggregate: TaskAggregate | undefined): boolean {
  if (record.from !== 'client' || record.input.kind !== 'message') return false;
  if (aggregate === undefined) return true;
  return !isTerminal(aggregate.state) && !aggregate.messageIds.includes(record.input.message.messageId);
}
