import { A2AError, isTerminal } from '@hopline/a2a/client';
import { type ClientView, type ViewChange, ViewFold, type ViewItem } from '@hopline/task-view';
import type { Notice } from './notice.ts';
import { notify } from './notify.ts';
import { onReturn } from './page-events.ts';
import { isTransient, Reopening } from './reopening.ts';
import { BEGINNING } from './stream-position.ts';
import type { TaskClient, TaskSnapshot } from './task-client.ts';
import { tasksWithoutStream } from './watch.ts';

/** A task as a component shows it. Values are immutable. */
export type TaskStoreValue = {
  view: ClientView;
  /**
   * `loading`: no event has arrived. `open`: the task may still change. `reconnecting`: the server cannot be reached, and the store tries again by
   * itself. `failed`: the server refuses the stream; `retry` tries again.
   */
  status: 'loading' | 'open' | 'reconnecting' | 'ended' | 'failed';
  /** Why the status is `reconnecting` or `failed`. */
  error: unknown;
};

/** A store of Svelte's contract. It follows the task while it has subscribers. */
export type TaskStore = {
  /** Calls `run` at once, and after each change. Returns the function that ends the subscription. */
  subscribe(run: (value: TaskStoreValue) => void): () => void;
  /** The value that the subscribers have. */
  get(): TaskStoreValue;
  /** Opens the stream of a task that is `reconnecting` or `failed` at once. */
  retry(): void;
};

/** The state of a task that a page has before its store reads it. */
export type TaskStoreOptions = {
  /** From `client.snapshot`, in general made by the server that rendered the page. The store shows it at once, and continues after it. */
  initial?: TaskSnapshot | undefined;
};

/**
 * Minimum interval of two changes, because the stored events of a long task arrive at once. A screen has 60 frames a second. The store uses a timer, because
 * a page may take longer than this to render a change: events that arrive in the meantime become one change, and the browser can run between two changes.
 */
const CHANGE_MS_MIN = 16;

/** Failed tries of the client after which a store shows that it reconnects: shorter interruptions, such as a rollout, would only flicker. */
const SHOWN_TRIES = 3;

type StreamingClient = Pick<TaskClient, 'subscribe' | 'get'>;

/** Follows a task for the components of a page. After its last subscriber has left, a later one continues at the cursor. */
export function taskStore(client: StreamingClient, taskId: string, options: TaskStoreOptions = {}): TaskStore {
  return followTask(client, taskId, options);
}

/** `onItem` receives each item with its changes, including those that no value shows because a later one followed within 16 ms. */
export function followTask(
  client: StreamingClient,
  taskId: string,
  { initial }: TaskStoreOptions,
  onItem: (item: ViewItem, changes: readonly ViewChange[], fold: ViewFold) => void = () => {},
): TaskStore {
  const fold = new ViewFold();
  const runs = new Set<(value: TaskStoreValue) => void>();
  let hasEnded = false;
  /** The server has refused the cursor, and no event with another one has arrived. */
  let isCursorLost = false;
  if (initial !== undefined) add(initial);
  let value = valueNow();
  let reading: AbortController | undefined;
  /** The server has asked the reading client to wait. */
  let isAsked = false;
  /** Runs for CHANGE_MS_MIN after each change. */
  let timer: ReturnType<typeof setTimeout> | undefined;
  /** A change waits for the timer. */
  let isDue = false;
  let leavePage: (() => void) | undefined;
  const reopening = new Reopening(open);

  function add(item: ViewItem): boolean {
    const changes = fold.add(item);
    const { event, cursor } = 'event' in item ? item : {};
    if (cursor !== undefined) isCursorLost = false;
    if (event !== undefined && ('message' in event || isTerminal(fold.view.state))) hasEnded = true;
    onItem(item, changes, fold);
    return changes.length > 0;
  }

  function statusNow(): TaskStoreValue['status'] {
    if (hasEnded) return 'ended';
    return fold.view.taskId === undefined ? 'loading' : 'open';
  }

  function valueNow(): TaskStoreValue {
    return { view: fold.view, status: statusNow(), error: undefined };
  }

  function publish(next: TaskStoreValue): void {
    clearTimeout(timer);
    isDue = false;
    timer = setTimeout(() => {
      timer = undefined;
      if (isDue) publish(valueNow());
    }, CHANGE_MS_MIN);
    value = next;
    notify(runs, value);
  }

  function changed(): void {
    if (timer === undefined) publish(valueNow());
    else isDue = true;
  }

  async function read(signal: AbortSignal): Promise<void> {
    const { cursor, taskId: known } = fold.view;
    // A server without cursors sends the current task at the head of each stream.
    const from = isCursorLost ? undefined : (cursor ?? (known === undefined ? BEGINNING : undefined));
    const onNotice = (notice: Notice) => {
      if (signal.aborted) return;
      if (notice.kind === 'opened') {
        reopening.succeeded();
        if (value.status === 'reconnecting') publish(valueNow());
      } else if (notice.kind === 'retry' && notice.tries >= SHOWN_TRIES) {
        const { error } = notice;
        isAsked = error.retryAfterMs !== undefined;
        publish({ view: fold.view, status: 'reconnecting', error });
      }
    };
    try {
      const items = client.subscribe(taskId, { signal, onNotice, ...(from !== undefined && { cursor: from }) });
      for await (const item of tasksWithoutStream(items, () => client.get(taskId, { signal }))) if (add(item)) changed();
      hasEnded = true;
      publish({ view: fold.view, status: 'ended', error: undefined });
    } catch (error) {
      if (signal.aborted) return;
      if (cursor !== undefined && from === cursor && error instanceof A2AError && error.code === 'INVALID_PARAMS') {
        // The cursor was one of the server's own, and an earlier state of its log was restored since.
        isCursorLost = true;
        add({ gap: 'unknown' });
        return read(signal);
      }
      const isReconnecting = isTransient(error);
      if (isReconnecting) reopening.failed(error);
      publish({ view: fold.view, status: isReconnecting ? 'reconnecting' : 'failed', error });
    }
  }

  function open(): void {
    if (reading !== undefined || hasEnded || runs.size === 0) return;
    reopening.stop();
    // A stream that was refused is opened again.
    if (value.status === 'failed') value = valueNow();
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
    reopening.stop();
    leavePage?.();
    leavePage = undefined;
    clearTimeout(timer);
    timer = undefined;
    // A later subscriber has it at once: the stream continues after it.
    if (isDue) value = valueNow();
    isDue = false;
  }

  /** Opens the stream at once, even while the client waits before its next try. */
  function reopen(): void {
    if (value.status === 'reconnecting') {
      reading?.abort(new DOMException('the store tries at once', 'AbortError'));
      reading = undefined;
    }
    open();
  }

  /** Only a broken connection is tried when the user returns: an error that needs the user would come again. */
  function returned(): void {
    if (value.status !== 'reconnecting') return;
    if (reading === undefined) reopening.returned();
    else if (!isAsked) reopen();
  }

  return {
    subscribe(run) {
      // A function of its own, because a component may subscribe the same one twice.
      const listener = (next: TaskStoreValue) => run(next);
      runs.add(listener);
      leavePage ??= onReturn(returned);
      open();
      notify([listener], value);
      return () => {
        runs.delete(listener);
        // React's strict mode subscribes again in the same turn of the event loop.
        setTimeout(close);
      };
    },
    get: () => value,
    retry() {
      const before = value;
      reopen();
      if (value !== before) publish(value);
    },
  };
}
