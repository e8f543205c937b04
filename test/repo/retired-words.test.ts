import assert from 'node:assert/strict';
import { test } from 'node:test';
import { areaOf, describeUse, pendingAreas, retiredIn, retiredUses, splitWords } from './retired-words-search.ts';

const uses = retiredUses();
const pending = pendingAreas();

test('no clean area uses a retired word', () => {
  const found = uses.filter(({ path }) => !pending.includes(areaOf(path)));
  assert.deepEqual(found.map(describeUse), []);
});

test('areas that have become clean are no longer pending', () => {
  const dirty = new Set(uses.map(({ path }) => areaOf(path)));
  assert.deepEqual(
    pending.filter(area => !dirty.has(area)),
    [],
    'run: node test/repo/retired-words-report.ts --shrink',
  );
});

test('identifiers of every style are split into words', () => {
  assert.equal(splitWords('isToldBy IS_TOLD_BY is-told-by'), 'is told by is told by is told by');
  assert.equal(splitWords('parseURLPath'), 'parse url path');
});

test('retired words are found in identifiers and prose, and not inside other words', () => {
  const wordsIn = (text: string) => retiredIn(text).map(({ word }) => word);
  assert.deepEqual(wordsIn('const isToldByWebhook = log.say(SayOptions);'), ['say', 'tell']);
  assert.deepEqual(wordsIn('HOPLINE_CARRY_AFTER_MS, hopline_hand_backs, BEAT_MS'), ['carry', 'hand back', 'beat']);
  assert.deepEqual(wordsIn('// Nobody waits for ever. Who asks is served.'), ['nobody', 'for ever', 'Who …']);
  assert.deepEqual(wordsIn('class HeldTokens extends TaskControl {}'), ['TaskControl', 'HeldTokens']);
  assert.deepEqual(wordsIn('const pile: Pile = new Pulse(hop); // Around 5 ms: Place it here'), ['Pile', 'Pulse']);
  assert.deepEqual(wordsIn('heartbeat indoor essay intelligence carrier; stored whole or not at all; there is none'), []);
  assert.deepEqual(wordsIn('Who is the owner of a task?'), []);
});

test('an area is a package, a service, a folder of test or infra, or the root', () => {
  assert.deepEqual(
    ['packages/log/src/log.ts', 'test/e2e/auth.test.ts', 'infra/RUNBOOK.md', 'docs/contract.md', 'README.md'].map(areaOf),
    ['packages/log', 'test/e2e', 'infra', 'docs', '.'],
  );
});
