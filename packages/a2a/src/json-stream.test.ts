import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { decodeRemoteResponse, INTERPRETED_MEMBERS } from './decode-event.ts';
import { testBothWays } from './fast-paths.test-kit.ts';
import { setFastPaths } from './fast-paths.ts';
import { JsonStream } from './json-stream.ts';

function parsed(parse: () => unknown): unknown {
  try {
    return parse();
  } catch (error) {
    return (error as Error).name;
  }
}

const text = fc.oneof(
  fc.string(),
  fc.string({ unit: 'binary' }),
  fc.constantFrom('', 'a', '"', '\\', '\n', 'text', 'slot 0', ':'),
);
const leaf = fc.oneof(text, fc.integer(), fc.boolean(), fc.constant(null));
/** Documents of a stream, in a few shapes: different strings, white space, duplicate members, and reserved names. */
const shape = fc.record({
  key: fc.constantFrom('text', '__proto__', '0', 'a b'),
  rest: fc.dictionary(text, leaf, { maxKeys: 2 }),
  indent: fc.constantFrom(0, 1),
});
const document = (one: { key: string; rest: object; indent: number }, strings: string[]) => {
  const [a = '', b = '', c = ''] = strings.map(value => JSON.stringify(value));
  const space = ' '.repeat(one.indent);
  const rest = JSON.stringify(one.rest);
  return `{${space}"same":${rest},"list":[{"text":${space}${a || '""'}},${b || 'null'}],"${one.key}":${c || '1'},"text":{"${one.key}"${space}:${a || '""'}}}`;
};
const stream = fc.array(shape, { minLength: 1, maxLength: 2 }).chain(shapes =>
  fc.array(
    fc.oneof(
      {
        weight: 20,
        arbitrary: fc
          .tuple(fc.nat(shapes.length - 1), fc.array(text, { maxLength: 3 }))
          .map(([index, strings]) => document(shapes[index]!, strings)),
      },
      { weight: 1, arbitrary: fc.oneof(text, fc.json()) },
    ),
    { maxLength: 30 },
  ),
);

testBothWays('documents of a stream have the values that JSON.parse gives them', () => {
  fc.assert(
    fc.property(stream, documents => {
      const json = new JsonStream();
      for (const one of documents)
        assert.deepEqual(
          parsed(() => json.read(one)),
          parsed(() => JSON.parse(one)),
        );
    }),
    { numRuns: 1_000 },
  );
});

const word = fc.constantFrom(
  '',
  'a',
  'b',
  'text',
  'data',
  'file',
  'working',
  'completed',
  'status-update',
  'task',
  'user',
  'ü',
  '\n',
);
const member = fc.constantFrom(
  'kind',
  'type',
  'text',
  'state',
  'role',
  'messageId',
  'taskId',
  'name',
  'artifactId',
  'mediaType',
  'retryable',
);
/** Events of remote agents in both notations and in a few shapes, with members whose meaning depends on their place. */
const response = fc
  .record({ dialect: fc.nat(1), hasText: fc.boolean(), more: fc.array(fc.tuple(member, fc.nat(5)), { maxLength: 2 }) })
  .chain(({ dialect, hasText, more }) =>
    fc.array(
      fc.array(word, { minLength: 6, maxLength: 6 }).map(words => {
        const added = Object.fromEntries(more.map(([name, index]) => [name, words[index]]));
        const part = hasText ? { kind: 'text', text: words[0], ...added } : { kind: words[0], value: words[1], ...added };
        const message = { messageId: words[1], role: 'agent', parts: [part], ...added };
        const status = { state: dialect === 0 ? 'TASK_STATE_WORKING' : 'working', message, timestamp: words[2], ...added };
        const update = { taskId: words[3], contextId: 'c', status, ...added };
        const result = dialect === 0 ? { statusUpdate: update } : { kind: 'status-update', ...update };
        const artifact = { artifactId: words[4], parts: [part], metadata: added };
        const artifactUpdate = { taskId: 't', artifact, append: true };
        return JSON.stringify({ result: words[5] === 'a' ? { artifactUpdate } : result });
      }),
      { maxLength: 20 },
    ),
  );

testBothWays('events of remote agents are decoded as if one by one', () => {
  fc.assert(
    fc.property(response, documents => {
      const json = new JsonStream(decodeRemoteResponse, INTERPRETED_MEMBERS);
      for (const one of documents) assert.deepEqual(json.read(one), decodeRemoteResponse(JSON.parse(one)), one);
    }),
    { numRuns: 2_000 },
  );
});

testBothWays('a part whose kind differs is decoded by its kind', () => {
  const json = new JsonStream(decodeRemoteResponse, INTERPRETED_MEMBERS);
  for (const kind of ['a', 'b', 'text', 'file']) {
    const artifact = { artifactId: 'a', parts: [{ kind, value: kind }] };
    const one = JSON.stringify({ result: { kind: 'artifact-update', taskId: 't', artifact } });
    assert.deepEqual(json.read(one), decodeRemoteResponse(JSON.parse(one)), kind);
  }
});

test('equal members are read once and shared', () => {
  const json = new JsonStream();
  const values = ['a', 'b', 'c', 'ü', '"quoted"', 'e'].map(
    (piece, index) => json.read(JSON.stringify({ id: `m${index}`, parts: [{ text: piece }], metadata: { agent: 'x' } })) as Value,
  );
  type Value = { id: string; parts: { text: string }[]; metadata: object };
  assert.deepEqual(
    values.map(({ parts }) => parts[0]!.text),
    ['a', 'b', 'c', 'ü', '"quoted"', 'e'],
  );
  assert.equal(values[2]!.metadata, values[5]!.metadata);
  assert.ok(Object.isFrozen(values[2]!.metadata));
  assert.notEqual(values[2]!.parts, values[5]!.parts);
});

test('without fast paths every document is parsed, and nothing is shared', t => {
  setFastPaths(false);
  t.after(() => setFastPaths(true));
  const json = new JsonStream();
  const [one, other] = ['a', 'b', 'c'].map(id => json.read(`{"id":"${id}","same":{}}`) as { same: object }).slice(1);
  assert.notEqual(one!.same, other!.same);
  assert.ok(!Object.isFrozen(other!.same));
});

testBothWays('text that is not JSON is refused, even in the form of the documents before it', () => {
  const json = new JsonStream();
  for (const piece of ['a', 'b']) json.read(`{"text":"${piece}"}`);
  for (const wrong of ['{"text":"a\nb"}', '{"text":"a\\"}', '{"text":"a"}}', '{"text":"a"', '{"text":"a" "b"}'])
    assert.throws(() => json.read(wrong), SyntaxError, wrong);
});

testBothWays('an unpaired half of a surrogate is kept, as by JSON.parse', () => {
  const json = new JsonStream();
  for (const piece of ['a', 'b', '\ud800', '👍']) assert.deepEqual(json.read(`{"text":"${piece}"}`), { text: piece });
});

test('a string does not keep its document in memory', () => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const json = new JsonStream();
  const documents = 4_000;
  const padding = ' '.repeat(8_000);
  const kept: unknown[] = [];
  collect();
  const before = process.memoryUsage().heapUsed;
  for (let index = 0; index < documents; index += 1)
    kept.push((json.read(`{"id":"message-${String(index).padStart(20)}"${padding}}`) as { id: string }).id);
  collect();
  const bytes = process.memoryUsage().heapUsed - before;
  assert.equal(kept.length, documents);
  assert.ok(bytes < (documents * padding.length) / 4, `${bytes} bytes`);
});
