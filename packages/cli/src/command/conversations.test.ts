import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { Conversations } from './conversations.ts';

test('the last conversation with each server is stored with mode 0600, without credentials', t => {
  const home = mkdtempSync(join(tmpdir(), 'hopline-state-'));
  t.after(() => rmSync(home, { recursive: true }));
  const stored = new Conversations({ HOPLINE_HOME: home, HOME: '/nowhere' });
  assert.equal(stored.last('http://a/'), undefined);
  assert.equal(stored.remember('http://user:SECRET@a/?key=SECRET', { contextId: 'c-1', agent: 'guide' }), true);
  stored.remember('http://b/', { contextId: 'c-2', taskId: 't-2' });
  stored.remember('http://b/', { contextId: 'c-3' });
  assert.deepEqual(stored.last('http://a/'), { contextId: 'c-1', agent: 'guide' });
  assert.deepEqual(new Conversations({ HOPLINE_HOME: home }).last('http://b'), { contextId: 'c-3' });
  const files = readdirSync(join(home, 'conversations')).map(name => join(home, 'conversations', name));
  assert.equal(files.length, 2);
  for (const file of files) {
    assert.equal(statSync(file).mode & 0o777, 0o600);
    assert.doesNotMatch(readFileSync(file, 'utf8'), /SECRET/);
    writeFileSync(file, '{"contextId":7}');
  }
  assert.equal(stored.last('http://a/'), undefined, 'an invalid file counts as none');
});

test('the folder is HOPLINE_HOME, else the XDG state folder, else below HOME; without any of them nothing is stored', t => {
  const home = mkdtempSync(join(tmpdir(), 'hopline-state-'));
  t.after(() => rmSync(home, { recursive: true }));
  for (const [environment, folder] of [
    [{ HOPLINE_HOME: join(home, 'h'), XDG_STATE_HOME: join(home, 'x') }, 'h/conversations'],
    [{ XDG_STATE_HOME: join(home, 'x'), HOME: join(home, 'u') }, 'x/hopline/conversations'],
    [{ HOME: join(home, 'u') }, 'u/.local/state/hopline/conversations'],
  ] as const) {
    assert.equal(new Conversations(environment).remember('http://a/', { contextId: 'c' }), true);
    assert.equal(readdirSync(join(home, folder)).length, 1);
  }
  assert.equal(new Conversations({}).remember('http://a/', { contextId: 'c' }), false);
  assert.equal(new Conversations({}).last('http://a/'), undefined);
});

test('a folder that cannot be written is not an error', () => {
  const stored = new Conversations({ HOPLINE_HOME: import.meta.filename });
  assert.equal(stored.remember('http://a/', { contextId: 'c' }), false);
});
