import assert from 'node:assert/strict';
import test from 'node:test';
import { agentLabel, CLOSED_WORD_CHARS_MAX, closedWord, errorWord } from './closed-word.ts';

test('words of closed lists pass', () => {
  for (const word of ['window', 'slow_viewer', 'TASK_STATE_COMPLETED', 'http.500', 'after-end'])
    assert.equal(closedWord(word), word);
});

test('sentences, ids and long words become `other`', () => {
  const bad = [
    '',
    'could not read "my secret"',
    '0198f3b2-7c00-7000-8000-000000000001',
    'task-0198f3b2c',
    'task_12345',
    'a\n',
    '{"a":1}',
  ];
  for (const word of bad) assert.equal(closedWord(word), 'other', word);
});

test('CLOSED_WORD_CHARS_MAX is inclusive', () => {
  assert.equal(closedWord('w'.repeat(CLOSED_WORD_CHARS_MAX)), 'w'.repeat(CLOSED_WORD_CHARS_MAX));
  assert.equal(closedWord('w'.repeat(CLOSED_WORD_CHARS_MAX + 1)), 'other');
  assert.equal(agentLabel('a'.repeat(CLOSED_WORD_CHARS_MAX + 1)), 'other');
});

test('an agent name passes, other text does not', () => {
  assert.equal(agentLabel('argocd'), 'argocd');
  assert.equal(agentLabel('Weather Agent 2'), 'Weather Agent 2');
  assert.equal(agentLabel('hello\nworld'), 'other');
});

test('an error is the code of the system error behind it, else its name, never its message', () => {
  const refused = Object.assign(new Error('connect ECONNREFUSED 10.0.0.1:1'), { code: 'ECONNREFUSED' });
  assert.equal(errorWord(new TypeError('PLANTED', { cause: new Error('PLANTED', { cause: refused }) })), 'ECONNREFUSED');
  assert.equal(errorWord(new RangeError('PLANTED')), 'RangeError');
  assert.equal(errorWord(Object.assign(new Error('PLANTED'), { code: 'a PLANTED code' })), 'Error');
  assert.equal(errorWord('PLANTED'), 'failed');
});
