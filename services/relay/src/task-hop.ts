import { codePoints, isInProgress, isTerminal, stateWord } from '@hopline/a2a';
import { isVisible, rawSubject, shardOf, type TaskAggregate, type TraceCarrier } from '@hopline/events';
import type { StoredFacts, StoredInput } from '@hopline/log';
import {
  ATTR,
  COUNT,
  correlationOf,
  DESTINATION,
  errorWord,
  type Hop,
  messagingAttributes,
  SPAN,
  startHop,
} from '@hopline/telemetry';
import type { StoredStep } from './pipeline-context.ts';

type TaskHopOptions = {
  taskId: string;
  shards: number;
  newest: StoredFacts | undefined;
  /** Another relay began the task, and it is open. */
  isTakeover: boolean;
};

/**
 * The relay's spans over one task: for each turn a short one when its message is read, then one per segment, never one per token or
 * chunk. A turn is below the request that sent its message; a relay that takes over continues below the span of the one before it.
 */
export class TaskHop {
  readonly #options: TaskHopOptions;
  #hop: Hop | undefined;
  /** Span of the turn so far, of this relay or of the one before it. */
  #previous: TraceCarrier | undefined;
  /** Why the next hop begins within a turn. */
  #cause: 'takeover' | 'reload' | 'continuation';
  #isTakeover: boolean;

  constructor(options: TaskHopOptions) {
    const { newest, isTakeover } = options;
    this.#options = options;
    this.#previous = newest?.trace;
    this.#isTakeover = isTakeover;
    this.#cause = this.#isTakeover ? 'takeover' : 'reload';
  }

  /** For what the task stores and queues: a span that is exported already. */
  carrier(): TraceCarrier {
    return this.#hop?.carrier() ?? this.#previous ?? {};
  }

  /** True once, where this relay continues a task that another one began. */
  takeTakeover(): boolean {
    const isTakeover = this.#isTakeover;
    this.#isTakeover = false;
    return isTakeover;
  }

  /** An input that was not folded before. */
  input(input: StoredInput, aggregate: TaskAggregate | undefined): void {
    const isMessage = beginsTurn(input, aggregate);
    if (isMessage && this.#hop !== undefined) this.#end('superseded');
    if (this.#hop === undefined) {
      // Inputs of a task that has ended are rejected: they are no work.
      if (aggregate !== undefined && isTerminal(aggregate.state)) return;
      this.#hop = this.#start(input, aggregate, isMessage);
    }
    this.#hop.count(COUNT.bytesIn, input.bytes);
    if (input.trace === undefined) return;
    if (input.record.from === 'client') this.#hop.linkRequest(input.trace);
    else this.#hop.link(input.trace);
  }

  rejected(count: number): void {
    this.#hop?.count(COUNT.rejected, count);
  }

  /** The numbers come from facts, so that they agree with the log. */
  stored({ facts, aggregate }: StoredStep): void {
    const hop = this.#hop;
    if (hop === undefined) return;
    for (const fact of facts) {
      if (isVisible(fact)) hop.count(COUNT.events);
      if (fact.kind !== 'artifact.updated' || fact.chunk === undefined) continue;
      const { count, heldMs, waitMs = 0 } = fact.chunk;
      hop.count(COUNT.chunks);
      hop.count(COUNT.tokens, count);
      hop.count(COUNT.characters, codePoints(fact.event.artifactUpdate.artifact.parts[0]?.text ?? ''));
      hop.max(COUNT.heldMsMax, heldMs);
      hop.max(COUNT.waitMsMax, waitMs);
    }
    const { state, generation } = aggregate;
    hop.set({ [ATTR.a2aState]: stateWord(state), [ATTR.generation]: generation });
    if (!isInProgress(state)) this.#end(stateWord(state));
  }

  fail(error: unknown): void {
    this.#hop?.fail(errorWord(error));
    this.#hop = undefined;
  }

  /** The pipeline stops: the shard was released, or the task is idle. */
  end(): void {
    this.#end('stopped');
  }

  #end(outcome: string): void {
    this.#hop?.set({ [ATTR.outcome]: outcome });
    this.#hop?.end();
    this.#hop = undefined;
  }

  #start(input: StoredInput, aggregate: TaskAggregate | undefined, isMessage: boolean): Hop {
    const { taskId, shards } = this.#options;
    const previous = this.#previous;
    const cause = previous === undefined ? undefined : isMessage ? 'continuation' : this.#cause;
    const message = input.record.from === 'client' && input.record.input.kind === 'message' ? input.record.input : undefined;
    const shard = shardOf(taskId, shards);
    const subject = { destination: rawSubject(taskId, shards, input.writer), consumer: `relay-shard-${shard}` };
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
      },
      receive: {
        name: SPAN.receiveInput,
        queuedAt: input.storedAt,
        attributes: messagingAttributes(DESTINATION.raw, { operation: 'receive', ...subject }),
      },
    });
    this.#previous = hop.carrier();
    this.#cause = 'continuation';
    return hop;
  }
}

/** A message that the task does not have: it creates the task, or starts its next turn. */
function beginsTurn({ record }: StoredInput, aggregate: TaskAggregate | undefined): boolean {
  if (record.from !== 'client' || record.input.kind !== 'message') return false;
  if (aggregate === undefined) return true;
  return !isTerminal(aggregate.state) && !aggregate.messageIds.includes(record.input.message.messageId);
}
