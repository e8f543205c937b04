import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '@hopline/a2a';
import { call, open, openRig, post, sendParams, userMessage } from './http-server.test-kit.ts';
import { rest } from './rest.test-kit.ts';

const outputModes = () => ['text/plain', 'application/json'];

/** Params of a send that accepts only some output modes, in each dialect. */
const paramsWithModes = {
  '1.0': (acceptedOutputModes: string[]): JsonObject => ({ message: userMessage('x'), configuration: { acceptedOutputModes } }),
  '0.3': (acceptedOutputModes: string[]): JsonObject => ({
    ...sendParams(userMessage('x'), '0.3'),
    configuration: { acceptedOutputModes },
  }),
  legacy: (acceptedOutputModes: string[]): JsonObject => ({
    id: crypto.randomUUID(),
    message: { role: 'user', parts: [{ type: 'text', text: 'x' }] },
    acceptedOutputModes,
  }),
};
const DIALECTS = ['1.0', '0.3', 'legacy'] as const;

test('unmatched output modes are -32005 in every dialect, for sends and streams, and no task starts [S4-38]', async t => {
  const rig = await openRig(t, { outputModes });
  const begun: string[] = [];
  rig.relay.onClient = taskId => {
    begun.push(taskId);
    return rig.relay.answer(taskId, ['ok']);
  };
  for (const dialect of DIALECTS) {
    for (const method of ['send', 'stream'] as const) {
      const response = await post(rig, method, paramsWithModes[dialect](['image/png', 'audio/*']), { dialect });
      assert.match(response.headers.get('content-type') ?? '', /^application\/json/);
      const { error } = (await response.json()) as { error: { code: number; data: unknown } };
      assert.equal(error.code, -32005, `${dialect} ${method}`);
      assert.doesNotMatch(JSON.stringify(error), /png|audio/);
    }
  }
  const refused = await rest(rig, 'POST /message:send', { body: paramsWithModes['1.0'](['image/png']) });
  assert.deepEqual([refused.status, refused.body.error.details[0].reason], [400, 'CONTENT_TYPE_NOT_SUPPORTED']);
  assert.deepEqual(begun, []);
});

test('one matching mode is enough; a card without modes matches all [S4-38]', async t => {
  const rig = await openRig(t, { outputModes });
  const silent = await rig.another({ outputModes: () => [] });
  rig.relay.onClient = taskId => rig.relay.answer(taskId, ['ok']);
  for (const dialect of DIALECTS) {
    for (const modes of [['image/png', 'text/*'], ['text'], [], ['APPLICATION/JSON; charset=utf-8']]) {
      assert.equal(
        (await call(rig, 'send', paramsWithModes[dialect](modes), { dialect })).error,
        undefined,
        `${dialect} ${modes}`,
      );
    }
    assert.equal((await call(silent, 'send', paramsWithModes[dialect](['image/png']), { dialect })).error, undefined);
    assert((await (await open(rig, 'stream', paramsWithModes[dialect](['*/*']), { dialect })).rest()).length > 1);
  }
});
