import type { Layouts } from '@hopline/events';
import { type LogExtent, type ReadStart, toLogExtent } from '../fact-log.ts';
import { type Faults, MemoryStream, type StoredText, type WriteOptions } from './memory-stream.ts';

/** The streams of all groups, each with its own sequences. */
export class MemoryStreams {
  readonly #layouts: Layouts;
  readonly #streams: readonly MemoryStream[];

  /** `bytesMax`: limit of each stream. */
  constructor(faults: Faults, layouts: Layouts, recordBytesMax: number, bytesMax?: number) {
    this.#layouts = layouts;
    this.#streams = Array.from({ length: layouts.groups }, () => new MemoryStream(faults, layouts, recordBytesMax, bytesMax));
  }

  /** The stream with the records of a task. */
  of(taskId: string): MemoryStream {
    return this.#ofShard(this.#layouts.shardOf(taskId));
  }

  ofGroup(group: number): MemoryStream {
    const stream = this.#streams[group];
    if (stream === undefined)
      throw new RangeError(`the log has ${this.#streams.length} stream groups, and none has number ${group}`);
    return stream;
  }

  /** Removes the records of a task, and returns their number. */
  erase(taskId: string): number {
    const count = this.ofTask(taskId, 0).length;
    this.of(taskId).expire(taskId, Number.POSITIVE_INFINITY);
    return count;
  }

  write(taskId: string, value: unknown, options: WriteOptions): ReturnType<MemoryStream['write']> {
    return this.of(taskId).write(taskId, value, options);
  }

  last(taskId: string): StoredText | undefined {
    return this.of(taskId).last(taskId);
  }

  ofTask(taskId: string, from: number): StoredText[] {
    return this.of(taskId).ofTask(taskId, from);
  }

  nextOfShard(shard: number, from: number): StoredText | undefined {
    return this.#ofShard(shard).nextOfShard(shard, from);
  }

  ofShard(shard: number, start: ReadStart): StoredText[] {
    return this.#ofShard(shard).ofShard(shard, start);
  }

  /** Called for each record of any group. */
  listen(listener: (stored: StoredText, last: number) => void): () => void {
    const unlisten = this.#streams.map(stream => stream.listen(listener));
    return () => {
      for (const end of unlisten) end();
    };
  }

  get extent(): LogExtent {
    return toLogExtent(
      this.#streams.map(stream => stream.extent),
      this.#layouts,
    );
  }

  expireAll(below: number): void {
    for (const stream of this.#streams) stream.expireAll(below);
  }

  rebuild(firstSeq: number): void {
    for (const stream of this.#streams) stream.rebuild(firstSeq);
  }

  #ofShard(shard: number): MemoryStream {
    return this.#streams[this.#layouts.groupOf(shard)]!;
  }
}
