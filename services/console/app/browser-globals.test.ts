import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { nodeGlobalsIn } from '../../../test/kit/node-globals.ts';

const DIST = new URL('../dist/', import.meta.url);

test('the pages of the console and of a file use no globals of Node, in any branch', () => {
  const scripts = readdirSync(DIST, { recursive: true, encoding: 'utf8' }).filter(name => /\.(js|html)$/.test(name));
  assert.ok(scripts.includes('file-page.html') && scripts.some(name => name.endsWith('.js')), scripts.join(', '));
  for (const name of scripts) assert.deepEqual(nodeGlobalsIn(readFileSync(new URL(name, DIST), 'utf8')), [], name);
});

test('the check finds each use, but not members or words of the same name', () => {
  const uses = ['Buffer.from(a)', 'x||Buffer.byteLength(a)', 'process.env', 'global[a]', 'setImmediate(a)'];
  for (const use of uses) assert.equal(nodeGlobalsIn(use).length, 1, use);
  const others = ['new ArrayBuffer(8)', 'a.Buffer.from(b)', '}process(e,t){', '"another process."'];
  for (const other of others) assert.deepEqual(nodeGlobalsIn(other), [], other);
});
