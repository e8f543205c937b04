import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { cpuGrowth } from '../../../../test/support/cpu-growth.ts';
import { segmentsOf } from '../conversation.ts';
import { BLOCK_LINES_MAX, BlockReader, type MarkdownBlock } from './blocks.ts';
import { MarkdownDocument } from './document.ts';
import { type Inline, inlinesOf } from './inlines.ts';

const blocksOf = (text: string): MarkdownBlock[] => new MarkdownDocument().groups(segmentsOf(text)).flat();
const paragraph = (text: string): MarkdownBlock => ({ kind: 'paragraph', text });
const text = (value: string): Inline => ({ kind: 'text', text: value });

test('headings, paragraphs, rules and quotes are blocks; line ends within a paragraph are kept', () => {
  assert.deepEqual(blocksOf('# One #\ntwo  \nthree\n\n---\n> four\n> > five\nsix'), [
    { kind: 'heading', level: 1, text: 'One' },
    paragraph('two\nthree'),
    { kind: 'rule' },
    { kind: 'quote', blocks: [paragraph('four'), { kind: 'quote', blocks: [paragraph('five')] }] },
    paragraph('six'),
  ]);
  assert.deepEqual(blocksOf('#hashtag'), [paragraph('#hashtag')]);
});

test('code keeps every character, including blank lines and marks, until its own fence', () => {
  assert.deepEqual(blocksOf('```ts title\nconst a = `b`;\n\n~~~\n# no heading\n```\nafter'), [
    { kind: 'code', language: 'ts', segments: ['const a = `b`;\n\n~~~\n# no heading\n'] },
    paragraph('after'),
  ]);
  // An answer that is still streaming.
  assert.deepEqual(blocksOf('~~~~\na\n~~~'), [{ kind: 'code', language: '', segments: ['a\n~~~\n'] }]);
});

test('lists nest, have tasks and numbers, and continue after a blank line', () => {
  const one = (value: string, checked?: boolean) => ({ checked, blocks: [paragraph(value)] });
  assert.deepEqual(blocksOf('text\n- a\n  more\n  - [x] b\n  - [ ] c\n\n- d\n\nend'), [
    paragraph('text'),
    {
      kind: 'list',
      start: undefined,
      items: [
        {
          checked: undefined,
          blocks: [paragraph('a\nmore'), { kind: 'list', start: undefined, items: [one('b', true), one('c', false)] }],
        },
        one('d'),
      ],
    },
    paragraph('end'),
  ]);
  assert.deepEqual(blocksOf('3. x\n4) y\n- z'), [
    { kind: 'list', start: 3, items: [one('x'), one('y')] },
    { kind: 'list', start: undefined, items: [one('z')] },
  ]);
  // A year at the beginning of a line begins no list.
  assert.deepEqual(blocksOf('In the year\n1984. He wrote'), [paragraph('In the year\n1984. He wrote')]);
});

test('a table has a delimiter row with as many cells; code and escapes may contain a bar', () => {
  assert.deepEqual(blocksOf('before\n| a | `b|c` |\n|:--|--:|\n| x\\|y |\n| 1 | 2 | 3 |\nafter'), [
    paragraph('before'),
    {
      kind: 'table',
      aligns: ['left', 'right'],
      head: ['a', '`b|c`'],
      rows: [
        ['x|y', ''],
        ['1', '2'],
      ],
    },
    paragraph('after'),
  ]);
  assert.deepEqual(blocksOf('a | b\n--|--|--'), [paragraph('a | b\n--|--|--')]);
});

test('emphasis, code and links are inline; names with underscores and lone marks are text', () => {
  assert.deepEqual(inlinesOf('a **b *c*** `d*` ~~e~~'), [
    text('a '),
    { kind: 'strong', children: [text('b '), { kind: 'emphasis', children: [text('c')] }] },
    text(' '),
    { kind: 'code', text: 'd*' },
    text(' '),
    { kind: 'deleted', children: [text('e')] },
  ]);
  for (const plain of ['read_text_file and list_directory', '2 * 3 * 4', '** a **', 'a*', '`', '[x]', 'x](y)', '\u{1f44b} hi'])
    assert.deepEqual(inlinesOf(plain), [text(plain)], plain);
  assert.deepEqual(inlinesOf('\\*a\\* and ``a ` b``'), [text('*a* and '), { kind: 'code', text: 'a ` b' }]);
});

const hrefs = (value: string): string[] => {
  const of = (inlines: readonly Inline[]): string[] =>
    inlines.flatMap(inline =>
      inline.kind === 'link' ? [inline.href, ...of(inline.children)] : 'children' in inline ? of(inline.children) : [],
    );
  return of(inlinesOf(value));
};

test('a link leads only to http, https and mail addresses, and an image is never loaded', () => {
  assert.deepEqual(
    hrefs('[a](https://a.example/b_(c)) and **https://b.example/x_y_z**, <http://c.example/>. [m](mailto:a@b.example)'),
    ['https://a.example/b_(c)', 'https://b.example/x_y_z', 'http://c.example/', 'mailto:a@b.example'],
  );
  for (const bad of [
    'javascript:alert(1)',
    'data:text/html,x',
    '//a.example',
    '/tasks',
    'jAvAsCrIpT:x',
    'vbscript:x',
    'file:///etc',
    'http://',
  ])
    assert.deepEqual(hrefs(`[a](${bad}) <${bad}>`), [], bad);
  assert.deepEqual(inlinesOf('![alt](https://a.example/i.png)'), [
    { kind: 'link', href: 'https://a.example/i.png', children: [text('image: alt')] },
  ]);
  // A link in the text of another link would be a link within a link.
  assert.deepEqual(hrefs('[see https://b.example](https://a.example)'), ['https://a.example/']);
});

