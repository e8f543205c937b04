import type { ComponentChildren } from 'preact';
import { useMemo, useRef } from 'preact/hooks';
import { CopyButton } from '../copy-button.tsx';
import { memo } from '../memo.ts';
import { visibleText } from '../plain-text.ts';
import type { MarkdownBlock } from './blocks.ts';
import { MarkdownDocument } from './document.ts';
import { type Inline, inlinesOf } from './inlines.ts';

/** Text of an agent as Markdown. It becomes elements of this file only, never markup of its own. */
export function Markdown({ segments }: { segments: readonly string[] }) {
  const parsed = useRef<MarkdownDocument>(undefined);
  parsed.current ??= new MarkdownDocument();
  return (
    <div class="markdown">
      {parsed.current.groups(segments).map((blocks, index) => (
        <Group key={index} blocks={blocks} />
      ))}
    </div>
  );
}

const Group = memo(({ blocks }: { blocks: readonly MarkdownBlock[] }) => (
  <div class="markdown-group">
    <Blocks blocks={blocks} />
  </div>
));

function Blocks({ blocks }: { blocks: readonly MarkdownBlock[] }) {
  return (
    <>
      {blocks.map((block, index) => (
        <BlockView key={index} block={block} />
      ))}
    </>
  );
}

function BlockView({ block }: { block: MarkdownBlock }) {
  switch (block.kind) {
    case 'heading': {
      // All headings are one level below that of the task, because agents begin with any level and skip some, which would break the outline
      // of the page.
      return (
        <h2 class={`markdown-h${block.level}`} dir="auto">
          <Inlines text={block.text} />
        </h2>
      );
    }
    case 'code':
      return <Code language={block.language} segments={block.segments} />;
    case 'list': {
      const items = block.items.map(({ checked, blocks }, index) => (
        <li key={index} class={checked === undefined ? '' : 'markdown-task'} dir="auto">
          {checked !== undefined && (
            <span role="img" aria-label={checked ? 'done' : 'to do'}>
              {checked ? '☑' : '☐'}
            </span>
          )}
          <Blocks blocks={blocks} />
        </li>
      ));
      return block.start === undefined ? <ul>{items}</ul> : <ol start={block.start}>{items}</ol>;
    }
    case 'quote':
      return (
        <blockquote>
          <Blocks blocks={block.blocks} />
        </blockquote>
      );
    case 'table':
      return <Table block={block} />;
    case 'rule':
      return <hr />;
    default:
      return (
        <p dir="auto">
          <Inlines text={block.text} />
        </p>
      );
  }
}

function Table({ block: { aligns, head, rows } }: { block: MarkdownBlock & { kind: 'table' } }) {
  const align = (index: number) => (aligns[index] === undefined ? '' : `align-${aligns[index]}`);
  return (
    // A wide table also scrolls with keys.
    <div class="markdown-table" tabIndex={0} role="group" aria-label="Table">
      <table>
        <thead>
          <tr>
            {head.map((cell, index) => (
              <th key={index} class={align(index)} dir="auto">
                <Inlines text={cell} />
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((cells, row) => (
            <tr key={row}>
              {cells.map((cell, index) => (
                <td key={index} class={align(index)} dir="auto">
                  <Inlines text={cell} />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Code({ language, segments }: { language: string; segments: readonly string[] }) {
  return (
    <figure class="code">
      <figcaption>
        <span class="muted">{visibleText(language)}</span>
        <CopyButton text={() => segments.join('')} label="Copy the code" />
      </figcaption>
      {/* Wide code also scrolls with keys. */}
      <pre tabIndex={0}>
        <code>
          {segments.map((segment, index) => (
            <CodeSegment key={index} text={segment} />
          ))}
        </code>
      </pre>
    </figure>
  );
}

const CodeSegment = memo(({ text }: { text: string }) => <span>{visibleText(text)}</span>);

const Inlines = memo(({ text }: { text: string }) => {
  const inlines = useMemo(() => inlinesOf(text), [text]);
  return <>{inlines.map(inlineView)}</>;
});

function inlineView(inline: Inline, key: number): ComponentChildren {
  switch (inline.kind) {
    case 'text':
      return visibleText(inline.text);
    case 'code':
      return <code key={key}>{visibleText(inline.text)}</code>;
    case 'link':
      return (
        // The address is shown, because the text of a link is the agent's.
        <a key={key} href={inline.href} title={visibleText(inline.href)} target="_blank" rel="noreferrer noopener nofollow">
          {inline.children.map(inlineView)}
        </a>
      );
    case 'strong':
      return <strong key={key}>{inline.children.map(inlineView)}</strong>;
    case 'emphasis':
      return <em key={key}>{inline.children.map(inlineView)}</em>;
    default:
      return <del key={key}>{inline.children.map(inlineView)}</del>;
  }
}
