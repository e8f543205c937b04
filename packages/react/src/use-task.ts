import { type TaskClient, type TaskStore, type TaskStoreOptions, type TaskStoreValue, taskStore } from '@hopline/client/tasks';
import { useMemo, useSyncExternalStore } from 'react';

/** The value of a task's store, and `retry`, which opens a stream that was refused. */
export type WatchedTask = TaskStoreValue & Pick<TaskStore, 'retry'>;

/**
 * The task as a component shows it, while it runs and afterwards. With `initial` (from `client.snapshot` on the server) the first view is
 * rendered on the server, and the page continues after it.
 */
export function useTask(client: TaskClient, taskId: string, { initial }: TaskStoreOptions = {}): WatchedTask {
  // biome-ignore lint/correctness/useExhaustiveDependencies: `initial` is for the first view only; a later one must not open the stream again.
  const { store, first } = useMemo(() => {
    const made = taskStore(client, taskId, { initial });
    return { store: made, first: made.get() };
  }, [client, taskId]);
  const value = useSyncExternalStore(store.subscribe, store.get, () => first);
  return { ...value, retry: store.retry };
}
