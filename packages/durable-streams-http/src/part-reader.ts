import type { NewestEvent, SinkItem, StreamReader } from '@hopline/a2a-http/front';
import type { Cursor } from '@hopline/events';
import { positionAfter } from './offset.ts';
import { endsStream, messageOf } from './stream-message.ts';

/** UTF-8 bytes after which a response ends; the client asks for the rest at the next offset. */
export const PART_BYTES_MAX = 1024 * 1024;

type PartOptions = {
  /** At the tail it waits for the next messages. */
  waits: boolean;
  bytesMax?: number;
};

/** Reads the messages after a position: up to the tail that the stream has now, or at the tail the next ones. */
export class PartReader implements StreamReader {
  readonly messages: string[] = [];
  /** The position after the last message. */
  next: Cursor;
  /** The messages end at the tail. */
  isUpToDate = false;
  /** The messages end at the tail of a stream that has ended. */
  isClosed = false;
  /** The whole stream has ended, so that it never changes. */
  isFinal = false;
  /** Retention has removed messages after the position. */
  isGone = false;
  readonly #options: PartOptions;
  #isWaiting = false;
  #bytes = 0;

  constructor(after: Cursor, options: PartOptions) {
    this.next = after;
    this.#options = options;
  }

  begin({ generation, ended }: NewestEvent): boolean {
    this.isFinal = ended;
    if (this.next.generation < generation) return false;
    this.isUpToDate = true;
    this.isClosed = ended;
    this.#isWaiting = this.#options.waits && !ended;
    return !this.#isWaiting;
  }

  add(item: SinkItem, isNewest: boolean): boolean {
    if ('gap' in item) {
      this.isGone = true;
      return true;
    }
    this.next = positionAfter(item.cursor);
    const message = messageOf(item.event, this.next.generation);
    this.messages.push(message);
    this.#bytes += Buffer.byteLength(message);
    this.isUpToDate = isNewest;
    this.isClosed = endsStream(item.event);
    this.isFinal ||= this.isClosed;
    const { bytesMax = PART_BYTES_MAX } = this.#options;
    return this.isClosed || this.#bytes >= bytesMax || (isNewest && !this.#isWaiting);
  }

  /** Messages that arrive together are one part. */
  flush(): boolean {
    return this.#isWaiting && this.messages.length > 0;
  }
}

/** Reads only where the stream ends. */
export class TailReader implements StreamReader {
  tail: NewestEvent = { generation: 0, seq: 0, ended: false };

  begin(tail: NewestEvent): boolean {
    this.tail = tail;
    return true;
  }

  add(): boolean {
    return true;
  }
}
