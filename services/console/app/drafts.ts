import { useState } from 'preact/hooks';
import { route } from './routes.ts';

/**
 * Typed texts that were not sent, by the path of their page. A page is made again after a sign-in, in particular when the credentials expired with the
 * message that was sent, and when its reader returns to it.
 */
const drafts = new Map<string, string>();

/** Called at the end of a session, because the next user of the page must not see the drafts. */
export function forgetDrafts(): void {
  drafts.clear();
}

type Draft = {
  text: string;
  change: (text: string) => void;
  /** Empties the field, unless its text has changed since. */
  sent: (text: string) => void;
};

export function useDraft(): Draft {
  const [path] = useState(() => route().pathname);
  const [text, setText] = useState(() => drafts.get(path) ?? '');
  const change = (next: string) => {
    if (next === '') drafts.delete(path);
    else drafts.set(path, next);
    setText(next);
  };
  return { text, change, sent: was => drafts.get(path) === was && change('') };
}
