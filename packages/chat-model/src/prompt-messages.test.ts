import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Message } from '@hopline/a2a';
import { HISTORY_UNITS_MAX, promptMessages } from './prompt-messages.ts';

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
