import assert from 'node:assert/strict';
import { closeSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { boundLog, faultInLog, logSize, openLog } from './log-file.ts';

function newLog(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'hopline-'));
  t.after(() => rmSync(folder, { recursive: true }));
  return join(folder, 'relay-1.log');
}

test('an oversized log is moved once and continues from its start', t => {
  const path = newLog(t);
  const file = openLog(path);
  writeSync(file, '0123456789');
  boundLog(path, 10);
  assert.ok(!existsSync(`${path}.1`), 'at the limit it stays');
  writeSync(file, 'x');
  boundLog(path, 10);
  writeSync(file, 'new');
  closeSync(file);
  assert.equal(readFileSync(`${path}.1`, 'utf8'), '0123456789x');
  assert.equal(readFileSync(path, 'utf8'), 'new');
  assert.equal(statSync(path).mode & 0o077, 0, 'logs are for their owner');
});

test('the fault of a process is its own text without frames, or the message of its last JSON line', t => {
  const path = newLog(t);
  assert.equal(faultInLog(path), '');
  const file = openLog(path);
  assert.equal(faultInLog(path), '');
  writeSync(file, 'relay: an earlier start\n');
  const from = logSize(path);
  assert.equal(faultInLog(path, from), '');
  writeSync(file, '{"level":"info","msg":"starting"}\nrelay: a.ts cannot be loaded\n  SyntaxError: no\n      at a.ts:1:2\n');
  assert.equal(faultInLog(path, from), 'relay: a.ts cannot be loaded\n  SyntaxError: no');
  writeSync(file, '{"level":"fatal","msg":"start failed","err":{"message":"connection refused"}}\n');
  assert.equal(faultInLog(path, from), 'start failed: connection refused');
  writeSync(file, 'z'.repeat(20_000));
  closeSync(file);
  assert.equal(faultInLog(path).length, 1000);
});
