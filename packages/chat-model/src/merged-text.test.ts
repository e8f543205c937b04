import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { type TestContext, test } from 'node:test';
import { setFastPaths } from '@hopline/a2a';
import { testBothWays } from '@hopline/a2a/test-kit';
import fc from 'fast-check';
import { listen } from '../../../test/kit/listen.ts';
import type { Step, StepEvent } from './chat.ts';
import { createChatModel } from './chat-model.ts';
import { mergedTextFetch } from './merged-text.ts';
import type { ModelError } from './model-error.ts';

/** A server that sends the given body in one packet. */
async function serving(t: TestContext, body: string | (() => string), type = 'text/event-stream'): Promise<string> {
  const server = createServer((_request, response) => {
    response.writeHead(200, { 'content-type': type });
    response.end(typeof body === 'string' ? body : body());
  });
  const origin = await listen(server);
  t.after(() => server.close());
  return origin;
}

const frame = (value: unknown) => `data: ${typeof value === 'string' ? value : JSON.stringify(value)}\n\n`;
const chunk = (delta: object, more: object = {}) =>
  frame({ id: 'c', object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason: null, ...more }] });
const END = `${chunk({}, { finish_reason: 'stop' })}${frame('[DONE]')}`;

/** The events of a step, and the step or the code of its error. */
async function outcomeOf(url: string): Promise<{ events: StepEvent[]; step?: Step; failure?: string }> {
  const model = createChatModel({ model: 'm', baseUrl: url, limits: { triesMax: 1 } });
  const step = model.step({ messages: [], tools: [], trace: {}, signal: AbortSignal.timeout(30_000) });
  const events: StepEvent[] = [];
  try {
    for (;;) {
      const { done, value } = await step.next();
      // The library gives a call a random id if its index has been used before.
      const calls = done ? value.calls.map(call => ({ ...call, id: call.id.startsWith('call-') ? call.id : 'random' })) : [];
      if (done) return { events, step: { ...value, calls } };
      events.push(...value);
    }
  } catch (error) {
    return { events, failure: (error as ModelError).code };
  }
}

test('texts that arrive together enter the library as one event and come out one by one', async t => {
  const tokens = ['a', ' ', 'ü', '"', '\\', '\n', '👍', 'Zug', 'x'.repeat(40)];
  const body = `${chunk({ role: 'assistant', content: '' })}${tokens.map(content => chunk({ content, refusal: null })).join('')}${END}`;
  const url = await serving(t, body);
  const merged = await (await mergedTextFetch(1_000_000)(url)).text();
  assert.equal(merged.split('\n\n').length, 4, merged);
  const { events, step } = await outcomeOf(url);
  assert.deepEqual(
    events,
    tokens.map(token => ({ type: 'text', text: token })),
  );
  assert.equal(step?.text, tokens.join(''));
});

const token = fc.oneof(fc.string({ unit: 'grapheme' }), fc.constantFrom('', ' ', '"', '\\', '\n'));
const call = (index: number, args: string) => ({
  tool_calls: [{ index, id: `call-${index}`, type: 'function', function: { name: 'look', arguments: args } }],
});
const usage = { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 };
/** Events as models stream them: mostly text, partly with other members as well. */
const streamed = fc.array(
  fc.oneof(
    { weight: 8, arbitrary: token.map(content => chunk({ content })) },
    { weight: 1, arbitrary: token.map(content => chunk({ role: 'assistant', content, refusal: null })) },
    { weight: 1, arbitrary: token.map(reasoning_content => chunk({ reasoning_content })) },
    { weight: 1, arbitrary: token.map(content => chunk({ content, reasoning_content: 'hm' })) },
    { weight: 1, arbitrary: fc.nat(2).map(index => chunk(call(index, '{}'))) },
    { weight: 1, arbitrary: token.map(content => chunk({ content, ...call(3, '') })) },
    { weight: 1, arbitrary: token.map(content => frame({ choices: [{ index: 0, delta: { content } }], usage })) },
    { weight: 1, arbitrary: fc.constant(': comment\n\n') },
  ),
  { maxLength: 20 },
);

test('a step has the same events as with unmerged texts', async t => {
  let body = '';
  const url = await serving(t, () => body);
  t.after(() => setFastPaths(true));
  await fc.assert(
    fc.asyncProperty(streamed, async frames => {
      body = `${frames.join('')}${END}`;
      setFastPaths(true);
      const merged = await outcomeOf(url);
      setFastPaths(false);
      assert.deepEqual(merged, await outcomeOf(url));
    }),
    { numRuns: 100 },
  );
});

test('without fast paths a response reaches the library unchanged', async t => {
  setFastPaths(false);
  t.after(() => setFastPaths(true));
  const body = `${chunk({ content: 'a' })}${chunk({ content: 'b' })}${END}`;
  assert.equal(await (await mergedTextFetch(1_000_000)(await serving(t, body))).text(), body);
});

test('events between texts keep their order', async t => {
  const parts = [
    ...['a', 'b'].map(content => chunk({ content })),
    chunk({ reasoning_content: 'hm' }),
    ...['c', 'd'].map(content => chunk({ content })),
    chunk({ reasoning: 'well', content: 'e' }),
    chunk({ content: [{ type: 'text', text: 'f' }] }),
    ...['g', 'h'].map(content => chunk({ content })),
  ];
  const { events } = await outcomeOf(await serving(t, `${parts.join('')}${END}`));
  const short = events.map(event =>
    event.type === 'reasoning' ? `(${event.text})` : event.type === 'text' ? event.text : event.type,
  );
  assert.deepEqual(short, ['a', 'b', '(hm)', 'c', 'd', '(well)', 'e', 'f', 'g', 'h']);
});

test('a text is passed on unchanged if its event has other members that the library reads', async t => {
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

test('events before an error are yielded before it', async t => {
  const body = `${chunk({ content: 'a' })}${chunk({ content: 'b' })}${frame('{"choices":[{')}`;
  const { events, failure } = await outcomeOf(await serving(t, body));
  assert.equal(failure, 'cut_off');
  assert.deepEqual(
    events.map(event => 'text' in event && event.text),
    ['a', 'b'],
  );
});

for (const type of ['text/event-stream', 'application/json'])
  testBothWays(`a response of ${type} is read up to its limit`, async t => {
    const body = type === 'text/event-stream' ? chunk({ content: 'a'.repeat(100) }) : JSON.stringify('a'.repeat(100));
    const url = await serving(t, body, type);
    const bytes = Buffer.byteLength(body);
    assert.equal(await (await mergedTextFetch(bytes)(url)).text(), body);
    await assert.rejects(async () => (await mergedTextFetch(bytes - 1)(url)).text(), { name: 'ResponseTooLarge' });
  });
