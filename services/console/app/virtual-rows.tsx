import { elementScroll, observeElementOffset, observeElementRect, Virtualizer } from '@tanstack/virtual-core';
import type { ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useReducer, useRef, useState } from 'preact/hooks';

type Props = {
  count: number;
  rowHeight: number;
  row: (index: number) => ComponentChildren;
  keyOf: (index: number) => string | number;
  label: string;
  /** Scrolls this row into view when it changes. */
  focus?: number | undefined;
  onEnd?: () => void;
};

/** Rows of equal height. Only the visible ones exist. */
export function VirtualRows({ count, rowHeight, row, keyOf, label, focus, onEnd }: Props) {
  const scroller = useRef<HTMLDivElement>(null);
  const [, redraw] = useReducer((version: number) => version + 1, 0);
  const options = {
    count,
    observeElementRect,
    observeElementOffset,
    scrollToFn: elementScroll,
    overscan: 8,
    getScrollElement: () => scroller.current,
    estimateSize: () => rowHeight,
    onChange: () => redraw(undefined),
  };
  const [virtualizer] = useState(() => new Virtualizer<HTMLDivElement, HTMLDivElement>(options));
  virtualizer.setOptions({ ...virtualizer.options, ...options });
  useEffect(() => virtualizer._didMount(), [virtualizer]);
  useLayoutEffect(() => virtualizer._willUpdate());
  useEffect(() => {
    if (focus !== undefined && focus >= 0 && focus < count) virtualizer.scrollToIndex(focus, { align: 'auto' });
  }, [focus, count]);
  const items = virtualizer.getVirtualItems();
  const isAtEnd = count > 0 && (items.at(-1)?.index ?? -1) >= count - 1;
  useEffect(() => {
    if (isAtEnd) onEnd?.();
  }, [isAtEnd, count]);
  return (
    <div class="rows" ref={scroller} role="list" aria-label={label} tabIndex={0}>
      <div class="rows-all" style={{ height: `${virtualizer.getTotalSize()}px` }}>
        {items.map(({ index, start }) => (
          <div
            key={keyOf(index)}
            class="rows-one"
            role="listitem"
            aria-setsize={count}
            aria-posinset={index + 1}
            style={{ height: `${rowHeight}px`, transform: `translateY(${start}px)` }}
          >
            {row(index)}
          </div>
        ))}
      </div>
    </div>
  );
}
