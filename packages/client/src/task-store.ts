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
  const fold = new ViewFold();
  const runs = new Set<(value: TaskStoreValue) => void>();
  let hasEnded = false;
  if (initial !== undefined) add(initial);
  let value: TaskStoreValue = { view: fold.view, status: statusNow(), error: undefined };
  let reading: AbortController | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let changedAtMs = Number.NEGATIVE_INFINITY;

  function add(item: Parameters<ViewFold['add']>[0]): boolean {
    const changes = fold.add(item);
    const { event } = 'event' in item ? item : {};
    if (event !== undefined && ('message' in event || isTerminal(fold.view.state))) hasEnded = true;
    return changes.length > 0;
  }

  function statusNow(): TaskStoreValue['status'] {
    if (hasEnded) return 'ended';
    return fold.view.taskId === undefined ? 'loading' : 'open';
  }

  function publish(next: TaskStoreValue): void {
    clearTimeout(timer);
    timer = undefined;
    changedAtMs = performance.now();
    value = next;
    for (const run of [...runs]) run(value);
  }

  function changed(): void {
    if (timer !== undefined) return;
    const waitMs = changedAtMs + CHANGE_MS_MIN - performance.now();
    const show = () => publish({ view: fold.view, status: statusNow(), error: undefined });
    if (waitMs <= 0) show();
    else timer = setTimeout(show, waitMs);
  }

  async function read(signal: AbortSignal): Promise<void> {
    const { cursor, taskId: known } = fold.view;
    // A server without cursors sends the current task at the head of each stream.
    const from = cursor ?? (known === undefined ? BEGINNING : undefined);
    try {
      const items = client.subscribe(taskId, { signal, ...(from !== undefined && { cursor: from }) });
      for await (const item of tasksWithoutStream(items, () => client.get(taskId, { signal }))) if (add(item)) changed();
      hasEnded = true;
      publish({ view: fold.view, status: 'ended', error: undefined });
    } catch (error) {
      if (!signal.aborted) publish({ view: fold.view, status: 'failed', error });
    }
  }

  function open(): void {
    if (reading !== undefined || hasEnded) return;
    // A stream that broke for good is opened again.
    if (value.status === 'failed') value = { view: fold.view, status: statusNow(), error: undefined };
    const opened = new AbortController();
    reading = opened;
    void read(opened.signal).finally(() => {
      if (reading === opened) reading = undefined;
    });
  }

  function close(): void {
    if (runs.size > 0) return;
    reading?.abort(new DOMException('the store has no subscribers', 'AbortError'));
    reading = undefined;
    clearTimeout(timer);
    timer = undefined;
  }

  return {
    subscribe(run) {
      // A function of its own, because a component may subscribe the same one twice.
      const own = (next: TaskStoreValue) => run(next);
      runs.add(own);
      open();
      run(value);
      return () => {
        runs.delete(own);
        // React's strict mode subscribes again in the same turn of the event loop.
        setTimeout(close);
      };
    },
    get: () => value,
  };
}
