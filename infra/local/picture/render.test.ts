import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { type Recording, render } from './render.ts';
import { layout } from './terminal.ts';

const BYTES_MAX = 200_000;
const picture = readFileSync(new URL('../../../docs/pictures/kill-relay.svg', import.meta.url), 'utf8');
const recording: Recording = JSON.parse(readFileSync(new URL('kill-relay.json', import.meta.url), 'utf8'));

test('the picture of README.md is made from its recording, and nothing else', () => {
  assert.equal(picture, render(recording), 'node infra/local/picture/record.ts makes a new recording and its picture');
  assert.equal(render(structuredClone(recording)), picture);
  assert.ok(Buffer.byteLength(picture) < BYTES_MAX);
});

test('the picture has no script and loads nothing', () => {
  const elements = new Set([...picture.matchAll(/<(\w+)/g)].map(([, name]) => name!));
  assert.deepEqual([...elements].toSorted(), ['g', 'path', 'rect', 'style', 'svg', 'text', 'title']);
  assert.doesNotMatch(picture.replace('xmlns="http://www.w3.org/2000/svg"', ''), /href|url\(|@import|on\w+=|http:\/\/(?!127)/i);
});

test('the recording has the death of a relay in mid-answer, the rest of the answer, and its verification', () => {
  const [client, cluster] = recording.panes.map(({ outputs }) => outputs);
  const textOf = (outputs: typeof client) => outputs!.map(({ text }) => text).join('');
  const before = textOf(client!.filter(({ ms }) => ms < recording.killMs));
  const after = textOf(client!.filter(({ ms }) => ms >= recording.againMs));
  assert.match(before, /How Hopline streamed this answer/);
  assert.doesNotMatch(before, /byte for byte/);
  assert.match(after, /byte for byte.*completed/s);
  assert.match(textOf(cluster), /kill -9 \d+.*\n.*SIGKILL.*\n.*restarted as process \d+\n.*verify .*\n1 task: 1 same, 0 differ/s);
  assert.ok(recording.killMs < recording.againMs && recording.silentMs > 0);
});

test('text is wrapped before words, a pictograph takes two cells, and each output keeps its time', () => {
  const runs = layout(
    [
      { ms: 0, text: 'one \u001b[2mtwo\u001b[0m\r\n' },
      { ms: 50, text: '✅ ab cdef' },
      { ms: 90, text: 'g' },
    ],
    8,
  );
  assert.deepEqual(
    runs.map(({ ms, row, column, text, style }) => [ms, row, column, text, style]),
    [
      [0, 0, 0, 'one ', 'plain'],
      [0, 0, 4, 'two', 'dim'],
      [50, 1, 0, '✅ ab ', 'plain'],
      [50, 2, 0, 'cdef', 'plain'],
      [90, 2, 4, 'g', 'plain'],
    ],
  );
});

test('a control of the terminal that the picture cannot show is an error', () => {
  for (const text of ['\u001b[2J', '\u001b[35mviolet', '\u001b]0;title\u0007'])
    assert.throws(() => layout([{ ms: 0, text }], 80), /^Error: unsupported terminal (style|control)/, JSON.stringify(text));
});
