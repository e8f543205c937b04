import { useEffect, useRef } from 'preact/hooks';
import type { ArtifactBlock, Block, ConversationState } from './conversation.ts';
import { memo } from './memo.ts';
import { visibleText } from './plain-text.ts';
import { StatePill } from './state-pill.tsx';

/** Distance from the end at which new text still scrolls the view; pixels. */
const NEAR_END_PX = 80;

/** Text only: what an agent writes is never interpreted. */
export function ConversationView({ value, follows }: { value: ConversationState; follows: boolean }) {
  const scroller = useRef<HTMLDivElement>(null);
  const isNearEnd = useRef(true);
  const onScroll = ({ currentTarget }: UIEvent) => {
    const { scrollTop, scrollHeight, clientHeight } = currentTarget as HTMLElement;
    isNearEnd.current = scrollHeight - scrollTop - clientHeight < NEAR_END_PX;
  };
  useEffect(() => {
    const element = scroller.current!;
    if (follows && isNearEnd.current) element.scrollTop = element.scrollHeight;
  }, [value, follows]);
  return (
    <div
      class="conversation"
      ref={scroller}
      onScroll={onScroll}
      tabIndex={0}
      role="log"
      aria-live="off"
      aria-label="Conversation"
    >
      {value.blocks.length === 0 && <p class="muted">Nothing yet.</p>}
      {value.blocks.map(block => (
        <BlockView key={block.key} block={block} />
      ))}
    </div>
  );
}

const BlockView = memo(({ block }: { block: Block }) => {
  switch (block.kind) {
    case 'message':
      return (
        <article class={`block block-${block.role}`}>
          <header class="block-head">{block.role === 'user' ? 'Client' : 'Agent'}</header>
          <Text segments={block.segments} />
        </article>
      );
    case 'state':
      return (
        <div class="block-state">
          <StatePill state={block.state} />
          {block.segments.length > 0 && <Text segments={block.segments} />}
        </div>
      );
    case 'gap':
      return <p class="notice">Events before this have expired; what follows contains their effect.</p>;
    default:
      return <ArtifactView block={block} />;
  }
});

function ArtifactView({ block }: { block: ArtifactBlock }) {
  const name = visibleText(block.name);
  if (/^tool_notification/.test(block.name)) {
    return (
      <p class="block-tool">
        <Text segments={block.segments} />
      </p>
    );
  }
  const head = (
    <>
      {block.agent !== undefined && <bdi class="block-agent">{visibleText(block.agent)}</bdi>}
      <bdi class="muted">{name}</bdi>
      {!block.isClosed && <span class="block-open" title="not complete yet" />}
    </>
  );
  // A whole answer repeats what was streamed.
  if (/^(final|partial)_result$/.test(block.name)) {
    return (
      <details class="block block-artifact">
        <summary class="block-head">
          {head}
          <span class="muted">{block.characters.toLocaleString('en')} characters</span>
        </summary>
        <Text segments={block.segments} />
      </details>
    );
  }
  return (
    <article class="block block-artifact">
      <header class="block-head">{head}</header>
      <Text segments={block.segments} />
    </article>
  );
}

/** The direction of each segment is that of its own first letters, so that one cannot reorder another. */
export function Text({ segments }: { segments: readonly string[] }) {
  return (
    <span class="text">
      {segments.map((segment, index) => (
        <Segment key={index} text={segment} isLast={index === segments.length - 1} />
      ))}
    </span>
  );
}

const Segment = memo(({ text, isLast }: { text: string; isLast: boolean }) => (
  <span class="segment" dir="auto">
    {/* The end of a segment that is a block is a line end already. */}
    {visibleText(isLast ? text : text.replace(/\n$/, ''))}
  </span>
));
