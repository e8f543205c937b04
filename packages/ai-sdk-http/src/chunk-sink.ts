import { type A2AError, sseFrame, type Task } from '@hopline/a2a';
import type { SseSink } from '@hopline/a2a-http/front';
import type { ArtifactIndex, EventSink, Gap, VisibleEntry } from '@hopline/a2a-server';
import { eventOf } from '@hopline/events';
import { type ShownTurn, TurnEncoder, type UiChunk } from '@hopline/ui-message-stream';

/** The last frame of a UI message stream. */
const DONE = sseFrame({ data: '[DONE]' });

/** The stream of a task as a UI message stream of one turn. */
export class ChunkSink implements EventSink {
  readonly #sse: SseSink;
  readonly #turn: TurnEncoder;

  constructor(sse: SseSink, turn: ShownTurn) {
    this.#sse = sse;
    this.#turn = new TurnEncoder(turn);
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

  addEvent(entry: VisibleEntry, _artifactIndex: ArtifactIndex): void {
    this.#write(this.#turn.add({ event: eventOf(entry.fact) }));
  }

  addSnapshot(task: Task, _cursor: string, _generation: number): void {
    this.#write(this.#turn.add({ event: { task } }));
  }

  addGap(missing: Gap): void {
    this.#write(this.#turn.add({ gap: missing }));
  }

  flush(): void {
    if (this.#turn.ended) this.end();
    else this.#sse.flush();
  }

  async flushAll(stallMs: number): Promise<boolean> {
    const isWritten = await this.#sse.flushAll(stallMs);
    if (isWritten && this.#turn.ended) this.end();
    return isWritten;
  }

  end(): void {
    this.#sse.addFrames(DONE);
    this.#sse.end();
  }

  fail(error: A2AError): void {
    this.#write([{ type: 'error', errorText: error.message }]);
    this.end();
  }

  /** The protocol has no request to reconnect: clients resume a connection that breaks, and take one that ends for a whole answer. */
  drain(): void {
    this.#sse.cut();
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

  #write(chunks: readonly UiChunk[]): void {
    let frames = '';
    for (const chunk of chunks) frames += sseFrame({ data: JSON.stringify(chunk) });
    this.#sse.addFrames(frames);
  }
}
