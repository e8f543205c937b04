import type { AgentEvent } from '@hopline/agent';
import type { GraphMessage } from './graph-message.ts';

/** The origin of a chunk, from the metadata of `messages` mode. */
export type Origin = { node: string | undefined; namespace: string };

type Invocation = Origin & { stream: string; text: string; chunked: boolean; ended: boolean; repeated: boolean };

/** Invocations tracked in one turn. Their texts are bounded by the text of the turn. */
export const INVOCATIONS_MAX = 10_000;

/**
 * The texts of the models in a turn, one per invocation, so that parallel models do not mix (S1-25). A chunk belongs to the invocation with its id.
 * Chunks without text start none: some models change their id before the first text.
 */
export class Invocations {
  readonly #known = new Map<string, Invocation>();
  #unnamed = 0;

  *add(message: GraphMessage, origin: Origin): Generator<AgentEvent> {
    const { id, text, isChunk, isLast } = message;
    if (text === '' && !isLast) return;
    if (!isChunk && this.#isRepeated(message)) return;
    const key = id ?? (isChunk ? `in ${origin.namespace}` : `unnamed ${++this.#unnamed}`);
    const invocation = this.#known.get(key) ?? this.#begin(key, origin, isChunk);
    invocation.text += text;
    const source = { mode: 'messages', ...(origin.node !== undefined && { node: origin.node }) };
    if (text !== '') yield { type: 'text', text, stream: invocation.stream, source };
    if (isLast || !isChunk) yield* this.#end(invocation);
  }

  /** Ends the models of a node that has ended. `path`: the graph of the node. */
  *endOf(node: string, path: readonly string[]): Generator<AgentEvent> {
    const parent = path.join('|');
    for (const invocation of this.#known.values())
      if (invocation.node === node && parentOf(invocation.namespace) === parent) yield* this.#end(invocation);
  }

  /** Whether the text is the whole text of an invocation. */
  has(text: string): boolean {
    for (const invocation of this.#known.values()) if (invocation.text === text) return true;
    return false;
  }

  /** Whether a whole message was streamed before: the same id, or once a copy by a node under another id (S2-2). */
  #isRepeated({ id, text }: GraphMessage): boolean {
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
