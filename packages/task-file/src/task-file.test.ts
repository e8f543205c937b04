import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { Worker } from 'node:worker_threads';
import fc from 'fast-check';
import { collect } from '../../../test/kit/collect.ts';
import { exampleEntries, HEADER, OUTCOME } from './example-task.test-kit.ts';
import type { TaskEntry, TaskFileFault } from './format.ts';
import { LINE_BYTES_MAX, TaskFileError } from './format.ts';
import { encodeLine, parse } from './json-line.ts';
import { findResumePoint, type ReadOptions, readTaskFile } from './read-task-file.ts';
import { writeTask } from './write-task.ts';

const encoder = new TextEncoder();

async function textOf(lines: AsyncIterable<string>): Promise<string> {
  return (await collect(lines)).join('');
}

const exampleText = (texts?: string[]) => textOf(writeTask(HEADER, exampleEntries(texts), { outcome: OUTCOME }));

function read(text: string | Uint8Array, options?: ReadOptions, chunkBytes = 1 << 16): Promise<TaskEntry[]> {
  const bytes = typeof text === 'string' ? encoder.encode(text) : text;
  const chunks = Array.from({ length: Math.ceil(bytes.length / chunkBytes) }, (_, n) =>
    bytes.subarray(n * chunkBytes, (n + 1) * chunkBytes),
  );
  return collect(readTaskFile(chunks, options));
}

/** Recomputes the chain of sums, as a person who edits the file could. */
function withSums(values: readonly object[]): string {
  let sum = '';
  return values
    .map(value => {
      const encoded = encodeLine(value, sum);
      sum = encoded.sum;
      return `${encoded.line}\n`;
    })
    .join('');
}

async function linesOfExample(): Promise<Record<string, unknown>[]> {
  const lines = (await exampleText()).trimEnd().split('\n');
  return lines.map(line => {
    const { sum: _sum, ...value } = JSON.parse(line) as Record<string, unknown>;
    return value;
  });
}

