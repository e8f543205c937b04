import { setTimeout as sleep } from 'node:timers/promises';
import { isInProgress, type Message, type TerminalState } from '@hopline/a2a';
import {
  type AgentInput,
  type ClientInput,
  type Fact,
  type FactRecord,
  isVisible,
  type MessageInput,
  type TaskAggregate,
} from '@hopline/events';
import { type Log, putTask, type StoredInput } from '@hopline/log';
import { decide, evolve } from '@hopline/task';
import { type Binding, rebindRecord } from '@hopline/task-transfer';
import { questionOf, type Recording, type Recordings } from './recording.ts';

/** Role of the server that clients ask. It also answers with recordings from an agent's own server. */
export const ROLE = 'supervisor';

/** A task that answers a client with a recording. */
type Playing = {
  taskId: string;
  newest: FactRecord;
  /** Log sequence of `newest`. */
  seq: number;
  startSeq: number;
  recording: Recording | undefined;
  binding: Binding;
  /** Index of the next record. */
  next: number;
  /** Ids of the client's messages, by the recorded ids that they replace. */
  messageIds: Map<string, string>;
  stop: AbortController;
  /** The newest write: the next one waits for it. */
  writing: Promise<void>;
};

/**
 * Replaces the relay and the agents: recorded facts answer a message, under the ids of the new task and with current times,
 * at the pace of the recording.
 */
export class RecordedRelay {
  readonly #log: Log;
  readonly #recordings: Recordings;
  /** Factor of the recorded speed. Infinite: without waiting. */
  readonly #pace: number;
  readonly #playing = new Map<string, Playing>();

  readonly #onError: (error: unknown) => void;

  constructor(log: Log, recordings: Recordings, pace: number, onError: (error: unknown) => void) {
    this.#onError = onError;
    this.#log = log;
    this.#recordings = recordings;
    this.#pace = pace;
  }

  /** Makes a whole recorded task visible under its own ids. */
  async store({ header, records }: Recording): Promise<void> {
    const { taskId, contextId } = header;
    const binding: Binding = { taskId, contextId, role: ROLE, shiftMs: 0 };
    let [seq, startSeq] = [0, 0];
    let newest: FactRecord | undefined;
    for (const [index, record] of records.entries()) {
      const stored = { ...rebindRecord(record, binding), startSeq };
      ({ seq } = await this.#log.facts.append(stored, { expected: seq, id: `${taskId}:recorded:${index}` }));
      startSeq ||= seq;
      newest = stored;
    }
    if (newest !== undefined) await this.#index(newest, startSeq);
  }

  /** Answers messages until `signal` aborts. */
  async run(signal: AbortSignal): Promise<void> {
    // A task that cannot be answered must not affect other tasks.
    for await (const input of this.#log.inputs.readShard(0, 1, signal)) await this.#take(input).catch(this.#onError);
    for (const { stop } of this.#playing.values()) stop.abort();
  }

  async #take({ taskId, record }: StoredInput): Promise<void> {
    if (record.from !== 'client') return;
    const playing = this.#playing.get(taskId);
    const { input } = record;
    if (playing === undefined) {
      if (input.kind === 'message') await this.#begin(taskId, input);
    } else if (input.kind === 'cancel') {
      playing.stop.abort();
      await this.#exclusively(playing, () => this.#decide(playing, input));
    } else if (input.kind === 'message') await this.#exclusively(playing, () => this.#continue(playing, input));
  }

  async #exclusively(playing: Playing, write: () => Promise<void>): Promise<void> {
    const written = playing.writing.then(write);
    playing.writing = written.catch(() => {});
    await written;
  }

  async #begin(taskId: string, input: MessageInput): Promise<void> {
    const now = Date.now();
    const { facts } = decide(undefined, { kind: 'client', taskId, input }, now);
    const aggregate = facts.reduce<TaskAggregate | undefined>(evolve, undefined);
    if (aggregate === undefined) return;
    const recording = this.#recordings.choose(input);
    const startAt = recording?.records[0]?.aggregate.at ?? now;
    const playing: Playing = {
      taskId,
      newest: { v: 1, facts: [], aggregate, startSeq: 0, startStoredAt: now },
      seq: 0,
      startSeq: 0,
      recording,
      binding: { taskId, contextId: input.contextId, role: ROLE, shiftMs: now - startAt },
      next: 0,
      messageIds: new Map(),
      stop: new AbortController(),
      writing: Promise.resolve(),
    };
    this.#playing.set(taskId, playing);
    if (recording === undefined) {
      await this.#append(playing, { ...playing.newest, facts: [...facts] });
      await this.#end(playing, 'TASK_STATE_REJECTED', this.#recordings.explain(input));
      return;
    }
    // The task belongs to the client, with its message and metadata. Everything else in the record comes from the recording.
    const created = rebindRecord(recording.records[0]!, playing.binding);
    this.#replaceMessage(playing, recording.records[0]!.aggregate.messageIds[0], input.message);
    await this.#append(playing, { ...created, facts: [...facts, ...created.facts.slice(1)] });
    playing.next = 1;
    this.#play(playing, playing.stop.signal).catch(error => this.#onError(error));
  }

