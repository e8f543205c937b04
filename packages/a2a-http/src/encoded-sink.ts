import type { A2AError } from '@hopline/a2a';
import type { EventSink, NewestEvent } from '@hopline/a2a-server';
import { ItemSink, type SinkItem } from './item-sink.ts';
import type { SseSink } from './sse-sink.ts';

/** How another protocol encodes the stream of a task. Each method returns whole SSE frames. */
export type FrameEncoder = {
  /** The protocol's stream has ended, although events of the task may follow. */
  readonly ended: boolean;
  /** `isNewest` is false while more events follow that were stored before the stream began. */
  add(item: SinkItem, isNewest: boolean): string;
  /** Called before the first item, with the end that the task has now. */
  begin?(tail: NewestEvent): string;
  /** True if clients connect again after a stream that ends without the protocol's own end, so that a draining server may end it. */
  readonly resumes?: true;
  end(): string;
  fail(error: A2AError): string;
};

/** The stream of a task in another protocol. */
export class EncodedSink extends ItemSink implements EventSink {
  readonly #sse: SseSink;
  readonly #encoder: FrameEncoder;

  constructor(sse: SseSink, encoder: FrameEncoder) {
    super();
    this.#sse = sse;
    this.#encoder = encoder;
  }

  get closed(): boolean {
    return this.#sse.closed;
  }

  get backlog(): number {
    return this.#sse.backlog;
  }

  get written(): number {
    return this.#sse.written;
  }

  open(): void {
    this.#sse.open();
  }

  override follows(tail: NewestEvent): void {
    super.follows(tail);
    this.#sse.addFrames(this.#encoder.begin?.(tail) ?? '');
  }

  flush(): void {
    if (this.#encoder.ended) this.end();
    else this.#sse.flush();
  }

  async flushAll(stallMs: number): Promise<boolean> {
    const isWritten = await this.#sse.flushAll(stallMs);
    if (isWritten && this.#encoder.ended) this.end();
    return isWritten;
  }

  end(): void {
    this.#sse.addFrames(this.#encoder.end());
    this.#sse.end();
  }

  fail(error: A2AError): void {
    this.#sse.addFrames(this.#encoder.fail(error));
    this.#sse.end();
  }

  /** A stream that ends looks complete to clients of most other protocols, so the connection is broken instead. */
  drain(): void {
    if (this.#encoder.resumes) this.#sse.end();
    else this.#sse.cut();
  }

  cut(): void {
    this.#sse.cut();
  }

  keepAlive(): void {
    this.#sse.keepAlive();
  }

  onClose(listener: () => void): void {
    this.#sse.onClose(listener);
  }

  protected add(item: SinkItem, isNewest: boolean): void {
    if (!this.#encoder.ended) this.#sse.addFrames(this.#encoder.add(item, isNewest));
  }
}
