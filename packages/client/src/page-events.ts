/** The members of a page's window and document that stores use. Node has none of them. */
type Page = {
  addEventListener?: (type: string, run: () => void) => void;
  removeEventListener?: (type: string, run: () => void) => void;
};
type PageDocument = Page & { visibilityState?: string };

/**
 * Calls `run` when the user returns to the page, or the network to the browser: connections that broke in between are retried at once, and
 * changes made in other pages are read. Returns a function that ends this. Without a page it does nothing.
 */
export function onReturn(run: () => void): () => void {
  const page = globalThis as unknown as Page & { document?: PageDocument };
  const { document } = page;
  const shown = () => {
    if (document?.visibilityState !== 'hidden') run();
  };
  const listeners: [Page | undefined, string, () => void][] = [
    [page, 'online', run],
    [page, 'focus', run],
    [document, 'visibilitychange', shown],
  ];
  for (const [target, type, listener] of listeners) target?.addEventListener?.(type, listener);
  return () => {
    for (const [target, type, listener] of listeners) target?.removeEventListener?.(type, listener);
  };
}
