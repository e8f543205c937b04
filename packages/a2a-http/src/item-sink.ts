import type { StreamResponse, Task } from '@hopline/a2a';
import type { ArtifactIndex, Gap, NewestEvent, VisibleEntry } from '@hopline/a2a-server';
import { eventOf } from '@hopline/events';

/** An item of a task's stream: an event and the cursor after it, or missing events. */
export type SinkItem = { event: StreamResponse; cursor: string } | { gap: Gap };

/** The part of a sink that takes the stream of a task as items. */
export abstract class ItemSink {
  #storedTo = 0;

  follows(tail: NewestEvent): void {
    this.#storedTo = tail.generation;
  }

  addEvent(entry: VisibleEntry, _artifactIndex: ArtifactIndex): void {
    this.add({ event: eventOf(entry.fact), cursor: entry.cursor }, entry.generation >= this.#storedTo);
  }

  addSnapshot(task: Task, cursor: string, generation: number): void {
    this.add({ event: { task }, cursor }, generation >= this.#storedTo);
  }

  addGap(gap: Gap): void {
    this.add({ gap }, this.#storedTo === 0);
  }

  /** `isNewest` is false while more events follow that were stored before the stream began. */
  protected abstract add(item: SinkItem, isNewest: boolean): void;
}
