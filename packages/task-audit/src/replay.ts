import {
  type AgentRecord,
  type ClientInput,
  type InputKind,
  isRole,
  isSameItem,
  type TaskAggregate,
  type TextInput,
} from '@hopline/events';
import type { StoredInput } from '@hopline/log';
import { type Command, decide, evolve, isOfOtherAgent, type RejectionReason, TaskViewBuilder } from '@hopline/task';
import { emptyTallies, type Tallies } from './tally.ts';

type SeenRun = {
  turn: number;
  item?: number | undefined;
  attempt: number;
  /** Last ordinal. */
  n: number;
};

/**
 * Decides the inputs of a task again, in order, without a coalescer or a clock. The relay must have reached the same result. Only the rules
 * of the task are shared with the relay (ADR 26). Ordinals, attempts and items are deliberately judged by separate code, so that a defect
 * in the relay's `TaskInputs` shows as a difference here; `hopline verify` runs `TaskInputs` and would repeat the defect.
 */
export class Replay {
  readonly tallies: Tallies = emptyTallies();
  readonly task = new TaskViewBuilder();
  /** A producer's ordinals have a gap, because retention has removed inputs. */
  hasGap = false;
  #aggregate: TaskAggregate | undefined;
  readonly #producers = new Map<string, SeenRun>();

  add({ taskId, record, writer }: StoredInput): void {
    if (record.from !== 'client' && record.from !== 'relay') {
      this.#addAgent(record);
      return;
    }
    this.tallies[record.input.kind].received += 1;
    const server = isRole(writer) ? { server: writer } : {};
    const client = (input: ClientInput): Command => ({ kind: 'client', taskId, input, ...server });
    const command = record.from === 'relay' ? record.input : client(record.input);
    this.#decide(command, record.input.kind, 1, record.at);
  }

  #addAgent(record: AgentRecord): void {
    const seen = this.#lookUp(record);
    let n = record.n;
    for (const input of record.inputs) {
      const tally = this.tallies[input.kind];
      const count = input.kind === 'text' ? input.tokens.length : 1;
      tally.received += count;
      const duplicates = typeof seen === 'string' ? 0 : Math.min(count, Math.max(0, seen - n + 1));
      tally.duplicates += duplicates;
      if (typeof seen === 'string') this.#reject(input.kind, seen, count);
      else if (duplicates < count && input.kind === 'text') this.#decideText(record, input, n, duplicates);
      else if (duplicates < count && input.kind !== 'text') {
        this.#decide({ kind: 'agent', from: record.from, input }, input.kind, 1, record.at);
      }
      n += count;
    }
    if (typeof seen === 'number') this.#record(record, Math.max(seen, n - 1));
  }

  #decideText({ from, at }: AgentRecord, { lane, tokens }: TextInput, n: number, duplicates: number): void {
    const count = tokens.length - duplicates;
    const chunk = {
      firstSeq: 0,
      lastSeq: 0,
      count,
      n: n + tokens.length - 1,
      reason: 'replay',
      heldMs: 0,
      firstAt: at,
      lastAt: at,
    };
    const text = tokens.slice(duplicates).join('');
    this.#decide({ kind: 'run', from, lane, text, last: false, n: chunk.n, chunk }, 'text', count, at);
  }

  #decide(command: Command, kind: InputKind, count: number, at: number): void {
    const { facts, rejected } = decide(this.#aggregate, command, at);
    if (rejected !== undefined) this.#reject(kind, rejected, count);
    else this.tallies[kind].accepted += count;
    for (const fact of facts) {
      this.#aggregate = evolve(this.#aggregate, fact);
      this.task.addFact(fact);
    }
  }

  #reject(kind: InputKind, reason: RejectionReason, count: number): void {
    const { rejected } = this.tallies[kind];
    rejected[reason] = (rejected[reason] ?? 0) + count;
  }

  /** Last known ordinal of the record's run, or why the relay has rejected the record. */
  #lookUp({ from, n }: AgentRecord): number | 'stale attempt' | 'other item' | 'other agent' {
    const { id, turn, attempt } = from;
    if (this.#aggregate !== undefined && isOfOtherAgent(this.#aggregate, from)) return 'other agent';
    const seen = this.#producers.get(id);
    if (seen !== undefined && turn === seen.turn && !isSameItem(seen, from)) return 'other item';
    if (seen === undefined || turn > seen.turn || (turn === seen.turn && attempt > seen.attempt)) {
      this.hasGap ||= n > 1;
      return 0;
    }
    if (turn < seen.turn || attempt < seen.attempt) return 'stale attempt';
    this.hasGap ||= n > seen.n + 1;
    return seen.n;
  }

  #record({ from: { id, turn, item, attempt } }: AgentRecord, n: number): void {
    this.#producers.set(id, { turn, item, attempt, n });
  }
}
