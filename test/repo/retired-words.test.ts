import assert from 'node:assert/strict';
import { test } from 'node:test';
import { describeUse, retiredIn, retiredUses, splitWords } from './retired-words-search.ts';

test('no name, comment, message or document uses a retired word', () => {
  assert.deepEqual(retiredUses().map(describeUse), []);
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

test('sentences that read as translated are found, and their native forms are not', () => {
  const wordsIn = (text: string) => retiredIn(text).map(({ word }) => word);
  assert.deepEqual(wordsIn('/** Of a longer difference its beginning is shown. */'), ['Of …']);
  assert.deepEqual(wordsIn("test('a body that is no JSON is refused', () => {"), ['is no X']);
  assert.deepEqual(wordsIn('// The local cluster serves HTTP alone.'), ['alone']);
  assert.deepEqual(wordsIn('// Read once. What is stored later is not part of it.'), ['What is …']);
  assert.deepEqual(wordsIn('/** Interval of the checks; milliseconds. */'), [', unit.']);
  assert.deepEqual(wordsIn('/** Longest wait for a call, milliseconds. Default 5000. */'), [', unit.']);
  assert.deepEqual(wordsIn("// Of Node's package only the program is needed."), ['Of …']);
  assert.deepEqual(wordsIn('// By default, milliseconds: two tries of a publish.'), [', unit.']);
  assert.deepEqual(wordsIn('// Relays of the version before keep it.'), ['the version before']);
  assert.deepEqual(wordsIn('// At the begin of a run it is empty: at the begin of each.'), ['at the begin']);
  assert.deepEqual(wordsIn('/** Overrides of GRPC_LIMITS. */'), ['Overrides of']);
  assert.deepEqual(wordsIn('// It replaces the text of the attempt before.'), ['the run before']);
  assert.deepEqual(wordsIn("test('a stream is resumed, also after its task has ended', () => {"), [', also after']);
  assert.deepEqual(wordsIn('/** A stream that is silent for so long has ended. */'), ['after so many']);
  assert.deepEqual(wordsIn('// The run was begun at a server.'), ['a run at a server']);
  assert.deepEqual(wordsIn('// Of course there is no file, and it is no longer left alone.'), []);
  assert.deepEqual(wordsIn('/** Longest wait, in milliseconds. A version before 1.2 has none at the beginning. */'), []);
  assert.deepEqual(wordsIn('// For so long that it fails; the one before it also ends, even after a run on a server.'), []);
  assert.deepEqual(wordsIn('const { alone, beside } = rounds; // What does it do? It reads one of the files.'), []);
});
