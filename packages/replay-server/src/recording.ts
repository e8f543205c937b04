import { type Message, type Metadata, textOf } from '@hopline/a2a';
import type { FactRecord, MessageInput, TaskAggregate } from '@hopline/events';
import { evolve } from '@hopline/task';
import { type TaskEntry, TaskFileError, type TaskHeader } from '@hopline/task-file';

/** A recorded task: the question, and the records of facts that answered it. */
export type Recording = {
  header: TaskHeader;
  question: string;
  /** The agent that the client named, as JSON; '' if it named none. */
  agent: string;
  records: FactRecord[];
};

/**
 * The recordings of a task file, held in memory. Throws TaskFileError for a malformed file, and for one from which nothing can be served.
 */
export async function readRecordings(entries: AsyncIterable<TaskEntry>): Promise<Recording[]> {
  const recordings: Recording[] = [];
  let header: TaskHeader | undefined;
  let records: FactRecord[] = [];
  for await (const entry of entries) {
    if (entry.kind === 'header') {
      ({ header } = entry);
      records = [];
    } else if (entry.kind === 'facts') records.push(entry.record);
    else if (entry.kind === 'end') recordings.push(recordingOf(header!, records));
  }
  return recordings;
}

function recordingOf(header: TaskHeader, records: FactRecord[]): Recording {
  const created = records[0]?.facts[0];
  if (created?.kind !== 'task.created') {
    throw new TaskFileError(
      'malformed',
      0,
      `task ${header.taskId} has no first fact in the file, and cannot be served: export its facts`,
    );
  }
  const message = created.event.task.history?.[0];
  return { header, question: questionOf(message), agent: agentOf(message, created.request), records: apartInTime(records) };
}

/** The records, split so that each has a single time: a copy of the facts, and a relay under load, store facts of many times together. */
function apartInTime(records: readonly FactRecord[]): FactRecord[] {
  const apart: FactRecord[] = [];
  let aggregate: TaskAggregate | undefined;
  for (const record of records) {
    const parts: FactRecord[] = [];
    for (const fact of record.facts) {
      const newest = aggregate?.at === fact.at ? parts.pop() : undefined;
      aggregate = evolve(aggregate, fact);
      parts.push({ ...record, facts: [...(newest?.facts ?? []), fact], aggregate });
    }
    ({ aggregate } = record);
    apart.push(...parts.slice(0, -1), { ...record, facts: parts.at(-1)?.facts ?? [] });
  }
  return apart;
}

/** Messages that differ only in white space ask the same question. */
export function questionOf(message: Message | undefined): string {
  return textOf(message?.parts ?? [])
    .replace(/\s+/g, ' ')
    .trim();
}

function agentOf(message: Message | undefined, request: Metadata | undefined): string {
  const agent = message?.metadata?.agent ?? request?.agent;
  return agent === undefined ? '' : JSON.stringify(agent);
}

/** `text`: the recording of the same question to the agent that the client names. `any`: every message gets a recording. */
export type MatchRule = 'text' | 'any';

/** Chooses the recording for a message. If several match, they take turns. */
export class Recordings {
  readonly #all: readonly Recording[];
  readonly #rule: MatchRule;
  readonly #used = new Map<Recording, number>();

  constructor(all: readonly Recording[], rule: MatchRule) {
    this.#all = all;
    this.#rule = rule;
  }

  choose({ message, metadata }: MessageInput): Recording | undefined {
    const fitting = this.#rule === 'any' ? this.#all : this.#all.filter(one => fits(one, message, metadata));
    const chosen = fitting.toSorted((a, b) => this.#uses(a) - this.#uses(b))[0];
    if (chosen !== undefined) this.#used.set(chosen, this.#uses(chosen) + 1);
    return chosen;
  }

  /** Whether a client's message is the recorded one. */
  isSame(recorded: Message, sent: Message): boolean {
    return this.#rule === 'any' || questionOf(recorded) === questionOf(sent);
  }

  /** A sentence that explains to the client's author why no recording matches. */
  explain({ message, metadata }: MessageInput): string {
    const asked = questionOf(message);
    const agent = agentOf(message, metadata);
    const named = agent === '' ? '' : ` for agent ${agent}`;
    const known = this.#all.slice(0, SHOWN_MAX).map(one => `${quoted(one.question)}${one.agent && ` for agent ${one.agent}`}`);
    const more = this.#all.length > SHOWN_MAX ? `, and ${this.#all.length - SHOWN_MAX} more` : '';
    return `No recorded task begins with ${quoted(asked)}${named}. Recorded: ${known.join(', ')}${more}. --match any answers every message.`;
  }

  #uses(recording: Recording): number {
    return this.#used.get(recording) ?? 0;
  }
}

const SHOWN_MAX = 10;
const QUOTE_CHARS_MAX = 80;

function quoted(text: string): string {
  return JSON.stringify(text.length > QUOTE_CHARS_MAX ? `${text.slice(0, QUOTE_CHARS_MAX)}…` : text);
}

function fits({ question, agent }: Recording, message: Message, metadata: Metadata | undefined): boolean {
  const asked = agentOf(message, metadata);
  return question === questionOf(message) && (asked === '' || asked === agent);
}