describe('a task file', () => {
  it('contains what was written, in order, whatever the texts and the chunks of bytes are', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.string({ unit: 'binary', maxLength: 40 }), { maxLength: 20 }),
        fc.integer({ min: 1, max: 300 }),
        async (texts, chunkBytes) => {
          const entries = exampleEntries(texts);
          const [header, ...rest] = await read(await exampleText(texts), {}, chunkBytes);
          const end = rest.pop();
          assert.deepEqual(header, { kind: 'header', header: HEADER });
          assert.deepEqual(rest, entries);
          assert.deepEqual(end, {
            kind: 'end',
            inputs: 1,
            facts: texts.length + 1,
            lastInputSeq: 7,
            lastFactsSeq: 10 * (texts.length + 1),
            generation: texts.length + 1,
            state: texts.length > 0 ? 'TASK_STATE_WORKING' : 'TASK_STATE_SUBMITTED',
          });
        },
      ),
      { numRuns: 100 },
    );
  });

  it('may hold several tasks, one after the other', async () => {
    const entries = await read((await exampleText(['a'])) + (await exampleText(['b', 'c'])));
    assert.deepEqual(
      entries.map(({ kind }) => kind),
      ['header', 'input', 'facts', 'facts', 'end', 'header', 'input', 'facts', 'facts', 'facts', 'end'],
    );
  });

  it('is reported as damaged when any one character of it is changed', async () => {
    const text = await exampleText(['a']);
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 0, max: text.length - 2 }),
        fc.constantFrom('x', '0', '"', ' '),
        async (at, character) => {
          fc.pre(text[at] !== character && text[at] !== '\n');
          await assert.rejects(read(text.slice(0, at) + character + text.slice(at + 1)), TaskFileError);
        },
      ),
      { numRuns: 300 },
    );
  });

  it('is recognized as truncated wherever it is cut, and everything before the cut is readable', async () => {
    const text = await exampleText();
    const bytes = encoder.encode(text);
    const whole = await read(text);
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: bytes.length - 1 }), async at => {
        const cut = bytes.subarray(0, at);
        await assert.rejects(read(cut), (error: TaskFileError) => error.fault === 'truncated');
        const entries = await read(cut, { allowTruncated: true });
        assert.deepEqual(entries, whole.slice(0, entries.length));
        assert.equal(entries.length, Buffer.from(cut).toString().split('\n').length - 1);
      }),
      { numRuns: 100 },
    );
  });

  it('may be cut within a character, but must otherwise be UTF-8', async () => {
    const bytes = encoder.encode(await exampleText(['é']));
    const within = bytes.indexOf(0xc3) + 1;
    await assert.rejects(read(bytes.subarray(0, within)), (error: TaskFileError) => error.fault === 'truncated');
    const entries = await read(bytes.subarray(0, within), { allowTruncated: true });
    assert.ok(entries.length > 0);
    const broken = Buffer.concat([bytes.subarray(0, within), Buffer.from('"')]);
    await assert.rejects(read(broken, { allowTruncated: true }), (error: TaskFileError) => error.fault === 'malformed');
  });

  it('that was cut is continued to the same bytes', async () => {
    const bytes = encoder.encode((await exampleText(['first'])) + (await exampleText()));
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 0, max: bytes.length }), async at => {
        const point = await findResumePoint([bytes.subarray(0, at)]);
        const parts = [Buffer.from(bytes.subarray(0, point.bytes)).toString()];
        const tasks = [['first'], undefined];
        for (const texts of tasks.slice(point.finished.length)) {
          const after = parts.length === 1 ? point.open?.progress : undefined;
          const entries = exampleEntries(texts).filter(
            entry => entry.seq > ((entry.kind === 'input' ? after?.lastInputSeq : after?.lastFactsSeq) ?? 0),
          );
          parts.push(await textOf(writeTask(HEADER, entries, { outcome: OUTCOME, after })));
        }
        assert.equal(parts.join(''), Buffer.from(bytes).toString());
      }),
      { numRuns: 100 },
    );
  });

  it('is converted line by line if its version is an earlier one', async () => {
    const [header, ...lines] = await linesOfExample();
    const old = withSums([{ ...header, agents: undefined, agent: 'guide' }, ...lines]);
    const upcast = ({ agent, ...line }: Record<string, unknown>) => (agent === undefined ? line : { ...line, agents: [agent] });
    const [converted, ...rest] = await read(old, { upcasts: [upcast] });
    assert.deepEqual(converted, { kind: 'header', header: HEADER });
    assert.equal(rest.length, lines.length);
  });

  it('is read by every later version if its version is 1', async () => {
    const golden = readFileSync(new URL('../golden/version-1.hopline.jsonl', import.meta.url));
    const entries = await read(golden);
    assert.deepEqual([entries[0]?.kind, entries.at(-1)?.kind], ['header', 'end']);
    assert.equal(await textOf(rewritten(entries)), golden.toString());
  });

  it('is written and read in little memory, whatever its size is', async () => {
    const worker = new Worker(new URL('./large-file.test-kit.ts', import.meta.url), {
      resourceLimits: { maxOldGenerationSizeMb: 48 },
    });
    const { entries, bytes } = await new Promise<{ entries: number; bytes: number }>((resolve, reject) => {
      worker.once('message', resolve);
      worker.once('error', reject);
    });
    assert.equal(entries, 4_000 + 4);
    assert.ok(bytes > 160_000_000, `${bytes} bytes`);
  });
});

/** Reads a file and writes it again. */
async function* rewritten(entries: TaskEntry[]): AsyncGenerator<string, void> {
  const [header] = entries;
  assert.ok(header?.kind === 'header');
  const records = entries.filter(entry => entry.kind === 'input' || entry.kind === 'facts');
  yield* writeTask(header.header, records, { outcome: OUTCOME });
}

