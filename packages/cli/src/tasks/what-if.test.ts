import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { WhatIfRow } from '@hopline/replay';
import { plainAnswer, taskFileOf } from '@hopline/replay/test-kit';
import { runWith } from '../run-with.test-kit.ts';

let folder: string;
let path: string;
let second: string;

before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'hopline-what-if-'));
  path = join(folder, 'answer.hopline.jsonl');
  second = join(folder, 'second.hopline.jsonl');
  for (const file of [path, second]) writeFileSync(file, await taskFileOf(plainAnswer().stored()));
});
after(() => rmSync(folder, { recursive: true, force: true }));

const hopline = (...argv: string[]) => runWith(folder, argv);

test('a table has a row for the recording and one for each setting, with bars', async () => {
  const { code, out } = await hopline('what-if', path, '--event-cost', '0', '--event-cost', '2000', '--hold-max', '1000');
  const [title, legend, head, recorded, each, costly] = out.split('\n');
  assert.equal(code, 0);
  assert.match(title!, /^1 task, 9 tokens/);
  assert.match(legend!, /^cost: .*optimum: /);
  assert.match(head!, /event cost +hold max +frames.* cost +optimum/);
  assert.match(recorded!, /^ +recorded +\d+ +\d/);
  assert.match(each!, /^ +0 +1000 ms +\d+ +1\.0 +0 ms +0 ms +0 ms +0\.0 +0\.0 +█{24}$/);
  assert.match(costly!, /^ +2000 +1000 ms .*█{24}$/);
});

test('--json prints one object for each row, over all files', async () => {
  const { out } = await hopline('what-if', path, second, '--event-cost', '40', '--profile', 'transparent', '--json');
  const rows = out
    .trim()
    .split('\n')
    .map(line => JSON.parse(line) as WhatIfRow & { tasks: number });
  assert.deepEqual(
    rows.map(({ tasks, tokens, coalesce }) => [tasks, tokens, coalesce?.eventCostMs]),
    [
      [2, 18, undefined],
      [2, 18, 40],
    ],
  );
});

test('settings that a relay refuses, and profiles that add to the recording, are usage errors', async () => {
  for (const [argv, reason] of [
    [['--hold-max', '0'], 'holdMsMax must be from 1'],
    [['--event-cost', 'much'], '--event-cost must be a number'],
    [['--profile', 'caipe'], '--profile must be transparent'],
  ] as const) {
    const { code, err } = await hopline('what-if', path, ...argv);
    assert.deepEqual([code, err.includes(reason)], [2, true], err);
  }
});
