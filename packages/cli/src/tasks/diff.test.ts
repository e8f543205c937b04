import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { plainAnswer, type TaskBuilder, taskFileOf } from '@hopline/replay/test-kit';
import { runWith } from '../run-with.test-kit.ts';

const folder = mkdtempSync(join(tmpdir(), 'hopline-diff-'));
after(() => rmSync(folder, { recursive: true, force: true }));

const hopline = (...argv: string[]) => runWith(folder, argv);

async function fileOf(name: string, task: TaskBuilder, eventCostMs: number): Promise<string> {
  const path = join(folder, name);
  writeFileSync(path, await taskFileOf(task.stored({ eventCostMs })));
  return path;
}

test('diff exits with 0 if only the chunks of the answer differ', async () => {
  const [a, b] = [await fileOf('a.hopline.jsonl', plainAnswer(), 0), await fileOf('b.hopline.jsonl', plainAnswer(), 500)];
  const { code, out } = await hopline('diff', a, b);
  assert.deepEqual([code, out.trim().split('\n').at(-1)], [0, 'same']);
  assert.match(out, /^A task-1: 9 tokens, 33 characters in 9 chunks, 13 frames, 285 ms, first text after 50 ms, writer 255 ms$/m);
});

test('diff names each part that differs and where, in two colors on a terminal, and exits with 1', async () => {
  const changed = plainAnswer();
  const record = changed.inputs[4]!.record;
  if ('inputs' in record && record.inputs[0]?.kind === 'text') record.inputs[0].tokens = [' the'];
  const [a, b] = [await fileOf('a.hopline.jsonl', plainAnswer(), 0), await fileOf('c.hopline.jsonl', changed, 0)];
  const { code, out } = await hopline('diff', a, b);
  assert.equal(code, 1);
  assert.deepEqual(out.trim().split('\n').slice(2), [
    'artifact a: differs from character 11',
    '  A "Once upon a time there was a log."',
    '  B "Once upon the time there was a log."',
    '1 part differs',
  ]);
  const json = JSON.parse((await hopline('diff', a, b, '--json')).out) as { same: boolean; differences: unknown[] };
  assert.deepEqual([json.same, json.differences.length], [false, 1]);
  const colorsOf = async (isTTY: boolean, environment: Record<string, string | undefined>, ...more: string[]) =>
    (await runWith(folder, ['diff', a, b, ...more], environment, isTTY)).out
      .split('\n')
      .filter(line => line.includes('\x1b'))
      .map(line => line.slice(0, '\x1b[31m  A'.length));
  const terminal = { NO_COLOR: undefined, TERM: 'xterm' };
  assert.deepEqual(await colorsOf(true, terminal), ['\x1b[31m  A', '\x1b[32m  B']);
  assert.deepEqual(await colorsOf(true, { ...terminal, NO_COLOR: '1' }), []);
  assert.deepEqual(await colorsOf(true, terminal, '--json'), []);
  assert.deepEqual(await colorsOf(false, terminal), []);
});

test('a missing file is a usage error, and so is a single task', async () => {
  assert.equal((await hopline('diff', 'one')).code, 2);
  assert.equal((await hopline('diff', 'one', 'two', 'three')).code, 2);
  assert.match((await hopline('diff', './none', './none')).err, /there is no file \.\/none/);
});
