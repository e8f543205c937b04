import { createHmac } from 'node:crypto';
import { isObject, type JsonObject } from '@hopline/a2a';
import type { RecordEntry, TaskHeader } from './format.ts';

/** Ids of tasks, contexts, messages, artifacts and people. Equal ids stay equal. */
const IDS = ['taskId', 'contextId', 'messageId', 'artifactId', 'tenant', 'subject'];
const LISTS_OF_IDS = ['messageIds', 'earlierTasks', 'referenceTaskIds', 'ids'];
/** Words of the protocol, names of agents, artifacts, lanes and calls, and times. Every other string counts as text. */
const KEPT = [
  'kind',
  'state',
  'role',
  'profile',
  'lane',
  'producer',
  'call',
  'agent',
  'name',
  'phase',
  'cause',
  'step',
  'writer',
  'mediaType',
  'timestamp',
  'mode',
  'scheme',
];
/** Members whose structure an agent or a client chooses. Only their size is kept. */
const OPAQUE = ['data', 'payload', 'resume', 'run', 'outcome'];
const TRACES = ['trace', 'firstTrace', 'lastTrace'];

/**
 * Replaces text with filler and ids with pseudonyms. Every value that is not known to be harmless counts as text, so the lists name the
 * values that are kept. White space stays, and every other UTF-16 unit becomes an `x`, so that joined tokens still equal their text.
 * Pseudonyms are the same for the same `key`. Keep the key secret; otherwise a short id can be found by brute force.
 */
export class Redactor {
  readonly #key: Uint8Array;

  constructor(key: Uint8Array) {
    this.#key = key;
  }

  header(header: TaskHeader): TaskHeader {
    const { owner, redacted = [] } = header;
    return {
      ...header,
      taskId: this.#pseudonym(header.taskId),
      contextId: this.#pseudonym(header.contextId),
      ...(owner && { owner: this.#object(owner, '') }),
      redacted: [...redacted, 'text'],
    };
  }

  entry(entry: RecordEntry): RecordEntry {
    return this.#object(entry, '');
  }

  #object<T extends object>(value: T, parent: string): T {
    const members = Object.entries(value as JsonObject).filter(([name]) => !TRACES.includes(name));
    return Object.fromEntries(members.map(([name, member]) => [name, this.#member(name, member, parent)])) as T;
  }

  #member(name: string, value: unknown, parent: string): unknown {
    if (parent === 'metadata') return isLegacyMark(name) ? value : this.#free(value);
    if (OPAQUE.includes(name) && value !== null && value !== undefined) return { redacted: filler(JSON.stringify(value)) };
    // The producer of a record, and the provenance of a chunk: names and numbers.
    if (name === 'from' || name === 'chunk' || name === 'extensions') return isObject(value) ? this.#kept(value) : value;
    if (name === 'id' && typeof value === 'string') return this.#pseudonym(value);
    if (IDS.includes(name) && typeof value === 'string') return this.#pseudonym(value);
    if (LISTS_OF_IDS.includes(name) && Array.isArray(value)) {
      return value.map(id => (typeof id === 'string' && id !== '' ? this.#pseudonym(id) : id));
    }
    if (name === 'raw' && typeof value === 'string') return 'x'.repeat(value.length);
    if (name === 'metadata' || name === 'request') return isObject(value) ? this.#object(value, 'metadata') : value;
    return this.#value(name, value);
  }

  #value(name: string, value: unknown): unknown {
    if (typeof value === 'string') return KEPT.includes(name) ? value : filler(value);
    if (Array.isArray(value)) return value.map(item => this.#value(name, item));
    return isObject(value) ? this.#object(value, name) : value;
  }

  #kept(value: JsonObject): JsonObject {
    return Object.fromEntries(Object.entries(value).filter(([name]) => !TRACES.includes(name)));
  }

  /** Redacts JSON from a client or an agent. Its names and its structure stay. */
  #free(value: unknown): unknown {
    if (typeof value === 'string') return filler(value);
    if (typeof value === 'number') return 0;
    if (Array.isArray(value)) return value.map(item => this.#free(item));
    if (!isObject(value)) return value;
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, this.#free(member)]));
  }

  #pseudonym(id: string): string {
    const hash = createHmac('sha256', this.#key).update(id).digest('hex');
    // Has the form of a UUID, which is valid wherever a task id is.
    return hash.slice(0, 32).replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
  }
}

/**
 * Whether a member marks a task of the legacy form. Such members are kept, because they determine the dialect of responses and only a
 * server writes them.
 */
function isLegacyMark(name: string): boolean {
  return name === 'hopline.dialect' || name === 'hopline.receivedAt';
}

function filler(text: string): string {
  return text.replace(/[^\s]/g, 'x');
}
