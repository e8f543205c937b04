import { type CoalesceSettings, DEFAULT_SETTINGS } from '@hopline/coalesce';
import type { AgentInput, Fact, InputRecord, Producer } from '@hopline/events';
import { isVisible, writerOf } from '@hopline/events';
import type { StoredInput } from '@hopline/log';
import { evolve } from '@hopline/task';
import { type RecordEntry, TASK_FORMAT, TASK_FORMAT_VERSION, type TaskHeader, writeTask } from '@hopline/task-file';
import type { StoredTask } from './stored-task.ts';
import { timedReplay } from './timed-replay.ts';

const EPOCH_MS = 1_790_000_000_000;

/** A task for tests, whose inputs are written one by one, with the facts that a relay would store. */
export class TaskBuilder {
  readonly taskId = 'task-1';
  readonly inputs: StoredInput[] = [];
  #atMs = EPOCH_MS;
  readonly #ordinals = new Map<string, number>();

  /** Delay of the next input. */
  after(ms: number): this {
    this.#atMs += ms;
    return this;
  }

  /** `ifGeneration`: the message is accepted only if the task is at this generation. */
  message(messageId = 'm1', text = 'hi', ifGeneration?: number): this {
    const message = { messageId, role: 'ROLE_USER' as const, parts: [{ text }] };
    const condition = ifGeneration !== undefined && { ifGeneration };
    const input = { kind: 'message', message, contextId: 'c', role: 'supervisor', profile: 'transparent', ...condition } as const;
    return this.#store({ v: 1, at: this.#atMs, from: 'client', input });
  }

  cancel(): this {
    return this.#store({ v: 1, at: this.#atMs, from: 'client', input: { kind: 'cancel' } });
  }

  timeout(request = 1): this {
    return this.#store({ v: 1, at: this.#atMs, from: 'relay', input: { kind: 'timeout', request } });
  }

  copyForward(): this {
    return this.#store({ v: 1, at: this.#atMs, from: 'relay', input: { kind: 'copy-forward', startStoredAt: EPOCH_MS } });
  }

  /** A producer's record. `again`: uses the ordinals of the producer's last record again. */
  send(from: Producer, ...inputs: AgentInput[]): this {
    const run = `${from.id}.${from.turn}.${from.attempt}`;
    const n = (this.#ordinals.get(run) ?? 0) + 1;
    this.#ordinals.set(
      run,
      inputs.reduce((sum, input) => sum + (input.kind === 'text' ? input.tokens.length : 1), n - 1),
    );
    return this.#store({ v: 1, at: this.#atMs, from, n, inputs });
  }

  /** A record of a producer that held its tokens, the oldest of them for `heldMs`. The tokens are `everyMs` apart. */
  held(
    from: Producer,
    { lane, tokens, everyMs, heldMs }: { lane: string; tokens: string[]; everyMs: number; heldMs: number },
  ): this {
    const dt = tokens.map((_, index) => index * everyMs);
    this.send(from, { kind: 'text', lane, tokens, dt });
    const stored = this.inputs.at(-1)!;
    Object.assign(stored.record, { at: stored.storedAt - heldMs, heldMs });
    return this;
  }

  /** Stores the newest record again, as can happen after the duplicate window. */
  again(): this {
    return this.#store(this.inputs.at(-1)!.record);
  }

  /** `coalesce`: settings of the relay that stored the facts. */
  stored(coalesce: Partial<CoalesceSettings> = {}): StoredTask {
    const { taskId, inputs } = this;
    return storedTask(
      this,
      timedReplay({ taskId, inputs }, { coalesce: { ...DEFAULT_SETTINGS, ...coalesce } }).map(({ fact }) => fact),
    );
  }

