import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import type { Part, StreamResponse } from '@hopline/a2a';
import { FILE_BYTES_MAX, type ViewFile } from '@hopline/task-view';
import { ArtifactFolder, safeFileName } from './artifact-folder.ts';
import { fileReport } from './file-report.ts';
import { StreamPrinter } from './stream-printer.ts';

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'hopline-artifacts-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

function collect(out?: ArtifactFolder) {
  const lines: string[] = [];
  const ignore = () => {};
  const printer = new StreamPrinter(
    { artifact: text => lines.push(text), note: ignore, warn: ignore, answer: ignore },
    { folder: out },
  );
  const print = (event: StreamResponse) => printer.print({ cursor: undefined, event });
  const write = (id: string, parts: Part[], { append = false, last = true, name = id } = {}) =>
    print({
      artifactUpdate: { taskId: 't', contextId: 'c', artifact: { artifactId: id, name, parts }, append, lastChunk: last },
    });
  return { lines, printer, print, write };
}

test('a complete artifact is shown in one line with its name and size', () => {
  const { lines, printer, print, write } = collect();
  write('card.md', [{ text: '# Für ' }], { last: false });
  assert.deepEqual(lines, []);
  write('card.md', [{ text: 'Ada\n' }], { append: true });
  write('photo.png', [{ raw: Buffer.from([1, 2, 3]).toString('base64') }]);
  write('data', [{ data: { a: 1 } }]);
  write('x', [{ text: 'x' }], { name: 'two\nlines' });
  write('page', [{ url: 'https://example.org/' }]);
  write('open', [{ text: '12' }], { last: false });
  printer.end();
  assert.deepEqual(lines, [
    'card.md, 11 bytes',
    'photo.png, 3 bytes',
    'data, 7 bytes',
    'two lines, 1 byte',
    'page, https://example.org/',
    'open, 2 bytes',
  ]);
  const artifacts = [{ artifactId: 'card.md', name: 'card.md', parts: [{ text: '# Für Ada\n' }] }];
  print({ task: { id: 't', contextId: 'c', status: { state: 'TASK_STATE_COMPLETED' }, artifacts } });
  assert.equal(lines.length, 6, 'a task after a gap repeats no line');
});

test('--out saves text, bytes and data, and a retry that replaces an open artifact leaves one file', () => {
  const { lines, write } = collect(new ArtifactFolder(join(folder, 'new/one')));
  write('card.md', [{ text: 'wrong' }], { last: false });
  write('card.md', [{ text: 'ri' }], { last: false });
  write('card.md', [{ text: 'ght' }], { append: true });
  write('bytes', [{ raw: Buffer.from([0, 255]).toString('base64'), filename: 'two.bin' }, { text: 'beside' }]);
  write('data', [{ data: { a: 1 } }]);
  write('page', [{ url: 'https://example.org/' }]);
  const path = (name: string) => join(folder, 'new/one', name);
  assert.equal(readFileSync(path('card.md'), 'utf8'), 'right');
  assert.deepEqual([...readFileSync(path('two.bin'))], [0, 255]);
  assert.equal(readFileSync(path('bytes'), 'utf8'), 'beside');
  assert.equal(readFileSync(path('data.json'), 'utf8'), '{\n  "a": 1\n}\n');
  assert.equal(lines[0], `card.md, 5 bytes -> ${path('card.md')}`);
  assert.equal(lines[3], 'page, https://example.org/');
  assert.equal(readdirSync(join(folder, 'new/one')).length, 4);
});

test('a file in chunks is saved as one file, beside other files of its artifact', () => {
  const { lines, write } = collect(new ArtifactFolder(folder));
  const chunk = (filename: string, bytes: number[]): Part => ({ raw: Buffer.from(bytes).toString('base64'), filename });
  write('big.bin', [chunk('big.bin', [1, 2])], { last: false });
  write('big.bin', [chunk('big.bin', [3])], { append: true, last: false });
  write('big.bin', [chunk('big.bin', [4]), chunk('other.bin', [5])], { append: true });
  assert.deepEqual([...readFileSync(join(folder, 'big.bin'))], [1, 2, 3, 4]);
  assert.deepEqual([...readFileSync(join(folder, 'other.bin'))], [5]);
  assert.equal(lines.length, 1);
});

