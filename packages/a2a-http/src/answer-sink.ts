import type { ServerResponse } from 'node:http';
import type { A2AError } from '@hopline/a2a';
import { type EventSink, type NewestEvent, onResponseClose } from '@hopline/a2a-server';
import { ItemSink, type SinkItem } from './item-sink.ts';

/** Reads the stream of a task for a response that is not a stream. */
export type StreamReader = {
  /** `isNewest` is false while more stored events follow. Returns true when the response is complete. */
  add(item: SinkItem, isNewest: boolean): boolean;
  /** Called before the first item, with the end that the task has now. Returns true when the response is complete. */
  begin?(tail: NewestEvent): boolean;
  /** Called after the items that were stored together. Returns true when the response is complete. */
  flush?(): boolean;
};

/** How the reading ended. `left`: the client has disconnected. */
type ReadEnd = 'read' | 'drain' | 'left' | A2AError;

/** Passes the stream of a task to a reader. The caller sends the response when `ended` resolves. */
export class AnswerSink extends ItemSink implements EventSink {
  readonly #response: ServerResponse;
  readonly #reader: StreamReader;
  readonly #ended = Promise.withResolvers<ReadEnd>();
  readonly #timer: NodeJS.Timeout | undefined;
  #isDone = false;
  readonly backlog = 0;
  readonly written = 0;

  /** `waitMs`: how long to read at most. Absent: until the response is complete. */
  constructor(response: ServerResponse, reader: StreamReader, waitMs?: number) {
    super();
    if (waitMs !== undefined) this.#timer = setTimeout(() => this.#end('read'), waitMs);
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

  override follows(tail: NewestEvent): void {
    super.follows(tail);
    if (this.#reader.begin?.(tail) === true) this.#end('read');
  }

  flush(): void {
    if (!this.#isDone && this.#reader.flush?.() === true) this.#end('read');
  }

  async flushAll(): Promise<boolean> {
    this.flush();
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

  protected add(item: SinkItem, isNewest: boolean): void {
    if (!this.#isDone && this.#reader.add(item, isNewest)) this.#end('read');
  }

  #end(end: ReadEnd): void {
    this.#isDone = true;
    clearTimeout(this.#timer);
    this.#ended.resolve(end);
  }
}