  #store(record: InputRecord): this {
    const seq = this.inputs.length + 1;
    // Converted to JSON and back, as the log does.
    const copy = JSON.parse(JSON.stringify(record)) as InputRecord;
    this.inputs.push({ seq, taskId: this.taskId, record: copy, writer: writerOf(copy), bytes: 1, storedAt: this.#atMs });
    return this;
  }
}

/** The task with these facts, each in a separate record. */
export function storedTask({ taskId, inputs }: Pick<StoredTask, 'taskId' | 'inputs'>, facts: readonly Fact[]): StoredTask {
  const aggregate = facts.reduce<ReturnType<typeof evolve> | undefined>(evolve, undefined);
  const foldedSeq = inputs.at(-1)?.seq ?? 0;
  const newest = JSON.parse(JSON.stringify({ ...aggregate, foldedSeq })) as StoredTask['aggregate'];
  const records = facts.map((fact, index) => ({
    seq: index + 1,
    record: {
      v: 1 as const,
      facts: [JSON.parse(JSON.stringify(fact)) as Fact],
      aggregate: newest,
      startSeq: 1,
      startStoredAt: 1,
    },
  }));
  return { taskId, aggregate: newest, facts: records, inputs };
}

export const supervisor = (turn = 1, attempt = 1): Producer => ({
  id: 'supervisor',
  agent: 'supervisor',
  turn,
  item: 1,
  attempt,
});
export const agent = (turn = 1, attempt = 1): Producer => ({ id: 'call-1', agent: 'writer', turn, item: 2, attempt });

export const open = (lane = 'a'): AgentInput => ({
  kind: 'open',
  lane,
  artifact: { name: lane, ...(lane === 'b' && { separateClose: true as const }) },
});
export const text = (lane: string, ...tokens: string[]): AgentInput => ({ kind: 'text', lane, tokens });
export const close = (lane = 'a'): AgentInput => ({ kind: 'close', lane });
export const status = (state: Extract<AgentInput, { kind: 'status' }>['state'], words?: string): AgentInput => ({
  kind: 'status',
  state,
  ...(words !== undefined && { message: { messageId: `s-${words}`, role: 'ROLE_AGENT', parts: [{ text: words }] } }),
});
export const call: AgentInput = { kind: 'call', call: 'call-1', agent: 'writer' };
export const ended: AgentInput = { kind: 'ended', call: 'call-1', state: 'TASK_STATE_COMPLETED' };

/** A plain answer: the supervisor calls an agent whose text streams for a second. */
export function plainAnswer(): TaskBuilder {
  const task = new TaskBuilder().message().after(20).send(supervisor(), status('TASK_STATE_WORKING'), call);
  task.after(30).send(agent(), open(), text('a', 'Once'));
  for (const token of [' upon', ' a', ' time', ' there', ' was', ' a', ' log', '.'])
    task.after(25).send(agent(), text('a', token));
  return task.after(25).send(agent(), close(), ended).after(10).send(supervisor(), status('TASK_STATE_COMPLETED'));
}

/** The task as a task file. */
export async function taskFileOf({ taskId, aggregate, facts, inputs }: StoredTask): Promise<string> {
  const { contextId, role, profile } = aggregate;
  const header: TaskHeader = {
    format: TASK_FORMAT,
    version: TASK_FORMAT_VERSION,
    hopline: '0.1.0',
    exportedAt: EPOCH_MS,
    taskId,
    contextId,
    role,
    profile,
    agents: ['writer'],
    contains: ['inputs', 'facts'],
  };
  let generation = 0;
  const entries: RecordEntry[] = [
    ...inputs.map(({ taskId: _taskId, bytes: _bytes, ...input }) => ({ kind: 'input' as const, ...input })),
    ...facts.map(({ seq, record }) => {
      generation = record.facts.findLast(isVisible)?.generation ?? generation;
      const renumbered = { ...record, aggregate: { ...record.aggregate, generation } };
      return { kind: 'facts' as const, seq, storedAt: record.facts.at(-1)!.at, generation, record: renumbered };
    }),
  ];
  let file = '';
  for await (const line of writeTask(header, entries, { outcome: aggregate })) file += line;
  return file;
}
