import { useState } from 'preact/hooks';

const SHOWN_MS = 1_500;

/** Copies a text to the clipboard. */
export function CopyButton({ text, label, children = 'Copy' }: { text: () => string; label: string; children?: string }) {
  const [outcome, setOutcome] = useState('');
  const copy = async () => {
    // Absent on a page without TLS, except on localhost.
    const done = await navigator.clipboard?.writeText(text()).then(
      () => true,
      () => false,
    );
    setOutcome(done === true ? 'Copied' : 'Not allowed');
    setTimeout(() => setOutcome(''), SHOWN_MS);
  };
  return (
    <button type="button" class="button button-quiet button-copy" aria-label={label} title={label} onClick={() => void copy()}>
      <span aria-live="polite">{outcome === '' ? children : outcome}</span>
    </button>
  );
}
