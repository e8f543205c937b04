import type { AgentEvent } from '@hopline/agent';
import type { GraphMessage } from './graph-message.ts';

/** What `messages` mode says about where a chunk comes from. */
export type Origin = { node: string | undefined; namespace: string };

type Invocation = Origin & { stream: string; text: string; chunked: boolean; ended: boolean; repeated: boolean };

/** Invocations of one turn that are remembered one by one; their texts are bounded by the turn's. */
export const INVOCATIONS_MAX = 10_000;

/**
 * The texts that models say in a turn, one for each invocation (S1-25). A chunk is matched by its id; a model that changes its id before it has said anything is still the same invocation, since one without
 * text is not remembered.
 */
export class Invocations {
  readonly #known = new Map<string, Invocation>();
  #unnamed = 0;

  *say(message: GraphMessage, origin: Origin): Generator<AgentEvent> {
    const { id, text, isChunk, isLast } = message;
    if (text === '' && !isLast) return;
    if (!isChunk && this.#isSaid(message)) return;
    const key = id ?? (isChunk ? `in ${origin.namespace}` : `unnamed ${++this.#unnamed}`);
    const invocation = this.#known.get(key) ?? this.#begin(key, origin, isChunk);
    invocation.text += text;
    const source = { mode: 'messages', ...(origin.node !== undefined && { node: origin.node }) };
    if (text !== '') yield { type: 'text', text, stream: invocation.stream, source };
    if (isLast || !isChunk) yield* this.#end(invocation);
  }

  /** A node is done: its models are. `path`: the graph the node is in. */
  *endOf(node: string, path: readonly string[]): Generator<AgentEvent> {
    const parent = path.join('|');
    for (const invocation of this.#known.values())
      if (invocation.node === node && parentOf(invocation.namespace) === parent) yield* this.#end(invocation);
  }

  /** A text that stands already, as the whole of one invocation. */
  has(text: string): boolean {
    for (const invocation of this.#known.values()) if (invocation.text === text) return true;
    return false;
  }

  /** A message as a whole that a model has streamed before: itself, or a node's copy of it under another id, once (S2-2). */
  #isSaid({ id, text }: GraphMessage): boolean {
    if (id !== undefined && this.#known.has(id)) return true;
    for (const invocation of this.#known.values()) {
      if (!invocation.chunked || invocation.repeated || invocation.text !== text) continue;
      invocation.repeated = true;
      return true;
    }
    return false;
  }

  #begin(key: string, origin: Origin, chunked: boolean): Invocation {
    if (this.#known.size >= INVOCATIONS_MAX) this.#forgetOldest();
    const invocation = { ...origin, stream: key, text: '', chunked, ended: false, repeated: false };
    this.#known.set(key, invocation);
    return invocation;
  }

  #forgetOldest(): void {
    for (const [key, { ended }] of this.#known) {
      if (!ended) continue;
      this.#known.delete(key);
      return;
    }
  }

  *#end(invocation: Invocation): Generator<AgentEvent> {
    if (invocation.ended) return;
    invocation.ended = true;
    yield { type: 'text-end', stream: invocation.stream };
  }
}

/** `inner:uuid|answer:uuid` → `inner:uuid`. */
function parentOf(namespace: string): string {
  return namespace.split('|').slice(0, -1).join('|');
}
