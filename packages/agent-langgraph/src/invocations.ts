import type { AgentEvent } from '@hopline/agent';
import type { GraphMessage } from './graph-message.ts';

/** The origin of a chunk, from the metadata of `messages` mode. */
export type Origin = { node: string | undefined; namespace: string };

type Invocation = {
  stream: string;
  /** Key of its node in `#openOf`. */
  nodeKey: string;
  text: string;
  chunked: boolean;
  ended: boolean;
  repeated: boolean;
};

/** Invocations tracked in one turn. Their texts are bounded by the text of the turn. */
export const INVOCATIONS_MAX = 10_000;

/**
 * The texts of the models in a turn, one per invocation, so that parallel models do not mix (S1-25). A chunk belongs to the
 * invocation with its id. Chunks without text start none: some models change their id before the first text.
 */
export class Invocations {
  readonly #known = new Map<string, Invocation>();
  /** Those that have not ended, by node: every update of the graph ends a node, and a turn may have thousands of invocations. */
  readonly #openOf = new Map<string, Set<Invocation>>();
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
    for (const invocation of this.#openOf.get(nodeKeyOf(path.join('|'), node)) ?? []) yield* this.#end(invocation);
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

  #begin(key: string, { node, namespace }: Origin, chunked: boolean): Invocation {
    if (this.#known.size >= INVOCATIONS_MAX) this.#forgetOldest();
    const nodeKey = nodeKeyOf(parentOf(namespace), node);
    const invocation = { stream: key, nodeKey, text: '', chunked, ended: false, repeated: false };
    this.#known.set(key, invocation);
    const open = this.#openOf.get(nodeKey);
    if (open === undefined) this.#openOf.set(nodeKey, new Set([invocation]));
    else open.add(invocation);
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
    const open = this.#openOf.get(invocation.nodeKey);
    open?.delete(invocation);
    if (open?.size === 0) this.#openOf.delete(invocation.nodeKey);
    yield { type: 'text-end', stream: invocation.stream };
  }
}

/** `inner:uuid|answer:uuid` → `inner:uuid`. */
function parentOf(namespace: string): string {
  return namespace.split('|').slice(0, -1).join('|');
}

/** A node of one graph. `parent`: the namespace of the graph. */
function nodeKeyOf(parent: string, node: string | undefined): string {
  return JSON.stringify([parent, node]);
}
