import type { ServerResponse } from 'node:http';
import type { A2AError, Task } from '@hopline/a2a';
import { type ArtifactIndex, type EventSink, type Gap, onResponseClose, type VisibleEntry } from '@hopline/a2a-server';
import { eventOf } from '@hopline/events';
import type { SinkItem } from './encoded-sink.ts';

/** Reads the stream of a task for a response that is not a stream. */
export type StreamReader = {
  /** `isNewest`: no stored event follows. Returns true when the response is complete. */
  add(item: SinkItem, isNewest: boolean): boolean;
};

/** How the reading ended. `left`: the client has disconnected. */
type ReadEnd = 'read' | 'drain' | 'left' | A2AError;

/** Passes the stream of a task to a reader. The caller sends the response when `ended` resolves. */
export class AnswerSink implements EventSink {
  readonly #response: ServerResponse;
  readonly #reader: StreamReader;
  readonly #ended = Promise.withResolvers<ReadEnd>();
  #storedTo = 0;
  #isDone = false;
  readonly backlog = 0;
  readonly written = 0;

  constructor(response: ServerResponse, reader: StreamReader) {
    this.#response = response;
    this.#reader = reader;
    onResponseClose(response, () => this.#end('left'));
  }

  get ended(): Promise<ReadEnd> {
    return this.#ended.promise;
  }

  get closed(): boolean {
    return this.#isDone || this.#response.destroyed;
  }

  open(): void {}

  follows(generation: number): void {
    this.#storedTo = generation;
  }

  addEvent(entry: VisibleEntry, _artifactIndex: ArtifactIndex): void {
    this.#add({ event: eventOf(entry.fact), cursor: entry.cursor }, entry.generation);
  }

  addSnapshot(task: Task, cursor: string, generation: number): void {
    this.#add({ event: { task }, cursor }, generation);
  }

  addGap(gap: Gap): void {
    this.#add({ gap }, 0);
  }

  flush(): void {}

  async flushAll(): Promise<boolean> {
    return !this.closed;
  }

  end(): void {
    this.#end('read');
  }

  fail(error: A2AError): void {
    this.#end(error);
  }

  drain(): void {
    this.#end('drain');
  }

  cut(): void {
    this.#response.destroy();
  }

  keepAlive(): void {}

  onClose(listener: () => void): void {
    onResponseClose(this.#response, listener);
  }

  #add(item: SinkItem, generation: number): void {
    if (!this.#isDone && this.#reader.add(item, generation >= this.#storedTo)) this.#end('read');
  }

  #end(end: ReadEnd): void {
    this.#isDone = true;
    this.#ended.resolve(end);
  }
}
