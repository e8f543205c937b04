import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { loadRecording, OFFSET_MS_MAX, parseRecording, RecordingError, TOKENS_MAX } from './recording.ts';

const refuses = (content: string, message: RegExp) =>
  assert.throws(
    () => parseRecording(content, 'x.jsonl'),
    (error: unknown) => error instanceof RecordingError && message.test(error.message),
  );

test('tokens keep their bytes, including white space and half a surrogate pair; empty lines are skipped', () => {
  const tokens = ['H', ' ', '\n', '\ud83d', '\udd27', 'e\u0301'];
  const content = `${tokens.map(t => JSON.stringify({ t })).join('\n\n')}\n`;
  assert.deepEqual(parseRecording(content, 'x').tokens, tokens);
});

test('only text is played: other kinds are skipped', () => {
  const content = '{"i":0,"k":"reasoning","t":"hm"}\n{"i":1,"k":"text","t":"a"}\n{"t":"b"}\n';
  assert.deepEqual(parseRecording(content, 'x'), { tokens: ['a', 'b'] });
});

test('times are kept when every token has one', () => {
  assert.deepEqual(parseRecording('{"t":"a","ms":0}\n{"t":"b","ms":12.5}', 'x').offsetsMs, [0, 12.5]);
  assert.equal(parseRecording('{"t":"a","ms":0}\n{"t":"b"}', 'x').offsetsMs, undefined);
});

test('an error for a garbled file names the line, but not its content', () => {
  refuses('{"t":"a"}\n{"t":secret}', /^recording x\.jsonl, line 2: not JSON$/);
  refuses('7', /line 1: not an object/);
  refuses('{"t":7}', /"t" must be a string/);
  refuses('{"t":"a","k":1}', /"k" must be a string/);
  refuses('{"t":"a","ms":-1}', /"ms" must be a number/);
  refuses(`{"t":"a","ms":${OFFSET_MS_MAX + 1}}`, /"ms" must be a number/);
  refuses('{"t":"a","ms":5}\n{"t":"b","ms":4}', /line 2: ms goes back in time/);
  refuses('', /has no text/);
});

test('the number of tokens is bounded', () => {
  const line = '{"t":"a"}\n';
  assert.equal(parseRecording(line.repeat(TOKENS_MAX), 'x').tokens.length, TOKENS_MAX);
  refuses(line.repeat(TOKENS_MAX + 1), /more than 1000000 tokens/);
});

test('a missing file is named in the error', async t => {
  const folder = await mkdtemp(join(tmpdir(), 'recording-'));
  t.after(() => rm(folder, { recursive: true }));
  await assert.rejects(loadRecording(join(folder, 'none.jsonl')), /none\.jsonl does not exist/);
  await assert.rejects(loadRecording(folder), RecordingError);
  await writeFile(join(folder, 'one.jsonl'), '{"t":"a"}\n');
  assert.deepEqual(await loadRecording(join(folder, 'one.jsonl')), { tokens: ['a'] });
});