// biome-ignore lint/suspicious/noExplicitAny: the changes reach into lines of every form
type Lines = Record<string, any>[];
/** The facts of the example are lines 2 to 5, its input is line 1. */
const CHANGES: { [title: string]: { fault: TaskFileFault; message: RegExp; change(lines: Lines): unknown } } = {
  'a later version of the format': {
    fault: 'newer',
    message: /^line 1: the file has version 2 .* use a newer Hopline$/,
    change: ([header]) => Object.assign(header!, { version: 2 }),
  },
  'a later version of a record': {
    fault: 'newer',
    message: /^line 3: the record is of a later version/,
    change: lines => Object.assign(lines[2]!.record, { v: 2 }),
  },
  'a later version of an input': {
    fault: 'newer',
    message: /^line 2: the input is of a later version/,
    change: lines => Object.assign(lines[1]!.record, { v: 2 }),
  },
  'a fact of an unknown kind': {
    fault: 'newer',
    message: /^line 4: the fact has an unknown kind/,
    change: lines => Object.assign(lines[3]!.record.facts[0], { kind: 'task.merged' }),
  },
  'a version that is not a number': {
    fault: 'not a task file',
    message: /^not a task file/,
    change: ([header]) => Object.assign(header!, { version: 'one' }),
  },
  'a header without its members': {
    fault: 'malformed',
    message: /^line 1: this header lacks a member/,
    change: ([header]) => Reflect.deleteProperty(header!, 'contextId'),
  },
  'a task id that is not a subject': {
    fault: 'malformed',
    message: /^line 1: this header/,
    change: ([header]) => Object.assign(header!, { taskId: 'a.>' }),
  },
  'a record of another task': {
    fault: 'malformed',
    message: /^line 3: the record belongs to a different task/,
    change: lines => Object.assign(lines[2]!.record.aggregate, { taskId: 'another' }),
  },
  'a line that was removed': {
    fault: 'malformed',
    message: /^line 4: generation 3 follows 1: events are missing/,
    change: lines => lines.splice(3, 1),
  },
  'a last record that was removed': {
    fault: 'malformed',
    message: /^line 6: the end does not fit/,
    change: lines => lines.splice(5, 1),
  },
  'two lines in the wrong order': {
    fault: 'malformed',
    message: /^line 4: generation 3 follows 1/,
    change: lines => lines.splice(3, 2, lines[4]!, lines[3]!),
  },
  'a sequence twice': {
    fault: 'malformed',
    message: /^line 4: the sequence does not follow/,
    change: lines => Object.assign(lines[3]!, { seq: lines[2]!.seq }),
  },
  'facts that do not begin with the task': {
    fault: 'malformed',
    message: /^line 3: the facts do not begin with the creation/,
    change: lines => lines.splice(2, 1),
  },
  'an event whose parts are not a list': {
    fault: 'malformed',
    message: /^line 4: a member of the fact artifact.updated/,
    change: lines => Object.assign(lines[3]!.record.facts[0].event.artifactUpdate.artifact, { parts: 'text' }),
  },
  'a fact at a time that no calendar has': {
    fault: 'malformed',
    message: /^line 4: a member of the fact artifact.updated/,
    change: lines => Object.assign(lines[3]!.record.facts[0], { at: 8.64e15 + 1 }),
  },
  'an input of another form': {
    fault: 'malformed',
    message: /^line 2: the record is not an input: not a record/,
    change: lines => Object.assign(lines[1]!.record.input, { message: 7 }),
  },
  'records that the header does not name': {
    fault: 'malformed',
    message: /^line 2: the header names no inputs/,
    change: ([header]) => Object.assign(header!, { contains: ['facts'] }),
  },
  'a line of an unknown kind': {
    fault: 'malformed',
    message: /^line 3: "kind" must be/,
    change: lines => Object.assign(lines[2]!, { kind: 'note' }),
  },
  'text after the end': {
    fault: 'malformed',
    message: /^line 8: a header must follow the end of a task/,
    change: lines => lines.push({ kind: 'end' }),
  },
  'JSON that nests without end': {
    fault: 'malformed',
    message: /^line 4: JSON may nest at most 80 levels/,
    change: lines => Object.assign(lines[3]!, { deep: JSON.parse('['.repeat(200) + ']'.repeat(200)) }),
  },
};

