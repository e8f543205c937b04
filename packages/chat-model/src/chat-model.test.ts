import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { inspect } from 'node:util';
import { inWork, startTelemetry } from '@hopline/telemetry';
import { listen } from '../../../test/kit/listen.ts';
import { createChatModel } from './chat-model.ts';
import { ModelError } from './model-error.ts';

/** A model that calls the tool `look` with these arguments. */
async function calling(t: TestContext, args: string, usage?: object): Promise<string> {
  const chunk = (delta: object, finish_reason: string | null = null) =>
    `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason }] })}\n\n`;
  const call = { index: 0, id: 'call-1', type: 'function', function: { name: 'look', arguments: args } };
  const counted = usage === undefined ? '' : `data: ${JSON.stringify({ id: 'c', choices: [], usage })}\n\n`;
  const server = createServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.end(`${chunk({ role: 'assistant', tool_calls: [call] })}${chunk({}, 'tool_calls')}${counted}data: [DONE]\n\n`);
  });
  const origin = await listen(server);
  t.after(() => server.close());
  return origin;
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
  const shown = [...(await telemetry.metricsText()).matchAll(/operation_duration_seconds_count\{(.*)\} 1/g)].map(
    ([, labels]) => labels,
  );
  const request = (model: string) =>
    `service="sub-agent",agent="other",gen_ai_operation_name="chat",gen_ai_provider_name="openai",gen_ai_request_model="${model}"`;
  assert.deepEqual(shown, [request('whole'), `${request('list')},error_type="half_a_call"`]);
});

test('the author sees what a provider refused in a few lines, without the request', async t => {
  const server = createServer((_request, response) => {
    response.writeHead(404, { 'content-type': 'application/json', 'x-hint': 'a' }).end('{"error":{"message":"no model smal"}}');
  });
  const baseUrl = await listen(server);
  t.after(() => server.close());
  const model = createChatModel({ model: 'smal', baseUrl, limits: { triesMax: 1 } });
  const messages = [{ role: 'user' as const, text: 'my question' }];
  const step = model.step({ messages, tools: [], trace: {}, signal: AbortSignal.timeout(30_000) });
  const { cause } = (await step.next().then(
    () => assert.fail('refused'),
    error => error,
  )) as ModelError;
  const members = inspect(cause)
    .replaceAll(/^ {4}at .*\n?/gm, '')
    .split('\n');
  assert.deepEqual(members, [
    'APICallError [AI_APICallError]: no model smal',
    `  url: '${baseUrl}/chat/completions',`,
    '  statusCode: 404,',
    `  responseBody: '{"error":{"message":"no model smal"}}'`,
    '}',
  ]);
  assert.equal((cause as { responseHeaders: Record<string, string> }).responseHeaders['x-hint'], 'a', 'code can read all of it');
});

test('tokens, including cached and reasoning ones, and their cost are counted by agent and tenant', async t => {
  const telemetry = await startTelemetry({ service: 'sub-agent', version: '1', instance: 'i', env: {} });
  t.after(() => telemetry.shutdown());
  const folder = mkdtempSync(join(tmpdir(), 'hopline-prices-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const pricesFile = join(folder, 'prices.json');
  const models = { 'lab/large': { input: 2, cachedInput: 0.5, output: 10 } };
  writeFileSync(pricesFile, JSON.stringify({ models }));
  const usage = {
    prompt_tokens: 1_100,
    completion_tokens: 50,
    prompt_tokens_details: { cached_tokens: 1_000 },
    completion_tokens_details: { reasoning_tokens: 40 },
  };
  const baseUrl = await calling(t, '{}', usage);
  const owner = { tenant: 'acme', subject: 'eva' };
  const { tenant } = telemetry.metrics.parties.of(owner);
  await inWork({ agent: 'guide', taskId: 't', contextId: 'c', owner, tenant }, async () => {
    for (const model of ['lab/large', 'unpriced']) {
      const step = createChatModel({ model, baseUrl, pricesFile }).step({
        messages: [],
        tools: [],
        trace: {},
        signal: AbortSignal.timeout(30_000),
      });
      for (let next = await step.next(); next.done !== true; ) next = await step.next();
    }
  });
  const text = await telemetry.metricsText();
  const of = 'service="sub-agent",agent="guide",tenant="acme",model="lab/large"';
  for (const [kind, tokens] of Object.entries({ input: 1_100, cached: 1_000, output: 50, reasoning: 40 }))
    assert.ok(text.includes(`hopline_tenant_model_tokens_total{${of},kind="${kind}"} ${tokens}\n`), kind);
  // (100 * 2 + 1000 * 0.5 + 50 * 10) / 1,000,000
  assert.ok(text.includes(`hopline_tenant_model_cost_total{${of}} 0.0012\n`), text.match(/model_cost.*/g)?.join('\n') ?? '');
  assert.doesNotMatch(text, /model_cost_total\{.*unpriced/);
  const usages = [
    ...text.matchAll(/gen_ai_client_token_usage_sum\{.*gen_ai_request_model="lab\/large",gen_ai_token_type="(\w+)"\} (\d+)/g),
  ];
  assert.deepEqual(
    usages.map(([, type, sum]) => [type, sum]),
    [
      ['input', '1100'],
      ['output', '50'],
    ],
  );
});

test('a key or header that no request can have fails when the model is created, and is not quoted', () => {
  const create = (more: object) => createChatModel({ model: 'm', baseUrl: 'http://127.0.0.1:1', ...more });
  const hasNoValue = (message: string) => ({ name: 'RangeError', message });
  assert.throws(
    () => create({ apiKey: 'sk-“secret”' }),
    hasNoValue('the API key of the model has characters that an HTTP header cannot have'),
  );
  assert.throws(
    () => create({ apiKey: 'secret\n' }),
    hasNoValue('the API key of the model has characters that an HTTP header cannot have'),
  );
  assert.throws(
    () => create({ apiKey: 'sk', headers: { 'x-org': 'é' } }),
    hasNoValue('the header x-org of the model has characters that an HTTP header cannot have'),
  );
  assert.doesNotThrow(() => create({ apiKey: 'sk-1', headers: { 'x-org': 'a b', 'x-empty': '' } }));
});

test('a price file that cannot be used fails when the model is created, and is not quoted', t => {
  const folder = mkdtempSync(join(tmpdir(), 'hopline-prices-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const pricesFile = join(folder, 'prices.json');
  const create = () => createChatModel({ model: 'm', baseUrl: 'http://127.0.0.1:1', pricesFile });
  assert.throws(create, /cannot be read as JSON$/);
  for (const text of [
    '{"models":"secret"}',
    '{"models":{"m":{"input":"secret","output":1}}}',
    '{"models":{"m":{"input":-1,"output":1}}}',
  ]) {
    writeFileSync(pricesFile, text);
    assert.throws(
      create,
      (error: Error) => /^HOPLINE_MODEL_PRICES_FILE/.test(error.message) && !error.message.includes('secret'),
    );
  }
});
