import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import type { ArtifactBlock, Block, ConversationState } from './conversation.ts';
import { CopyButton } from './copy-button.tsx';
import { Markdown } from './markdown/markdown-view.tsx';
import { memo } from './memo.ts';
import { visibleText } from './plain-text.ts';
import { StatePill } from './state-pill.tsx';

/** Distance in pixels from the end within which new text still scrolls the view. */
const NEAR_END_PX = 80;

type Props = {
  value: ConversationState;
  follows: boolean;
  /** Shows the text of agents as it was written, instead of as Markdown. */
  showsSource: boolean;
};

/** The text of agents is shown as a safe subset of Markdown, or as it was written. It never becomes markup. */
export function ConversationView({ value, follows, showsSource }: Props) {
  const scroller = useRef<HTMLDivElement>(null);
  const isNearEnd = useRef(true);
  // Uses the element of the event, because a last scroll event may arrive after the page has gone.
  const onScroll = ({ currentTarget }: { currentTarget: HTMLElement }) => {
    const { scrollTop, scrollHeight, clientHeight } = currentTarget;
    isNearEnd.current = scrollHeight - scrollTop - clientHeight < NEAR_END_PX;
  };
  // Text that was opened for reading stays in place.
  const onClick = ({ target }: MouseEvent) => {
    if ((target as Element).closest('summary') !== null) isNearEnd.current = false;
  };
  const isFollowing = useRef(follows);
  isFollowing.current = follows;
  const scrollToEnd = () => {
    const element = scroller.current!;
    if (isFollowing.current && isNearEnd.current) element.scrollTop = element.scrollHeight;
  };
  useEffect(scrollToEnd, [value, follows]);
  // Runs before the element is removed; an effect would run later.
  useLayoutEffect(() => {
    // Text is measured when it comes into view. On a narrow screen the view itself may be hidden.
    const observer = new ResizeObserver(scrollToEnd);
    observer.observe(scroller.current!);
    observer.observe(scroller.current!.firstElementChild!);
    return () => observer.disconnect();
  }, []);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: a key that opens a part clicks its summary as well.
    <div
      class="conversation"
      ref={scroller}
      onScroll={onScroll}
      onClick={onClick}
      tabIndex={0}
      role="log"
      aria-live="off"
      aria-label="Conversation"
    >
      <div>
        {value.blocks.length === 0 && <p class="muted">Nothing yet.</p>}
        {value.blocks.map(block => (
          <BlockView key={block.key} block={block} showsSource={showsSource} />
        ))}
      </div>
    </div>
  );
}

type BlockProps<B> = { block: B; showsSource: boolean };

const BlockView = memo(({ block, showsSource }: BlockProps<Block>) => {
  switch (block.kind) {
    case 'message':
      return (
        <article class={`block block-${block.role}`}>
          <header class="block-head">{block.role === 'user' ? 'Client' : 'Agent'}</header>
          <AgentText segments={block.segments} isSource={showsSource || block.role === 'user'} />
        </article>
      );
    case 'state':
      return (
        <div class="block-state">
          <StatePill state={block.state} />
          {block.segments.length > 0 && <AgentText segments={block.segments} isSource={showsSource} />}
        </div>
      );
    case 'gap':
      return <p class="notice">Earlier events have expired; the events below include their effect.</p>;
    default:
      return <ArtifactView block={block} showsSource={showsSource} />;
  }
});

function AgentText({ segments, isSource }: { segments: readonly string[]; isSource: boolean }) {
  return isSource ? <Text segments={segments} /> : <Markdown segments={segments} />;
}

function ArtifactView({ block, showsSource }: BlockProps<ArtifactBlock>) {
  const name = visibleText(block.name);
  if (block.role === 'call-start' || block.role === 'call-end') {
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
  // A whole answer repeats the streamed text.
  if (block.role === 'result') {
    return (
      <details class="block block-artifact">
        <summary class="block-head">
          {head}
          <span class="muted">{block.characters.toLocaleString('en')} characters</span>
        </summary>
        <AgentText segments={block.segments} isSource={showsSource} />
      </details>
    );
  }
  const isPlan = block.role === 'plan';
  return (
    <article class={`block block-artifact ${isPlan ? 'block-plan' : ''}`}>
      <header class="block-head">
        {head}
        <CopyButton text={() => block.segments.join('')} label="Copy this text as it was written" />
      </header>
      <AgentText segments={isPlan && !showsSource ? withoutBrackets(block.segments) : block.segments} isSource={showsSource} />
    </article>
  );
}

/** A plan without the brackets that enclose it for programs. */
function withoutBrackets(segments: readonly string[]): readonly string[] {
  const inner = segments.map((segment, index) => {
    const begun = index === 0 ? segment.replace(/^⟦/, '') : segment;
    return index === segments.length - 1 ? begun.replace(/⟧\s*$/, '') : begun;
  });
  return inner;
}

/** Each segment's own first letters determine its direction, so that it cannot reorder another segment. */
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
    {/* A segment that is a block already ends its line. */}
    {visibleText(isLast ? text : text.replace(/\n$/, ''))}
  </span>
));
