import { isTerminal } from '@hopline/a2a/client';
import { type ClientView, ViewFold } from '@hopline/task-view';
import { BEGINNING } from './stream-position.ts';
import type { TaskClient, TaskSnapshot } from './task-client.ts';
import { tasksWithoutStream } from './watch.ts';

/** A task as a component shows it. Values are immutable. */
export type TaskStoreValue = {
  view: ClientView;
  /** `loading`: no event has arrived. `open`: the task may still change. `failed`: `error` is why the stream broke for good. */
  status: 'loading' | 'open' | 'ended' | 'failed';
  error: unknown;
};

/** A store of Svelte's contract. It follows the task while it has subscribers. */
export type TaskStore = {
  /** Calls `run` at once, and after each change. Returns the function that ends the subscription. */
  subscribe(run: (value: TaskStoreValue) => void): () => void;
  /** The value that the subscribers have. */
  get(): TaskStoreValue;
};

/** The state of a task that a page has before its store reads it. */
export type TaskStoreOptions = {
  /** From `client.snapshot`, in general made by the server that rendered the page. The store shows it at once, and continues after it. */
  initial?: TaskSnapshot | undefined;
};

/** Minimum interval of two changes, because the stored events of a long task arrive at once. A screen has 60 frames a second. */
const CHANGE_MS_MIN = 16;

/** Follows a task for the components of a page. After its last subscriber has left, a later one continues at the cursor. */
export function taskStore(
  client: Pick<TaskClient, 'subscribe' | 'get'>,
  taskId: string,
  { initial }: TaskStoreOptions = {},
): TaskStore {
  return new FollowedTask(client, taskId, initial);
}

class FollowedTask implements TaskStore {
  readonly #client: Pick<TaskClient, 'subscribe' | 'get'>;
  readonly #taskId: string;
  readonly #fold = new ViewFold();
  readonly #listeners = new Set<(value: TaskStoreValue) => void>();
  #value: TaskStoreValue;
  #hasEnded = false;
  #reading: AbortController | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #changedAtMs = Number.NEGATIVE_INFINITY;

  constructor(client: Pick<TaskClient, 'subscribe' | 'get'>, taskId: string, initial: TaskSnapshot | undefined) {
    this.#client = client;
    this.#taskId = taskId;
    if (initial !== undefined) this.#add(initial);
    this.#value = this.#current();
  }

  // Arrow functions, because components pass members of a store on.
  readonly subscribe = (run: (value: TaskStoreValue) => void): (() => void) => {
    // A function of its own, because a component may subscribe the same one twice.
    const listener = (next: TaskStoreValue) => run(next);
    this.#listeners.add(listener);
    this.#open();
    run(this.#value);
    return () => {
      this.#listeners.delete(listener);
      // React's strict mode subscribes again in the same turn of the event loop.
      setTimeout(() => this.#close());
    };
  };

  readonly get = (): TaskStoreValue => this.#value;

  #current(): TaskStoreValue {
    const { view } = this.#fold;
    const status = this.#hasEnded ? 'ended' : view.taskId === undefined ? 'loading' : 'open';
    return { view, status, error: undefined };
  }

  #add(item: Parameters<ViewFold['add']>[0]): boolean {
    const changes = this.#fold.add(item);
    const { event } = 'event' in item ? item : {};
    if (event !== undefined && ('message' in event || isTerminal(this.#fold.view.state))) this.#hasEnded = true;
    return changes.length > 0;
  }

  #publish(next: TaskStoreValue): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#changedAtMs = performance.now();
    this.#value = next;
    for (const listener of [...this.#listeners]) listener(this.#value);
  }

  #changed(): void {
    if (this.#timer !== undefined) return;
    const waitMs = this.#changedAtMs + CHANGE_MS_MIN - performance.now();
    const show = () => this.#publish(this.#current());
    if (waitMs <= 0) show();
    else this.#timer = setTimeout(show, waitMs);
  }

  #open(): void {
    if (this.#reading !== undefined || this.#hasEnded) return;
    // A stream that broke for good is opened again.
    if (this.#value.status === 'failed') this.#value = this.#current();
    const opened = new AbortController();
    this.#reading = opened;
    void this.#read(opened.signal).finally(() => {
      if (this.#reading === opened) this.#reading = undefined;
    });
  }

  async #read(signal: AbortSignal): Promise<void> {
    const { cursor, taskId: known } = this.#fold.view;
    // A server without cursors sends the current task at the head of each stream.
    const from = cursor ?? (known === undefined ? BEGINNING : undefined);
    try {
      const items = this.#client.subscribe(this.#taskId, { signal, ...(from !== undefined && { cursor: from }) });
      for await (const item of tasksWithoutStream(items, () => this.#client.get(this.#taskId, { signal })))
        if (this.#add(item)) this.#changed();
      this.#hasEnded = true;
      this.#publish(this.#current());
    } catch (error) {
      if (!signal.aborted) this.#publish({ view: this.#fold.view, status: 'failed', error });
    }
  }

  #close(): void {
    if (this.#listeners.size > 0) return;
    this.#reading?.abort(new DOMException('the store has no subscribers', 'AbortError'));
    this.#reading = undefined;
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}
