import fc from 'fast-check';

/**
 * A JSON syntax tree: members in order, duplicate names, scalars as source text. Mutations can write text that `JSON.stringify` cannot: a
 * duplicate name, `__proto__`, `1e999`, half of a surrogate pair.
 */
export type Tree = { members: [name: string, value: Tree][] } | { items: Tree[] } | { scalar: string };

export function treeOf(value: unknown): Tree {
  if (Array.isArray(value)) return { items: value.map(treeOf) };
  if (typeof value === 'object' && value !== null) {
    return { members: Object.entries(value).map(([name, member]) => [name, treeOf(member)]) };
  }
  return { scalar: JSON.stringify(value) ?? 'null' };
}

export function textOf(tree: Tree): string {
  if ('scalar' in tree) return tree.scalar;
  if ('items' in tree) return `[${tree.items.map(textOf).join(',')}]`;
  return `{${tree.members.map(([name, value]) => `${JSON.stringify(name)}:${textOf(value)}`).join(',')}}`;
}

const nested = (depth: number): string => '['.repeat(depth) + ']'.repeat(depth);

/** Scalars and small documents that often break parsers. */
export const HOSTILE: readonly string[] = [
  'null',
  'true',
  '0',
  '-0',
  '-1',
  '1.5',
  '1e999',
  '-1e999',
  '9007199254740993',
  '2147483648',
  '""',
  '" "',
  '"\\u0000"',
  '"\\r\\nA2A-Version: 1.0"',
  '"\\ud800"',
  '"\\udc00x"',
  '"\\u2028"',
  '"a.b.>"',
  '"*"',
  '"../../etc/passwd"',
  '"__proto__"',
  '"constructor"',
  '"toString"',
  '"hopline.legacy"',
  '"TASK_STATE_UNSPECIFIED"',
  '"1970-01-01T00:00:00Z"',
  '"+275760-09-13T00:00:00.001Z"',
  '"http://[::1"',
  '"javascript:1"',
  '"=?"',
  '[]',
  '{}',
  '[null]',
  '[[]]',
  '{"":0}',
  '{"__proto__":{"polluted":1}}',
  '{"toJSON":1,"constructor":{"prototype":{"polluted":1}}}',
  '{"then":1}',
  '{"length":1e9}',
  '{"$ref":"#"}',
  nested(63),
  nested(70),
  nested(20_000),
  `"${'x'.repeat(257)}"`,
  `"${'\u{1f600}'.repeat(129)}"`,
  `"${'é'.repeat(5_000)}"`,
  `"${'x'.repeat(50_000)}"`,
  `"${'x'.repeat(80_000)}"`,
  `[${'0,'.repeat(3_000)}0]`,
];

const NAMES = [
  '__proto__',
  'constructor',
  'id',
  'taskId',
  'task_id',
  'kind',
  'type',
  'tenant',
  'metadata',
  'text',
  'data',
  '',
  'ß',
  'toJSON',
];

type Step = { at: number; how: 'drop' | 'replace' | 'rename' | 'twice' | 'add' | 'deep' | 'grow'; value: string; name: string };

const step: fc.Arbitrary<Step> = fc.record({
  at: fc.nat(1_000_000),
  how: fc.constantFrom<Step['how'][]>('drop', 'replace', 'replace', 'replace', 'rename', 'twice', 'add', 'deep', 'grow'),
  value: fc.oneof({ weight: 4, arbitrary: fc.constantFrom(...HOSTILE) }, { weight: 1, arbitrary: fc.json() }),
  name: fc.oneof(fc.constantFrom(...NAMES), fc.string({ unit: 'binary', maxLength: 5 })),
});

/** All replaceable nodes of a tree: parent and position. */
function placesOf(tree: Tree): { holder: Tree; index: number }[] {
  if ('scalar' in tree) return [];
  const children = 'items' in tree ? tree.items : tree.members.map(([, value]) => value);
  return children.flatMap((child, index) => [{ holder: tree, index }, ...placesOf(child)]);
}

function wrapped(tree: Tree, times: number): Tree {
  let deep = tree;
  for (let depth = 0; depth < times; depth += 1) deep = depth % 2 === 0 ? { items: [deep] } : { members: [['a', deep]] };
  return deep;
}

/** Limit for the result of one repetition, in bytes: three nested repetitions would reach gigabytes. */
const GROWN_BYTES_MAX = 128 * 1024;
const GROWN_TIMES_MAX = 300;

function times(what: Tree): number {
  return Math.min(GROWN_TIMES_MAX, Math.ceil(GROWN_BYTES_MAX / textOf(what).length));
}

function applied(tree: Tree, { at, how, value, name }: Step): void {
  const places = placesOf(tree);
  const place = places[at % places.length];
  if (place === undefined) return;
  const { holder, index } = place;
  const hostile: Tree = { scalar: value };
  if ('items' in holder) {
    const item = holder.items[index]!;
    if (how === 'drop') holder.items.splice(index, 1);
    else if (how === 'twice') holder.items.push(item);
    else if (how === 'grow') holder.items.push(...Array.from({ length: times(item) }, () => item));
    else holder.items[index] = how === 'deep' ? wrapped(item, (at % 80) + 1) : hostile;
  } else if ('members' in holder) {
    const member = holder.members[index]!;
    if (how === 'drop') holder.members.splice(index, 1);
    else if (how === 'rename') member[0] = name;
    else if (how === 'twice') holder.members.push([member[0], hostile]);
    else if (how === 'add') holder.members.push([name, hostile]);
    else if (how === 'grow')
      holder.members.push(...Array.from({ length: times(hostile) }, (_, n): [string, Tree] => [`${name}${n}`, hostile]));
    else member[1] = how === 'deep' ? wrapped(member[1], (at % 80) + 1) : hostile;
  }
}

/** Texts near a valid document: `steps` of its nodes are mutated. */
export function mutated(golden: unknown, steps = 3): fc.Arbitrary<string> {
  return fc.array(step, { maxLength: steps }).map(list => {
    const tree = treeOf(golden);
    for (const one of list) applied(tree, one);
    return textOf(tree);
  });
}

/** Mutations of raw text: truncation, or an insertion before, after or within it. Mostly none. */
export function damaged(text: fc.Arbitrary<string>): fc.Arbitrary<Uint8Array> {
  const bytes = text.map(one => new TextEncoder().encode(one));
  const damage = fc
    .tuple(fc.nat(1_000_000), fc.constantFrom(0x00, 0xff, 0xc0, 0x80, 0x2c, 0x22))
    .map(([at, byte]) => (whole: Uint8Array): Uint8Array[] => [
      whole.subarray(0, at % (whole.length + 1)),
      Uint8Array.of(0xef, 0xbb, 0xbf, ...whole.subarray(0, 4_000)),
      Uint8Array.of(...whole.subarray(0, 4_000), byte),
      whole.length === 0 ? whole : whole.map((old, index) => (index === at % whole.length ? byte : old)),
    ]);
  return fc.oneof(
    { weight: 8, arbitrary: bytes },
    { weight: 1, arbitrary: fc.tuple(bytes, damage, fc.nat(3)).map(([whole, how, which]) => how(whole)[which]!) },
    { weight: 1, arbitrary: fc.uint8Array({ maxLength: 64 }) },
  );
}
