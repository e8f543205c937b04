import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openRig } from '@hopline/a2a-http/test-kit';
import { openAIFront } from './openai-front.ts';

test('a request that needs no task counts against the limits of its caller, whatever its size', async t => {
  const rig = await openRig(t, {
    fronts: [openAIFront({ agents: () => [] })],
    limits: { ownerRequestBytesPerSecond: 1, ownerRequestBytesBurst: 60_000, bodyBytesMax: 60_000 },
  });
  const askTitle = async (characters: number) => {
    const content = `### Task:\nWrite a title.\n### Output:\nJSON format: { "title": "…" }\n${'x'.repeat(characters)}\n<chat_history>\nUSER: hello\n</chat_history>`;
    const response = await fetch(`${rig.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'hopline', messages: [{ role: 'user', content }] }),
    });
    return response.status;
  };
  assert.deepEqual([await askTitle(10_000), await askTitle(40_000)], [200, 200]);
  assert.deepEqual([await askTitle(10_000), await askTitle(40_000)], [429, 429]);
});
