import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';

type Props = { label: string; text?: string; onOpen?: () => void; children: ComponentChildren };

/** A button that opens a list. A choice, a click elsewhere and Escape close it. */
export function Menu({ label, text = '', onOpen = () => {}, children }: Props) {
  const details = useRef<HTMLDetailsElement>(null);
  const close = () => details.current?.removeAttribute('open');
  useEffect(() => {
    const onPointer = ({ target }: Event) => {
      if (!details.current?.contains(target as Node)) close();
    };
    const onKey = ({ key }: KeyboardEvent) => {
      if (key !== 'Escape' || details.current?.open !== true) return;
      close();
      details.current.querySelector('summary')?.focus();
    };
    addEventListener('pointerdown', onPointer);
    addEventListener('keydown', onKey);
    return () => {
      removeEventListener('pointerdown', onPointer);
      removeEventListener('keydown', onKey);
    };
  }, []);
  return (
    <details
      class="menu"
      ref={details}
      onToggle={({ currentTarget }) => {
        if (currentTarget.open) onOpen();
      }}
    >
      <summary class="button" {...(text === '' && { 'aria-label': label })} title={label}>
        {text}
        <span aria-hidden="true">▾</span>
      </summary>
      {/* biome-ignore lint/a11y/noStaticElementInteractions lint/a11y/useKeyWithClickEvents: its buttons have keys of their own. */}
      <div
        class="menu-list"
        onClick={({ target }) => {
          if ((target as Element).closest('button') !== null) close();
        }}
      >
        {children}
      </div>
    </details>
  );
}
