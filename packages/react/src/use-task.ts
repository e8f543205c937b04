import { type TaskClient, type TaskStoreOptions, type TaskStoreValue, taskStore } from '@hopline/client/tasks';
import { useMemo, useSyncExternalStore } from 'react';

/**
 * The task as a component shows it, while it runs and afterwards. With `initial` (from `client.snapshot` on the server) the first view is
 * rendered on the server, and the page continues after it.
 */
export function useTask(client: TaskClient, taskId: string, { initial }: TaskStoreOptions = {}): TaskStoreValue {
  // biome-ignore lint/correctness/useExhaustiveDependencies: `initial` is for the first view only; a later one must not open the stream again.
  const { store, first } = useMemo(() => {
    const made = taskStore(client, taskId, { initial });
    return { store: made, first: made.get() };
  }, [client, taskId]);
  return useSyncExternalStore(store.subscribe, store.get, () => first);
}