/** The text that a reader sees, without marks. */
function shownIn(blocks: readonly MarkdownBlock[]): string {
  const inline = (inlines: readonly Inline[]): string =>
    inlines.map(one => ('children' in one ? inline(one.children) : one.text)).join('');
  const shown = (value: string) => inline(inlinesOf(value));
  return blocks
    .map(block => {
      if (block.kind === 'code') return block.segments.join('');
      if (block.kind === 'list') return block.items.map(item => shownIn(item.blocks)).join('\n');
      if (block.kind === 'quote') return shownIn(block.blocks);
      if (block.kind === 'table') return [block.head, ...block.rows].flat().map(shown).join(' ');
      return block.kind === 'rule' ? '' : shown(block.text);
    })
    .join('\n');
}

const PIECES = [
  '# ',
  '- ',
  '1. ',
  '> ',
  '```',
  '`',
  '**',
  '*',
  '_',
  '~~',
  '|',
  '--|--',
  '[a](https://b)',
  '\n',
  '\n\n',
  '  ',
  'word',
  '<b>',
  '\\',
];
const markdown = fc.array(fc.constantFrom(...PIECES), { maxLength: 60 }).map(pieces => pieces.join(''));

test('no word of any text is lost or repeated', () => {
  fc.assert(
    fc.property(markdown, value => {
      const count = (shown: string) => shown.split('word').length;
      // The language of code is shown next to it, and cells beyond the head of a table are not shown.
      const plain = value.replaceAll(/`{3,}|~{3,}|\|/g, ' ');
      assert.equal(count(shownIn(blocksOf(plain))), count(plain));
      assert.equal(shownIn(blocksOf(plain)).split('<b>').length, plain.split('<b>').length);
    }),
    { numRuns: 1_000 },
  );
});

test('a text that grows is shown like the same text at once, and complete segments keep their blocks', () => {
  fc.assert(
    fc.property(fc.array(markdown, { minLength: 1, maxLength: 8 }), fc.integer({ min: 0, max: 7 }), (pieces, back) => {
      const line = 'A sentence of some length, so that segments end.\n'.repeat(25);
      const states = pieces.map((_, index) =>
        segmentsOf(
          pieces
            .slice(0, index + 1)
            .map(piece => line + piece)
            .join('\n'),
        ),
      );
      const document = new MarkdownDocument();
      for (const segments of [...states, states[back % states.length]!, ...states])
        assert.deepEqual(document.groups(segments), new MarkdownDocument().groups(segments));
    }),
    { numRuns: 100 },
  );
  const document = new MarkdownDocument();
  const segments = segmentsOf('- item\n'.repeat(3_000));
  const [before, after] = [document.groups(segments), document.groups([...segments, '- more\n'])];
  for (let group = 0; group < segments.length - 1; group += 1) assert.equal(after[group], before[group]);
});

test('a block is cut at its largest number of lines, and a list continues with its own numbers', () => {
  const lines = (count: number) => Array.from({ length: count }, (_, index) => `line ${index}`).join('\n');
  assert.equal(blocksOf(lines(BLOCK_LINES_MAX)).length, 1);
  assert.equal(blocksOf(lines(BLOCK_LINES_MAX + 1)).length, 2);
  const list = Array.from({ length: BLOCK_LINES_MAX + 1 }, (_, index) => `${index + 1}. x`).join('\n');
  assert.deepEqual(
    blocksOf(list).map(block => block.kind === 'list' && block.start),
    [1, BLOCK_LINES_MAX + 1],
  );
});

test('text full of unclosed marks is parsed, and no part of it is shown twice', () => {
  const SIZE = 20_000;
  for (const piece of [
    '`',
    '*',
    '**a',
    '_',
    '~',
    '[',
    '![',
    '](',
    '[a](',
    '<http://',
    'ahttp://',
    'http://.',
    '> ',
    '- ',
    '|',
    '# ',
    '\\',
    '(',
  ]) {
    const value = piece.repeat(SIZE / piece.length);
    const shown = shownIn(blocksOf(value));
    assert.ok(shown.length <= value.length + SIZE);
    inlinesOf(value);
  }
});

test('a line of any length is parsed in linear time', () => {
  for (const inputOf of [
    (length: number) => `\`\`\`${' '.repeat(length)}\``,
    (length: number) => `${'~'.repeat(length)}\``,
    (length: number) => `\`\`\`${'`'.repeat(length)}x\``,
    (length: number) => `# ${' '.repeat(length)}x\u2028x`,
    (length: number) => `\` ${'a'.repeat(length)}\t\``,
  ]) {
    const growth = cpuGrowth(inputOf, 2 ** 16, value => new BlockReader().line(value));
    assert.ok(growth < 64, `${inputOf(1)}: 16 times the text took ${growth} times the work`);
    const inline = cpuGrowth(inputOf, 2 ** 16, value => inlinesOf(value));
    assert.ok(inline < 64, `${inputOf(1)}: 16 times the text took ${inline} times the work`);
  }
});

test('a fence may have spaces before its language, and a heading before its closing marks', () => {
  assert.deepEqual(blocksOf('``` \t ts title\nx\n```'), [{ kind: 'code', language: 'ts', segments: ['x\n'] }]);
  assert.deepEqual(blocksOf('~~~~ ~\nx\n~~~~'), [{ kind: 'code', language: '~', segments: ['x\n'] }]);
  assert.deepEqual(blocksOf('``` a`b'), [paragraph('``` a`b')]);
  for (const [line, title] of [
    ['#  ##', ''],
    ['# ## ##', '##'],
    ['#', ''],
    ['#  a # #', 'a #'],
  ] as const)
    assert.deepEqual(blocksOf(line), [{ kind: 'heading', level: 1, text: title }], line);
});