describe('a task file that must not be used', () => {
  for (const [title, { fault, message, change }] of Object.entries(CHANGES)) {
    it(`${title}, with correct sums: ${fault}`, async () => {
      const lines = await linesOfExample();
      change(lines);
      await assert.rejects(read(withSums(lines)), (error: TaskFileError) => {
        assert.equal(error.fault, fault);
        assert.match(error.message, message);
        assert.ok(!error.message.includes('\n'), 'one sentence');
        return true;
      });
    });
  }

  const RAW: { [title: string]: { text(example: string): string | Uint8Array; fault: TaskFileFault; message: RegExp } } = {
    'an empty file': { text: () => '', fault: 'not a task file', message: /^the file is empty$/ },
    'a picture': {
      text: () => Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0a, 0xff]),
      fault: 'not a task file',
      message: /^not a task file/,
    },
    'another JSON': { text: () => '{"hello":1}\n', fault: 'not a task file', message: /^not a task file/ },
    'a line without end': {
      text: example => example + 'x'.repeat(5_000),
      fault: 'too long',
      message: /^line 8: the line has more than 4096 bytes$/,
    },
    'an edited text': {
      text: example => example.replace(' it works', ' it fails'),
      fault: 'edited',
      message: /^line 5: the sum does not match/,
    },
    'a member twice': {
      text: example => example.replace('"kind":"input"', '"kind":"input","kind":"input"'),
      fault: 'malformed',
      message: /^line 2: an object has the same member twice$/,
    },
    'a member twice, once with an escape': {
      text: example => example.replace('"kind":"input"', '"kind":"input","k\\u0069nd":"input"'),
      fault: 'malformed',
      message: /^line 2: an object has the same member twice$/,
    },
    'bytes that are not UTF-8': {
      text: example => Buffer.concat([Buffer.from(example), Buffer.from([0xff, 0x0a])]),
      fault: 'malformed',
      message: /^line 8: this is not UTF-8$/,
    },
    'no line feed at the end': {
      text: example => example.slice(0, -1),
      fault: 'truncated',
      message: /^line 7: the file ends within this line$/,
    },
    'no end': {
      text: example => `${example.split('\n').slice(0, 4).join('\n')}\n`,
      fault: 'truncated',
      message: /^the end of the task is missing after line 4/,
    },
  };
  for (const [title, { text, fault, message }] of Object.entries(RAW)) {
    it(`${title}: ${fault}`, async () => {
      await assert.rejects(read(text(await exampleText()), { lineBytesMax: 4096 }), (error: TaskFileError) => {
        assert.deepEqual([error.fault, message.test(error.message) || error.message], [fault, true]);
        return true;
      });
    });
  }

  it('has at most as many records as the limit permits', async () => {
    const text = await exampleText(['a', 'b']);
    await read(text, { recordsMax: 4 });
    await assert.rejects(read(text, { recordsMax: 3 }), /^TaskFileError: line 5: the task has more than 3 records$/);
  });

  it('is refused if a line has more bytes than the limit permits', async () => {
    const text = await exampleText(['a']);
    const longest = Math.max(...text.split('\n').map(line => line.length));
    await read(text, { lineBytesMax: longest });
    await assert.rejects(read(text, { lineBytesMax: longest - 1 }), /the line has more than/);
  });

  it('may have a string as long as a line, with a quotation mark, in text of another writer', () => {
    const long = 'x'.repeat(LINE_BYTES_MAX);
    assert.deepEqual(parse(`{ "a": "\\\\", "b": "\\"${long}" }`, 1), { a: '\\', b: `"${long}` });
    assert.throws(
      () => parse(`{ "a": "${long}", "\\"": 1, "\\u0061": 2 }`, 1),
      /^TaskFileError: line 1: an object has the same member twice$/,
    );
  });

  it('may repeat a member name in another object, and may have white space', async () => {
    const { decodeLine } = await import('./json-line.ts');
    const body = '{"a": [1, {"a": "{\\"a\\":1}"}, [{"b": 1}, {"b": 2}]], "b": {"a": 1, "b": 2}}';
    const { createHash } = await import('node:crypto');
    const start = body.slice(0, -1);
    const sum = createHash('sha256').update('\n').update(start).digest('base64url');
    assert.deepEqual(Object.keys(decodeLine(`${start},"sum":"${sum}"}`, 1, '').value), ['a', 'b']);
  });
});
