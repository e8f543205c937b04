import type { Fact, FactRecord } from '@hopline/events';
import { type TaskView, TaskViewBuilder } from '@hopline/task';
import type { ByteBudget, Emptiable } from './byte-budget.ts';
import { bytesOfParts } from './visible-entry.ts';

/**
 * Memory that a part of an artifact takes in addition to its content. A chunk of text was measured at 53 bytes, because V8 keeps the pieces
 * of a text apart until it is encoded. Data takes more.
 */
const PART_BYTES = 64;

/**
 * The task as clients see it, kept in memory while all such views fit into their budget. A dropped view is not rebuilt; each reader then
 * reads the log.
 */
export class HeldView implements Emptiable {
  readonly #budget: ByteBudget;
  readonly #bytesMax: number;
  #builder: TaskViewBuilder | undefined = new TaskViewBuilder();
  /** Bytes of each artifact, kept because the next event may replace it. */
  #artifacts = new Map<string, number>();
  #bytes = 0;

  /** `bytesMax`: limit of this view, regardless of what the budget has left. */
  constructor(budget: ByteBudget, bytesMax: number) {
    this.#budget = budget;
    this.#bytesMax = bytesMax;
  }

  get isDropped(): boolean {
    return this.#builder === undefined;
  }

  /** Undefined before the first fact, and after the view was dropped. */
  get view(): TaskView | undefined {
    return this.#builder?.view;
  }

  /** Bytes of the view, including its artifacts. */
  get bytes(): number {
    return this.#bytes;
  }

  /** `onFact` is called after each fact and returns the bytes of its content. */
  add(record: FactRecord, onFact: (fact: Fact) => number): void {
    const counted = (fact: Fact) => this.#count(fact, onFact(fact));
    if (this.#builder === undefined) {
      for (const fact of record.facts) counted(fact);
      return;
    }
    this.#builder.add(record, counted);
    if (this.#bytes > this.#bytesMax) this.empty();
    else this.#budget.count(this, this.#bytes);
  }

  empty(): void {
    this.#builder = undefined;
    this.#artifacts.clear();
    this.#budget.remove(this);
  }

  #count(fact: Fact, contentBytes: number): void {
    if (this.#builder === undefined) return;
    if (fact.kind !== 'artifact.updated') {
      this.#bytes += PART_BYTES + (fact.kind === 'message.received' ? bytesOfParts(fact.message.parts) : contentBytes);
      return;
    }
    const { artifact, append } = fact.event.artifactUpdate;
    const before = this.#artifacts.get(artifact.artifactId) ?? 0;
    const added = contentBytes + PART_BYTES * (1 + artifact.parts.length);
    const after = append === true ? before + added : added;
    this.#artifacts.set(artifact.artifactId, after);
    this.#bytes += after - before;
  }
}
