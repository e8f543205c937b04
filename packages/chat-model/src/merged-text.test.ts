import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import type { StepEvent } from './chat.ts';
import { createChatModel } from './chat-model.ts';
import { mergedTextFetch } from './merged-text.ts';

/** A server that sends this body in one packet. */
async function serving(t: TestContext, body: string, type = 'text/event-stream'): Promise<string> {
  const server = createServer((_request, response) => {
    response.writeHead(200, { 'content-type': type });
    response.end(body);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const frame = (value: unknown) => `data: ${typeof value === 'string' ? value : JSON.stringify(value)}\n\n`;
const chunk = (delta: object, more: object = {}) =>
  frame({ id: 'c', object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason: null, ...more }] });
const END = `${chunk({}, { finish_reason: 'stop' })}${frame('[DONE]')}`;

async function eventsOf(url: string): Promise<{ events: StepEvent[]; text: string }> {
  const model = createChatModel({ model: 'm', baseUrl: url, limits: { triesMax: 1 } });
  const step = model.step({ messages: [], tools: [], trace: {}, signal: AbortSignal.timeout(30_000) });
  const events: StepEvent[] = [];
  for (;;) {
    const { done, value } = await step.next();
    if (done) return { events, text: value.text };
    events.push(...value);
  }
}

test('texts that arrive together are one event for the library, and leave it one by one', async t => {
  const tokens = ['a', ' ', 'ü', '"', '\\', '\n', '👍', 'Zug', 'x'.repeat(40)];
  const body = `${chunk({ role: 'assistant', content: '' })}${tokens.map(content => chunk({ content, refusal: null })).join('')}${END}`;
  const url = await serving(t, body);
  const merged = await (await mergedTextFetch(1_000_000)(url)).text();
  assert.equal(merged.split('\n\n').length, 4, merged);
  const { events, text } = await eventsOf(url);
  assert.deepEqual(
    events,
    tokens.map(token => ({ type: 'text', text: token })),
  );
  assert.equal(text, tokens.join(''));
});

test('what stands between texts keeps its place', async t => {
  const parts = [
    ...['a', 'b'].map(content => chunk({ content })),
    chunk({ reasoning_content: 'hm' }),
    ...['c', 'd'].map(content => chunk({ content })),
    chunk({ reasoning: 'well', content: 'e' }),
    chunk({ content: [{ type: 'text', text: 'f' }] }),
    ...['g', 'h'].map(content => chunk({ content })),
  ];
  const { events } = await eventsOf(await serving(t, `${parts.join('')}${END}`));
  const short = events.map(event =>
    event.type === 'reasoning' ? `(${event.text})` : event.type === 'text' ? event.text : event.type,
  );
  assert.deepEqual(short, ['a', 'b', '(hm)', 'c', 'd', '(well)', 'e', 'f', 'g', 'h']);
});

test('a text beside what the library reads too passes as it is', async t => {
  const text = (content: string) => chunk({ content });
  const choice = { index: 0, delta: { content: 'x' }, finish_reason: null };
  const others = [
    frame({ choices: [choice], usage: { prompt_tokens: 1 } }),
    frame({ choices: [choice], error: { message: 'overloaded' } }),
    frame({ choices: [{ ...choice, finish_reason: 'length' }] }),
    frame({ choices: [choice, { ...choice, index: 1 }] }),
    frame({ choices: [] }),
    frame({ choices: {} }),
    frame({ choices: ['x'] }),
    frame({ choices: [{ index: 0, delta: 'x' }] }),
    frame([choice]),
  ];
  for (const other of others) {
    const url = await serving(t, [text('a'), other, text('b')].join(''));
    assert.equal(await (await mergedTextFetch(1_000_000)(url)).text(), [text('a'), other, text('b')].join(''));
  }
});

test('what came before an error is yielded before it', async t => {
  const body = `${chunk({ content: 'a' })}${chunk({ content: 'b' })}${frame('{"choices":[{')}`;
  const model = createChatModel({ model: 'm', baseUrl: await serving(t, body), limits: { triesMax: 1 } });
  const step = model.step({ messages: [], tools: [], trace: {}, signal: AbortSignal.timeout(30_000) });
  const texts: string[] = [];
  await assert.rejects(
    async () => {
      for await (const events of step) for (const event of events) if (event.type === 'text') texts.push(event.text);
    },
    { code: 'cut_off' },
  );
  assert.deepEqual(texts, ['a', 'b']);
});

for (const type of ['text/event-stream', 'application/json'])
  test(`a response of ${type} is read up to its bound`, async t => {
    const body = type === 'text/event-stream' ? chunk({ content: 'a'.repeat(100) }) : JSON.stringify('a'.repeat(100));
    const url = await serving(t, body, type);
    const bytes = Buffer.byteLength(body);
    assert.equal(await (await mergedTextFetch(bytes)(url)).text(), body);
    await assert.rejects(async () => (await mergedTextFetch(bytes - 1)(url)).text(), { name: 'ResponseTooLarge' });
  });
