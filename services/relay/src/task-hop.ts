import { isTerminal } from '@hopline/a2a';
import type { TaskAggregate, TraceCarrier } from '@hopline/events';
import type { StoredInput } from '@hopline/log';
import { ATTR, COUNT, type Hop, SPAN, startHop } from '@hopline/telemetry';

/**
 * The relay's span over one task: one per segment, never one per token or chunk. Its parent created the first input that this
 * relay read.
 */
export class TaskHop {
  readonly #taskId: string;
  #hop: Hop | undefined;

  constructor(taskId: string) {
    this.#taskId = taskId;
  }

  carrier(): TraceCarrier {
    return this.#hop?.carrier() ?? {};
  }

  input(input: StoredInput): void {
    this.#hop ??= startHop(SPAN.processInput, {
      kind: 'consumer',
      parent: input.trace,
      attributes: { [ATTR.a2aTask]: this.#taskId, [ATTR.operationName]: 'process', [ATTR.operationType]: 'process' },
    });
    this.#hop.count(COUNT.bytesIn, input.bytes);
    if (input.trace !== undefined) this.#hop.link(input.trace);
  }

  chunk(tokens: number, characters: number, heldMs: number): void {
    this.#hop?.count(COUNT.tokens, tokens);
    this.#hop?.count(COUNT.chunks);
    this.#hop?.count(COUNT.characters, characters);
    this.#hop?.max(COUNT.heldMsMax, heldMs);
  }

  rejected(count: number): void {
    this.#hop?.count(COUNT.rejected, count);
  }

  stored(aggregate: TaskAggregate, events: number): void {
    this.#hop?.count(COUNT.events, events);
    this.#hop?.set({ [ATTR.a2aState]: aggregate.state, [ATTR.generation]: aggregate.generation });
    if (isTerminal(aggregate.state)) this.end();
  }

  end(): void {
    this.#hop?.end();
    this.#hop = undefined;
  }
}
