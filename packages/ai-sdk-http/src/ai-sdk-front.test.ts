import assert from 'node:assert/strict';
import { test } from 'node:test';
import { JSON_DEPTH_MAX } from '@hopline/a2a';
import { openRig } from '@hopline/a2a-http/test-kit';
import { aiSdkFront } from './ai-sdk-front.ts';

test("a second answer to a question joins the running turn as a message, and both pages show the turn's answer", async t => {
  const rig = await openRig(t, { fronts: [aiSdkFront] });
  const { relay } = rig;
  const gone = Promise.withResolvers<void>();
  const both = Promise.withResolvers<string>();
  relay.onClient = async (taskId, { turn }) => {
    if (turn === 1) {
      await relay.publish(taskId, { kind: 'status', state: 'TASK_STATE_WORKING' });
      return relay.end(taskId, 'INPUT_REQUIRED');
    }
    if (turn < 3) return;
    both.resolve(taskId);
    await gone.promise;
    await relay.openArtifact(taskId, 'l3', 'response');
    await relay.text(taskId, 'l3', 'Blue it is.', true);
    await relay.end(taskId);
  };
  const user = (id: string, text: string) => ({ id, role: 'user', parts: [{ type: 'text', text }] });
  const post = (messages: object[]) =>
    fetch(`${rig.url}/ui/chat`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ id: 'chat', messages }),
    });
  const question = await (await post([user('m1', 'paint')])).text();
  const [, taskId] = /"taskId":"([^"]+)"/.exec(question)!;
  const asked = { id: 'a1', role: 'assistant', parts: [], metadata: { hopline: { state: 'input-required', taskId } } };
  const answers = await Promise.all(['blue', 'red'].map(text => post([user('m1', 'paint'), asked, user(text, text)])));
  assert.equal(await both.promise, taskId);
  const resumed = await fetch(`${rig.url}/ui/chat/chat/stream`);
  gone.resolve();
  for (const response of [...answers, resumed]) {
    assert.equal(response.status, 200);
    assert.match(await response.text(), /Blue it is\.[\s\S]*"finishReason":"stop"[\s\S]*\[DONE\]/);
  }
});

test('a body may nest JSON_DEPTH_MAX levels; a deeper one is rejected, and nothing of it is stored', async t => {
  const rig = await openRig(t, { fronts: [aiSdkFront], limits: { firstFactMsMax: 5_000 } });
  rig.relay.onClient = taskId => rig.relay.answer(taskId, ['ok']);
  /** Posts text, because `JSON.stringify` cannot write deep values. The body has `levels` levels, five of which surround the data. */
  const post = async (levels: number) => {
    const data = '['.repeat(levels - 5) + ']'.repeat(levels - 5);
    const body = `{"id":"chat","messages":[{"id":"m${levels}","role":"user","parts":[{"type":"data-x","data":${data}}]}]}`;
    const response = await fetch(`${rig.url}/ui/chat`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
    });
    return { status: response.status, text: await response.text() };
  };
  const accepted = await post(JSON_DEPTH_MAX);
  assert.equal(accepted.status, 200);
  assert.match(accepted.text, /"finishReason":"stop"/);
  const stored = (await rig.log.inputs.extent()).lastSeq;
  for (const levels of [JSON_DEPTH_MAX + 1, 5_000, 200_000]) {
    const { status, text } = await post(levels);
    assert.deepEqual([levels, status], [levels, 400]);
    assert.match(text, /the body must not nest deeper than 64 levels/);
  }
  assert.equal((await rig.log.inputs.extent()).lastSeq, stored);
  assert.ok(!rig.lines.some(({ message }) => message === 'request failed'));
});
