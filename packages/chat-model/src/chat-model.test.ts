import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { startTelemetry } from '@hopline/telemetry';
import { createChatModel } from './chat-model.ts';
import { ModelError } from './model-error.ts';

/** A model that calls the tool `look` with these arguments. */
async function calling(t: TestContext, args: string): Promise<string> {
  const chunk = (delta: object, finish_reason: string | null = null) =>
    `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason }] })}\n\n`;
  const call = { index: 0, id: 'call-1', type: 'function', function: { name: 'look', arguments: args } };
  const server = createServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.end(`${chunk({ role: 'assistant', tool_calls: [call] })}${chunk({}, 'tool_calls')}data: [DONE]\n\n`);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test('a step counts as ok only when its calls can be read', async t => {
  const telemetry = await startTelemetry({ service: 'sub-agent', version: '1', instance: 'i', env: {} });
  t.after(() => telemetry.shutdown());
  const run = async (name: string, args: string) => {
    const model = createChatModel({ model: name, baseUrl: await calling(t, args), limits: { triesMax: 1 } });
    const step = model.step({ messages: [], tools: [], trace: {}, signal: AbortSignal.timeout(30_000) });
    for (let next = await step.next(); ; next = await step.next()) if (next.done === true) return next.value.calls;
  };
  assert.deepEqual(await run('whole', '{"at":"it"}'), [{ id: 'call-1', name: 'look', args: { at: 'it' } }]);
  await assert.rejects(run('list', '["it"]'), (error: ModelError) => error instanceof ModelError && error.code === 'half_a_call');
  const outcomes = [
    ...(await telemetry.metricsText()).matchAll(/duration_seconds_count\{.*model="(\w+)".*outcome="(\w+)".*\} 1/g),
  ];
  assert.deepEqual(
    outcomes.map(([, model, outcome]) => [model, outcome]),
    [
      ['whole', 'ok'],
      ['list', 'failed'],
    ],
  );
});
