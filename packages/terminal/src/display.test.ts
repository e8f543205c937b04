import assert from 'node:assert/strict';
import { test } from 'node:test';
import { A2AError } from '@hopline/a2a';
import { noticePrinter } from './display.ts';

test('tries that fail for longer than a moment are printed even into a pipe', () => {
  const lines: string[] = [];
  const print = noticePrinter({ note: text => lines.push(`note ${text}`), warn: text => lines.push(`warn ${text}`) });
  const error = new A2AError('UNAVAILABLE', { detail: 'no relay' });
  for (const tries of [1, 4, 5]) print({ kind: 'retry', error, tries, waitMs: 1_000 });
  print({ kind: 'skipped' } as never);
  assert.deepEqual(
    lines.map(line => line.slice(0, 4)),
    ['note', 'note', 'warn', 'note'],
  );
  assert.match(lines[2]!, /no relay; retrying in 1\.0 s/);
});
