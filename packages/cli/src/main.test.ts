import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const MAIN = fileURLToPath(new URL('main.ts', import.meta.url));
const GOLDEN = fileURLToPath(new URL('../../task-file/golden/version-1.hopline.jsonl', import.meta.url));

test('output that cannot be written is an error, whatever the command was', { skip: process.platform !== 'linux' }, async () => {
  for (const argv of [['--help'], ['completion', 'bash'], ['replay', GOLDEN, '--pace', 'max', '--json']]) {
    const full = openSync('/dev/full', 'w');
    const child = spawn(process.execPath, [MAIN, ...argv], { stdio: ['ignore', full, 'pipe'] });
    closeSync(full);
    const [error, [code]] = await Promise.all([text(child.stderr!), once(child, 'exit')]);
    assert.deepEqual([code, error], [1, 'hopline: standard output cannot be written (ENOSPC)\n'], argv.join(' '));
  }
});

test('a reader that has left ends the command without an error', async () => {
  const child = spawn(process.execPath, [MAIN, 'completion', 'bash'], { stdio: ['ignore', 'pipe', 'pipe'] });
  child.stdout.destroy();
  const [error, [code]] = await Promise.all([text(child.stderr), once(child, 'exit')]);
  assert.deepEqual([error, code], ['', 0]);
});
