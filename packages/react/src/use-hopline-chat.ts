import { type ChatStore, type ChatStoreOptions, type ChatValue, chatStore, type TaskClient } from '@hopline/client/tasks';
import { useMemo, useSyncExternalStore } from 'react';

export type HoplineChat = ChatValue & Pick<ChatStore, 'contextId' | 'send' | 'stop' | 'retry'>;

/**
 * A chat with agents: messages, status, error, `send`, `stop`, `retry`. With the `contextId` of an earlier chat it shows that chat and continues an
 * answer that is on its way, even after the page was loaded again.
 */
export function useHoplineChat(client: TaskClient, { contextId, agent, initial }: ChatStoreOptions = {}): HoplineChat {
  // biome-ignore lint/correctness/useExhaustiveDependencies: `initial` is for the first view only; a later one must not open the stream again.
  const { store, first } = useMemo(() => {
    const made = chatStore(client, { contextId, agent, initial });
    return { store: made, first: made.get() };
  }, [client, contextId, agent]);
  const value = useSyncExternalStore(store.subscribe, store.get, () => first);
  return { ...value, contextId: store.contextId, send: store.send, stop: store.stop, retry: store.retry };
}
