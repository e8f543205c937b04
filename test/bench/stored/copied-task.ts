import type { TaskState } from '@hopline/a2a';
import type { EndedTask, ListedTask, TaskIndexEntry } from '@hopline/log';

/**
 * The records of an ended task as a relay stored them, from which copies under other ids are made: the same bytes, except ids, owner, times,
 * sequences and the state of the end.
 */
export type StoredTask = {
  taskId: string;
  contextId: string;
  messageId: string;
  subject: string;
  /** Epoch milliseconds. */
  endedAt: number;
  generation: number;
  /** Payloads of its facts, oldest first. */
  facts: string[];
  /** Headers of its facts: message ids, without their task id and their number. */
  relay: string;
  entry: TaskIndexEntry;
  /** The part that its row shows. */
  listed: ListedTask;
};

/** Names and times of one copy. */
export type Copy = { taskId: string; contextId: string; messageId: string; subject: string; endedAt: number; state: TaskState };

type Piece =
  | string
  | { of: 'taskId' | 'contextId' | 'messageId' | 'subject' | 'state' | 'startSeq' }
  | { ms: number }
  | { iso: number };

const COMPLETED: TaskState = 'TASK_STATE_COMPLETED';
const EPOCH_MS = /(?<=[:,[])1\d{12}(?=[,\]}])/;
const ISO = /(?<=")\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z(?=")/;
const START_SEQ = /(?<="startSeq":)[1-9]\d*/;

/** Makes the facts of copies. */
export class CopiedTask {
  readonly #stored: StoredTask;
  readonly #facts: Piece[][];

  constructor(stored: StoredTask) {
    this.#stored = stored;
    this.#facts = stored.facts.map(text => piecesOf(text, stored));
  }

  get records(): number {
    return this.#facts.length;
  }

  /** Payloads of the facts of a copy. `startSeq`: log sequence of its first record. */
  facts(copy: Copy, startSeq: number): string[] {
    const shiftMs = copy.endedAt - this.#stored.endedAt;
    return this.#facts.map(pieces => {
      let text = '';
      for (const piece of pieces) {
        if (typeof piece === 'string') text += piece;
        else if ('ms' in piece) text += piece.ms + shiftMs;
        else if ('iso' in piece) text += new Date(piece.iso + shiftMs).toISOString();
        else text += piece.of === 'startSeq' ? startSeq : copy[piece.of];
      }
      return text;
    });
  }

  /** The id of the `n`-th fact, from 1. */
  factsId(copy: Copy, n: number): string {
    return `${copy.taskId}:${this.#stored.relay}:${n}`;
  }

  entry({ contextId, subject, state, endedAt }: Copy, startSeq: number): TaskIndexEntry {
    const { entry } = this.#stored;
    const shiftMs = endedAt - entry.at;
    const startStoredAt = (entry.startStoredAt ?? entry.at) + shiftMs;
    return {
      ...entry,
      contextId,
      state,
      owner: { subject },
      startSeq,
      startStoredAt,
      seq: startSeq + this.records - 1,
      at: endedAt,
    };
  }

  row({ taskId, contextId, messageId, state, endedAt }: Copy, startSeq: number): EndedTask {
    const { generation, listed, messageId: copied } = this.#stored;
    const history = listed.history?.map(message => (message.messageId === copied ? { ...message, messageId } : message));
    const seq = startSeq + this.records - 1;
    return [taskId, contextId, state, endedAt, generation, seq, { ...listed, ...(history && { history }) }];
  }
}

function piecesOf(text: string, { taskId, contextId, messageId, subject }: StoredTask): Piece[] {
  const names = { taskId, contextId, messageId, subject, state: COMPLETED };
  const all = new RegExp([...Object.values(names), EPOCH_MS.source, ISO.source, START_SEQ.source].join('|'), 'g');
  const pieces: Piece[] = [];
  let end = 0;
  for (const { 0: found, index } of text.matchAll(all)) {
    if (index > end) pieces.push(text.slice(end, index));
    end = index + found.length;
    const [name] = Object.entries(names).find(([, value]) => value === found) ?? [];
    if (name !== undefined) pieces.push({ of: name as keyof typeof names });
    else if (text.slice(0, index).endsWith('"startSeq":')) pieces.push({ of: 'startSeq' });
    else if (found.includes('T')) pieces.push({ iso: Date.parse(found) });
    else pieces.push({ ms: Number(found) });
  }
  pieces.push(text.slice(end));
  return pieces;
}
