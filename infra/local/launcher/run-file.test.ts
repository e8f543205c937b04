import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { readRunFile, removeRunFile, writeRunFile } from './run-file.ts';

test('run.json has the documented form, is replaced atomically and is read back', t => {
  const folder = mkdtempSync(join(tmpdir(), 'hopline-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'run.json');
  const relay = { service: 'relay', instance: 'relay-1', pid: 4711, url: 'http://127.0.0.1:1', restarts: 0 };
  const down = { ...relay, instance: 'relay-2', pid: null, ending: 'exit code 1' };
  const content = { url: 'http://127.0.0.1:8000/', nats: 'nats://n:4222', logs: '/logs', processes: [relay, down] };
  writeRunFile(path, { ...content, processes: [] });
  writeRunFile(path, content);
  assert.deepEqual(JSON.parse(readFileSync(path, 'utf8')), content);
  assert.deepEqual(readRunFile(path), [relay]);
  assert.equal(statSync(path).mode & 0o777, 0o600);
  assert.deepEqual(readdirSync(folder), ['run.json']);
  for (const text of ['', '{}', '{"processes":[{"pid":-1,"service":"a","instance":"a"},{"pid":"x"},null]}']) {
    writeFileSync(path, text);
    assert.deepEqual(readRunFile(path), []);
  }
  removeRunFile(path);
  assert.deepEqual(readdirSync(folder), []);
});