test('files are never written outside the folder and never replaced, not even through a link', () => {
  const out = join(folder, 'out');
  const { write } = collect(new ArtifactFolder(out));
  writeFileSync(join(folder, 'secret'), 'mine');
  writeFileSync(join(out, 'card.md'), 'mine');
  symlinkSync(join(folder, 'secret'), join(out, 'link.md'));
  for (const name of ['../secret', '/etc/passwd', '..\\..\\x', '..', 'card.md', 'link.md', '.bashrc', 'a\0b', ' '])
    write(name, [{ text: 'theirs' }], { name });
  assert.equal(readFileSync(join(folder, 'secret'), 'utf8'), 'mine');
  assert.equal(readFileSync(join(out, 'card.md'), 'utf8'), 'mine');
  assert.deepEqual(readdirSync(folder).sort(), ['out', 'secret']);
  assert.deepEqual(
    readdirSync(out).sort(),
    ['a_b', 'artifact', 'artifact-2', 'bashrc', 'card-2.md', 'card.md', 'link-2.md', 'link.md', 'passwd', 'secret', 'x'].sort(),
  );
});

test('names are safe on every file system, and keep their extension when they are cut', () => {
  assert.equal(safeFileName('report: 1/2026?.csv'), '2026_.csv');
  assert.equal(safeFileName('con.txt'), '_con.txt');
  assert.equal(safeFileName('LPT1'), '_LPT1');
  assert.equal(safeFileName('name. . '), 'name');
  for (const filler of ['.', ' ', 'x', '_', '👍'])
    assert.match(safeFileName(`a${filler.repeat(500_000)}b.json`), /^a.*b?\.json$/u, filler);
  const long = safeFileName(`${'ü'.repeat(300)}.json`);
  assert.ok(Buffer.byteLength(long) <= 120 && long.endsWith('ü.json'), long);
});

test('the number of files is bounded, and the excess is reported and not saved', () => {
  const few = new ArtifactFolder(join(folder, 'few'), 2);
  const files = collect(few);
  for (const name of ['a', 'b']) files.write(name, [{ text: name }]);
  assert.equal(few.failed, false);
  files.write('c', [{ text: 'c' }]);
  assert.equal(files.lines[2], 'c, 1 byte: not saved, 2 files are saved already');
  assert.ok(few.failed && !existsSync(join(folder, 'few/c')));
});

test('a file is reported but not saved if the view has kept none of it', () => {
  const kept = new ArtifactFolder(join(folder, 'kept'));
  const file: ViewFile = {
    id: 'over',
    name: undefined,
    description: undefined,
    agent: undefined,
    turn: 1,
    parts: [],
    isComplete: true,
    bytes: 5,
    missing: 'excess',
  };
  assert.equal(fileReport(file, kept), `over, 5 bytes: not saved, more than ${FILE_BYTES_MAX} bytes are not kept`);
  assert.deepEqual([kept.failed, readdirSync(join(folder, 'kept'))], [true, []]);
});

test('an artifact whose beginning was not received is not saved', () => {
  const { lines, write } = collect(new ArtifactFolder(folder));
  write('card.md', [{ text: 'end' }], { append: true });
  assert.deepEqual(lines, ['card.md, 3 bytes: not saved, it begins before this part of the stream']);
  assert.deepEqual(readdirSync(folder), []);
});

test('a folder that cannot be created throws the error of the file system', () => {
  writeFileSync(join(folder, 'file'), '');
  assert.throws(() => new ArtifactFolder(join(folder, 'file/x')), {
    code: 'ENOTDIR',
  });
});

test('an artifact may have more parts than a call may have arguments', () => {
  const parts = new Array<Part>(300_000).fill({ text: 'x' });
  for (const out of [undefined, new ArtifactFolder(folder)]) {
    const { lines, write } = collect(out);
    write('many.txt', parts);
    assert.deepEqual(lines, [`many.txt, 300000 bytes${out ? ` -> ${join(folder, 'many.txt')}` : ''}`]);
  }
});