  /** A further message answers a question of the recording, which continues at the same message. */
  async #continue(playing: Playing, input: MessageInput): Promise<void> {
    const { recording } = playing;
    const next = nextShown(recording?.records ?? [], playing.next);
    const expected = recording?.records[next]?.facts.find(fact => fact.kind === 'message.received');
    if (expected === undefined || !this.#recordings.isSame(expected.message, input.message)) {
      playing.stop.abort();
      await this.#decide(playing, input);
      const recorded =
        expected === undefined ? 'no further message' : `the message ${JSON.stringify(questionOf(expected.message))}`;
      await this.#end(playing, 'TASK_STATE_REJECTED', `The recorded task has ${recorded} at this point.`);
      return;
    }
    // The client may answer before the last records of the turn are stored, which it does not see.
    playing.stop.abort();
    playing.stop = new AbortController();
    const { aggregate } = recording!.records[next]!;
    this.#replaceMessage(playing, expected.message.messageId, input.message);
    playing.binding = { ...playing.binding, shiftMs: Date.now() - aggregate.at };
    const rebound = rebindRecord(recording!.records[next]!, playing.binding);
    const { messageId, parts, role, metadata } = input.message;
    const received = (fact: Fact): Fact =>
      fact.kind === 'message.received'
        ? { ...fact, message: { ...fact.message, messageId, parts, role, ...(metadata && { metadata }) } }
        : fact;
    await this.#append(playing, { ...rebound, facts: rebound.facts.map(received) });
    playing.next = next + 1;
    this.#play(playing, playing.stop.signal).catch(error => this.#onError(error));
  }

  /** Plays to the end of the recording, or to the next message of the client in it. */
  async #play(playing: Playing, signal: AbortSignal): Promise<void> {
    const { recording, binding } = playing;
    const startMs = performance.now();
    const startAt = playing.newest.aggregate.at;
    try {
      for (;;) {
        const record = recording?.records[playing.next];
        if (record === undefined) return await this.#exclusively(playing, () => this.#endEarly(playing));
        if (record.facts.some(fact => fact.kind === 'message.received')) return;
        const rebound = rebindRecord(record, binding);
        const waitMs = startMs + (rebound.aggregate.at - startAt) / this.#pace - performance.now();
        if (waitMs > 0) await sleep(waitMs, undefined, { signal });
        await this.#exclusively(playing, async () => {
          if (signal.aborted) return;
          playing.next += 1;
          await this.#append(playing, rebound);
        });
        if (signal.aborted) return;
      }
    } catch (thrown) {
      if (!signal.aborted) throw thrown;
    }
  }

  /** Otherwise a client of a task that was still open when exported would wait forever. */
  async #endEarly(playing: Playing): Promise<void> {
    if (!isInProgress(playing.newest.aggregate.state)) return;
    await this.#end(playing, 'TASK_STATE_FAILED', 'The recording ends here: the task was open when it was exported.');
  }

  async #end(playing: Playing, state: TerminalState, text: string): Promise<void> {
    const message: Message = { messageId: crypto.randomUUID(), role: 'ROLE_AGENT', parts: [{ text }] };
    await this.#decide(playing, { kind: 'status', state, message });
  }

  async #decide(playing: Playing, input: ClientInput | Extract<AgentInput, { kind: 'status' }>): Promise<void> {
    const { taskId, newest } = playing;
    const from = { id: ROLE, agent: ROLE, turn: newest.aggregate.turn, attempt: 1 };
    const command =
      input.kind === 'status' ? ({ kind: 'agent', from, input } as const) : ({ kind: 'client', taskId, input } as const);
    const { facts } = decide(newest.aggregate, command, Math.max(Date.now(), newest.aggregate.at));
    if (facts.length === 0) return;
    const aggregate = facts.reduce<TaskAggregate | undefined>(evolve, newest.aggregate)!;
    await this.#append(playing, { ...newest, facts: [...facts], aggregate });
  }

  #replaceMessage({ messageIds }: Playing, recorded: string | undefined, { messageId }: Message): void {
    if (recorded !== undefined) messageIds.set(recorded, messageId);
  }

  async #append(playing: Playing, record: FactRecord): Promise<void> {
    const { taskId, startSeq, seq: expected, messageIds } = playing;
    const known = record.aggregate.messageIds.map(id => messageIds.get(id) ?? id);
    const stored = { ...record, aggregate: { ...record.aggregate, messageIds: known }, startSeq };
    const { seq } = await this.#log.facts.append(stored, { expected, id: `${taskId}:${expected}` });
    Object.assign(playing, { newest: stored, seq, startSeq: startSeq || seq });
    if (record.facts.some(({ kind }) => kind === 'task.created' || kind === 'status.changed')) {
      await this.#index(stored, playing.startSeq);
    }
  }

  async #index({ aggregate }: FactRecord, startSeq: number): Promise<void> {
    const { taskId, contextId, state, generation, at } = aggregate;
    await putTask(this.#log, taskId, { contextId, role: ROLE, state, startSeq, generation, at });
  }
}

/** Index of the next record with an event or a message of the client. */
function nextShown(records: readonly FactRecord[], from: number): number {
  const isShown = (fact: Fact) => isVisible(fact) || fact.kind === 'message.received';
  const found = records.findIndex(({ facts }, index) => index >= from && facts.some(isShown));
  return found < 0 ? records.length : found;
}
