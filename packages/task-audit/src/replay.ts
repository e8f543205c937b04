import type { AgentRecord, TaskAggregate, TextInput } from '@hopline/events';
import type { StoredInput } from '@hopline/log';
import { type Command, decide, evolve, project, type RejectionReason, type TaskView } from '@hopline/task';
import { emptyTallies, type InputKind, type Tallies } from './tally.ts';

type Seen = { turn: number; attempt: number; n: number };

/**
 * Decides a task's inputs once more, one after the other, without a coalescer and without time: what the relay must have come to, whatever it merged, held, lost or read twice.
 */
export class Replay {
  readonly tallies: Tallies = emptyTallies();
  view: TaskView | undefined;
  /** A producer's ordinals jumped: retention has removed some of what it said. */
  hasHole = false;
  #aggregate: TaskAggregate | undefined;
  readonly #seen = new Map<string, Seen>();

  take({ taskId, record }: StoredInput): void {
    if (record.from !== 'client' && record.from !== 'relay') {
      this.#takeAgent(record);
      return;
    }
    this.tallies[record.input.kind].received += 1;
    const item: Command = record.from === 'relay' ? record.input : { kind: 'client', taskId, input: record.input };
    this.#decide(item, record.input.kind, 1, record.at);
  }

  #takeAgent(record: AgentRecord): void {
    const admitted = this.#admitted(record);
    let n = record.n;
    for (const input of record.inputs) {
      const tally = this.tallies[input.kind];
      const count = input.kind === 'text' ? input.tokens.length : 1;
      tally.received += count;
      const known = admitted === 'stale' ? 0 : Math.min(count, Math.max(0, admitted - n + 1));
      tally.duplicates += known;
      if (admitted === 'stale') this.#drop(input.kind, 'stale attempt', count);
      else if (known < count && input.kind === 'text') this.#decideText(record, input, n, known);
      else if (known < count && input.kind !== 'text') {
        this.#decide({ kind: 'agent', from: record.from, input }, input.kind, 1, record.at);
      }
      n += count;
    }
    if (admitted !== 'stale') this.#admit(record, Math.max(admitted, n - 1));
  }

  #decideText({ from, at }: AgentRecord, { lane, tokens }: TextInput, n: number, known: number): void {
    const count = tokens.length - known;
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
    const text = tokens.slice(known).join('');
    this.#decide({ kind: 'run', from, lane, text, last: false, n: chunk.n, chunk }, 'text', count, at);
  }

  #decide(item: Command, kind: InputKind, count: number, at: number): void {
    const { facts, rejected: dropped } = decide(this.#aggregate, item, at);
    if (dropped !== undefined) this.#drop(kind, dropped, count);
    else this.tallies[kind].accepted += count;
    for (const fact of facts) {
      this.#aggregate = evolve(this.#aggregate, fact);
      this.view = project(this.view, fact);
    }
  }

  #drop(kind: InputKind, reason: RejectionReason, count: number): void {
    const { rejected: dropped } = this.tallies[kind];
    dropped[reason] = (dropped[reason] ?? 0) + count;
  }

  /** Last ordinal that was taken of this record's attempt. */
  #admitted({ from: { id, turn, attempt }, n }: AgentRecord): number | 'stale' {
    const seen = this.#seen.get(id);
    if (seen === undefined || turn > seen.turn || (turn === seen.turn && attempt > seen.attempt)) {
      this.hasHole ||= n > 1;
      return 0;
    }
    if (turn < seen.turn || attempt < seen.attempt) return 'stale';
    this.hasHole ||= n > seen.n + 1;
    return seen.n;
  }

  #admit({ from: { id, turn, attempt } }: AgentRecord, n: number): void {
    this.#seen.set(id, { turn, attempt, n });
  }
}
