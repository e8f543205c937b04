import { monotonicMs } from '../measure/clock.ts';
import { SseConnection } from './sse-connection.ts';

/** A browser waits at most this long before it reconnects, and again after each try that fails. */
const RETRY_MS_MAX = 500;

type Viewer = { url: string; taskId: string; cursor: string; events: number; isOpen: boolean; openedAtMs: number };

/** Clients that come back by themselves, each after its last event, when their connection breaks. */
export class ReturningViewers {
  readonly #viewers: Viewer[] = [];
  #waiting: (() => void) | undefined;

  /** Resolves when each has received an event. */
  async add({ url, taskId, count }: { url: string; taskId: string; count: number }): Promise<void> {
    for (let index = 0; index < count; index += 1) {
      const viewer = { url, taskId, cursor: '', events: 0, isOpen: false, openedAtMs: 0 };
      this.#viewers.push(viewer);
      this.#follow(viewer);
    }
    await this.#until(viewer => viewer.events > 0);
  }

  /** Resolves when all connections are open that were broken at or after `sinceMs`, with the time at which the last of them was opened again. */
  async returned(sinceMs: number): Promise<number> {
    await this.#until(viewer => viewer.isOpen && viewer.openedAtMs > sinceMs);
    return Math.max(...this.#viewers.map(({ openedAtMs }) => openedAtMs));
  }

  /** Resolves when each viewer has had this many events. Throws if one has had more. */
  async received(events: number): Promise<void> {
    await this.#until(viewer => viewer.events >= events);
    const wrong = this.#viewers.filter(viewer => viewer.events !== events).length;
    if (wrong > 0) throw new Error(`${wrong} viewers had events twice`);
  }

  #follow(viewer: Viewer): void {
    const { url, taskId, cursor } = viewer;
    const body = { jsonrpc: '2.0', id: 1, method: 'SubscribeToTask', params: { id: taskId } };
    const onOpen = () => {
      viewer.isOpen = true;
      viewer.openedAtMs = monotonicMs();
      this.#waiting?.();
    };
    const connection = new SseConnection({ url, body, onOpen, ...(cursor !== '' && { lastEventId: cursor }) }, frame => {
      const [, id] = /^id: (\S+)/.exec(frame) ?? [];
      if (id === undefined) return;
      viewer.cursor = id;
      viewer.events += 1;
      this.#waiting?.();
    });
    const again = () => {
      viewer.isOpen = false;
      setTimeout(() => this.#follow(viewer), Math.random() * RETRY_MS_MAX);
    };
    connection.ended.then(again, again);
  }

  async #until(isDone: (viewer: Viewer) => boolean): Promise<void> {
    let at = 0;
    const isOver = () => {
      while (at < this.#viewers.length && isDone(this.#viewers[at]!)) at += 1;
      return at === this.#viewers.length;
    };
    if (isOver()) return;
    await new Promise<void>(resolve => {
      this.#waiting = () => isOver() && resolve();
    });
    this.#waiting = undefined;
  }
}
