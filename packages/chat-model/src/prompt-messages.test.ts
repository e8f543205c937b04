import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Message } from '@hopline/a2a';
import { HISTORY_UNITS_MAX, MODEL_MEDIA, promptMessages } from './prompt-messages.ts';

const message = (role: Message['role'], ...parts: Message['parts']): Message => ({ messageId: 'm', role, parts });

test('system prompt, history, then every part of the message: text unchanged, data as JSON, files named [S2-28]', () => {
  const history = [message('ROLE_USER', { text: ' before ' }), message('ROLE_AGENT', { text: 'answered\n' })];
  const now = message('ROLE_USER', { text: 'now ' }, { data: { a: 1 } }, { url: 'https://x/y', mediaType: 'image/png' });
  assert.deepEqual(promptMessages({ system: 'be kind', history, message: now }), [
    { role: 'system', text: 'be kind' },
    { role: 'user', text: ' before ' },
    { role: 'assistant', text: 'answered\n', calls: [] },
    { role: 'user', text: 'now {"a":1}[file https://x/y image/png]' },
  ]);
});

test('a long history is cut to the newest whole messages; messages without text are left out', () => {
  const half = 'x'.repeat(HISTORY_UNITS_MAX / 2);
  const history = [
    message('ROLE_USER', { text: 'oldest' }),
    message('ROLE_AGENT', { text: half }),
    message('ROLE_AGENT', { text: '' }),
    message('ROLE_USER', { text: half }),
  ];
  const texts = promptMessages({ system: undefined, history, message: message('ROLE_USER', { text: 'now' }) }).map(
    ({ text }) => text,
  );
  assert.deepEqual(texts, [half, half, 'now']);
});

test('a note explains what happens to files', () => {
  const files = message('ROLE_USER', { raw: 'AA==', filename: 'a.png', mediaType: 'image/png' }, { raw: 'AA==' });
  const [prompt] = promptMessages({ system: undefined, history: [], message: files, fileNote: '; the agents get it' });
  assert.equal(prompt?.text, '[file a.png image/png; the agents get it][file ; the agents get it]');
});

test('users’ files that a request can contain and the model can read are part of the prompt, next to their notes', () => {
  const png = { raw: 'AA==', filename: 'a.png', mediaType: 'image/png' };
  const files = message(
    'ROLE_USER',
    { text: 'look' },
    png,
    { url: 'https://x/y.webp', mediaType: 'image/webp' },
    {
      ...{ url: 'https://x/y.pdf', mediaType: 'application/pdf' },
    },
  );
  const promptOf = (media?: readonly string[]) =>
    promptMessages({ system: undefined, history: [files, message('ROLE_AGENT', png)], message: files, ...(media && { media }) });
  const text = 'look[file a.png image/png][file https://x/y.webp image/webp][file https://x/y.pdf application/pdf]';
  const sent = [png, { url: 'https://x/y.webp', mediaType: 'image/webp' }];
  const answer = { role: 'assistant', text: '[file a.png image/png]', calls: [] };
  assert.deepEqual(promptOf(MODEL_MEDIA), [{ role: 'user', text, files: sent }, answer, { role: 'user', text, files: sent }]);
  assert.deepEqual(promptOf(['image/webp'])[2], { role: 'user', text, files: [sent[1]] });
  assert.deepEqual(promptOf(), [{ role: 'user', text }, answer, { role: 'user', text }]);
});

test('a file of the history that does not fit is only named, and one of the message is never left out', () => {
  const large = message('ROLE_USER', { raw: 'A'.repeat(HISTORY_UNITS_MAX), mediaType: 'image/png' });
  const small = message('ROLE_USER', { raw: 'AA==', mediaType: 'image/png' });
  const prompt = promptMessages({ system: undefined, history: [small, large, small], message: large, media: ['image/*'] });
  assert.deepEqual(
    prompt.map(one => 'files' in one),
    [true, false, true, true],
  );
});
