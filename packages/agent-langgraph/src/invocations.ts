import type { AgentEvent } from '@hopline/agent';
import type { GraphMessage } from './graph-message.ts';

/** The origin of a chunk, from the metadata of `messages` mode. */
export type Origin = { node: string | undefined; namespace: string };

type Invocation = {
  stream: string;
  /** Key of its node in `#openOf`. */
  nodeKey: string;
  text: string;
  textHash: number;
  /** True if its text was streamed and no copy has repeated it yet. */
  isCopyable: boolean;
};

/**
 * Invocations tracked in one turn. Their texts are bounded by the text of the turn. Beyond the limit the oldest ended invocation is
 * dropped; if none has ended, the oldest one ends.
 */
export const INVOCATIONS_MAX = 10_000;

/**
 * The texts of the models in a turn, one per invocation, so that parallel models do not mix (S1-25). A chunk belongs to the
 * invocation with its id. Chunks without text start none: some models change their id before the first text.
 */
export class Invocations {
  readonly #known = new Map<string, Invocation>();
  /** Open invocations by node: every update of the graph ends a node, and a turn may have thousands of invocations. */
  readonly #openOf = new Map<string, Set<Invocation>>();
  readonly #ended = new Set<Invocation>();
  readonly #texts = new TextIndex();
  /** Invocations that a copy may still repeat. */
  readonly #copyable = new TextIndex();
  /** Invocations whose text has changed since it was indexed. */
  readonly #changed = new Set<Invocation>();
  #unnamed = 0;

  *add(message: GraphMessage, origin: Origin): Generator<AgentEvent> {
    const { id, text, isChunk, isLast } = message;
    if (text === '' && !isLast) return;
    if (!isChunk && this.#isRepeated(message)) return;
    const key = id ?? (isChunk ? `in ${origin.namespace}` : `unnamed ${++this.#unnamed}`);
    const invocation = this.#known.get(key) ?? (yield* this.#begin(key, origin, isChunk));
    this.#append(invocation, text);
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
    this.#indexChanged();
    return this.#texts.find(text) !== undefined;
  }

  /** Whether a whole message was already streamed, either under the same id or (only once) as a node's copy under another id (S2-2). */
  #isRepeated({ id, text }: GraphMessage): boolean {
    if (id !== undefined && this.#known.has(id)) return true;
    this.#indexChanged();
    const copied = this.#copyable.find(text);
    if (copied === undefined) return false;
    this.#copyable.delete(copied);
    copied.isCopyable = false;
    return true;
  }

  *#begin(key: string, { node, namespace }: Origin, isChunk: boolean): Generator<AgentEvent, Invocation> {
    if (this.#known.size >= INVOCATIONS_MAX) yield* this.#forgetOldest();
    const nodeKey = nodeKeyOf(parentOf(namespace), node);
    const invocation = { stream: key, nodeKey, text: '', textHash: 0, isCopyable: isChunk };
    this.#known.set(key, invocation);
    const open = this.#openOf.get(nodeKey);
    if (open === undefined) this.#openOf.set(nodeKey, new Set([invocation]));
    else open.add(invocation);
    return invocation;
  }

  #append(invocation: Invocation, text: string): void {
    // A text changes with each of its chunks, so it is indexed again only before the index is used.
    if (!this.#changed.has(invocation)) {
      this.#unindex(invocation);
      this.#changed.add(invocation);
    }
    invocation.text += text;
    invocation.textHash = hashOf(text, invocation.textHash);
  }

  #indexChanged(): void {
    for (const invocation of this.#changed) {
      this.#texts.add(invocation);
      if (invocation.isCopyable) this.#copyable.add(invocation);
    }
    this.#changed.clear();
  }

  #unindex(invocation: Invocation): void {
    this.#texts.delete(invocation);
    this.#copyable.delete(invocation);
  }

  *#forgetOldest(): Generator<AgentEvent> {
    const [oldest] = this.#ended.size > 0 ? this.#ended : this.#known.values();
    if (oldest === undefined) return;
    yield* this.#end(oldest);
    this.#ended.delete(oldest);
    this.#known.delete(oldest.stream);
    this.#changed.delete(oldest);
    this.#unindex(oldest);
  }

  *#end(invocation: Invocation): Generator<AgentEvent> {
    if (this.#ended.has(invocation)) return;
    this.#ended.add(invocation);
    const open = this.#openOf.get(invocation.nodeKey);
    open?.delete(invocation);
    if (open?.size === 0) this.#openOf.delete(invocation.nodeKey);
    yield { type: 'text-end', stream: invocation.stream };
  }
}

/** Finds an invocation by its whole text. */
class TextIndex {
  readonly #byHash = new Map<number, Set<Invocation>>();

  add(invocation: Invocation): void {
    const same = this.#byHash.get(invocation.textHash);
    if (same === undefined) this.#byHash.set(invocation.textHash, new Set([invocation]));
    else same.add(invocation);
  }

  /** Call it before the text of the invocation changes. */
  delete(invocation: Invocation): void {
    const same = this.#byHash.get(invocation.textHash);
    same?.delete(invocation);
    if (same?.size === 0) this.#byHash.delete(invocation.textHash);
  }

  find(text: string): Invocation | undefined {
    for (const invocation of this.#byHash.get(hashOf(text)) ?? []) if (invocation.text === text) return invocation;
    return undefined;
  }
}

/** `before`: hash of the text that `text` continues, so that the same text is not hashed again as it grows. */
function hashOf(text: string, before = 0): number {
  let hash = before;
  for (let index = 0; index < text.length; index += 1) hash = (Math.imul(hash, 31) + text.charCodeAt(index)) | 0;
  return hash;
}

/** `inner:uuid|answer:uuid` → `inner:uuid`. */
function parentOf(namespace: string): string {
  return namespace.split('|').slice(0, -1).join('|');
}

/** A node of one graph. `parent`: the namespace of the graph. */
function nodeKeyOf(parent: string, node: string | undefined): string {
  return JSON.stringify([parent, node]);
}
