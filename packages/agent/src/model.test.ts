import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inspect } from 'node:util';
import { bareTurn } from '../../../test/kit/bare-turn.ts';
import { collect } from '../../../test/kit/collect.ts';
import type { Turn } from './agent.ts';
import { defineAgent } from './define-agent.ts';
import { MODEL_STEPS_MAX, MODEL_TOOLS_MAX } from './limits.ts';
import { type ModelOptions, type ModelTool, model } from './model.ts';
import { type ModelReply, type PlayOptions, playTurn } from './test-kit.ts';
import { ToolError } from './tool.ts';

type Script = Parameters<typeof defineAgent>[0]['run'];
const agentOf = (run: Script) => defineAgent({ name: 'kit', description: 'Has a model', run });
const play = (replies: readonly ModelReply[], run: Script, options: PlayOptions = {}) =>
  playTurn(agentOf(run), 'go', { model: replies, ...options });

const weather = (run: ModelTool['run'], more: Partial<ModelTool> = {}): NonNullable<ModelOptions['tools']> => ({
  weather: {
    description: 'The weather of a city',
    parameters: { type: 'object', properties: { city: { type: 'string' } } },
    run,
    ...more,
  },
});
const asksWeather = (...cities: string[]): ModelReply => ({
  text: 'Let me see. ',
  calls: cities.map(city => ({ name: 'weather', args: { city } })),
});

/** The stream of a provider, as recorded by `curl -N`. `cut`: the connection ended early. */
const recorded = (texts: readonly string[], { cut = false } = {}) => {
  const events = [
    ...texts.map(content => ({ choices: [{ index: 0, delta: { content }, finish_reason: null }] })),
    ...(cut ? [] : [{ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }]),
    { choices: [], usage: { prompt_tokens: 9, completion_tokens: texts.length, prompt_tokens_details: { cached_tokens: 4 } } },
  ];
  return `${events.map(event => `data: ${JSON.stringify({ id: 'c-1', ...event })}\n\n`).join('')}data: [DONE]\n\n`;
};

test('the text of a model is the text of the agent, token by token, and its usage counts', async () => {
  const { text, events, end, prompts } = await play([recorded(['Hel', 'lo'])], async function* () {
    yield 'Ada: ';
    const answer = yield* model({ model: 'small', system: 'be brief' });
    assert.equal(answer.text, 'Hello');
    assert.deepEqual(answer.usage, { inputTokens: 9, outputTokens: 2, cachedTokens: 4, reasoningTokens: 0 });
    yield '!';
  });
  assert.deepEqual([text, end.state], ['Ada: Hello!', 'TASK_STATE_COMPLETED']);
  assert.deepEqual(
    events.map(event => (event.type === 'text' ? event.text : event.type)),
    ['Ada: ', 'Hel', 'lo', 'usage', '!'],
  );
  assert.deepEqual(prompts[0]?.messages, [
    { role: 'system', content: 'be brief' },
    { role: 'user', content: 'go' },
  ]);
});

test('its tools run side by side; clients see the calls, and the model reads the results in the order of its calls', async () => {
  const running = new Set<string>();
  let together = 0;
  const { text, tools, prompts } = await play([asksWeather('Rome', 'Oslo'), { text: ['Sun', 'ny'] }], async function* () {
    const both = Promise.withResolvers<void>();
    const tools = weather(async ({ city }) => {
      running.add(String(city));
      together = Math.max(together, running.size);
      if (running.size === 2) both.resolve();
      await both.promise;
      return { city, sky: 'clear' };
    });
    const { messages } = yield* model({ model: 'small', tools });
    assert.deepEqual(
      messages.map(({ role }) => role),
      ['user', 'assistant', 'tool', 'tool', 'assistant'],
    );
  });
  assert.equal(together, 2);
  assert.equal(text, 'Let me see. Sunny');
  assert.deepEqual(
    tools,
    ['Rome', 'Oslo'].map(city => ({
      tool: 'weather',
      arguments: { city },
      result: { city, sky: 'clear' },
      outcome: 'completed',
    })),
  );
  assert.deepEqual(
    prompts[1]?.messages.slice(2).map(({ content, tool_call_id }) => [tool_call_id, content]),
    [
      ['call-1', '{"city":"Rome","sky":"clear"}'],
      ['call-2', '{"city":"Oslo","sky":"clear"}'],
    ],
  );
});

test('for the model, a tool that fails or does not exist is a result, with a message only for a ToolError', async () => {
  const secret = new Error('password 123');
  for (const [error, read] of [
    [new ToolError('no such city'), 'The call failed: no such city'],
    [secret, 'The call failed.'],
  ] as const) {
    const { prompts, notices, tools } = await play([asksWeather('Rome'), { text: 'sorry' }], async function* () {
      const run = () => {
        throw error;
      };
      yield* model({ model: 'small', tools: weather(run, { retries: 1 }) });
    });
    assert.equal(prompts[1]?.messages.at(-1)?.content, read);
    assert.deepEqual(notices, ['weather failed and runs again (1 of 1)']);
    assert.equal(tools[0]?.outcome, 'failed');
  }
  const { prompts, tools } = await play([{ calls: [{ name: 'toString' }] }, { text: 'sorry' }], async function* () {
    yield* model({ model: 'small', tools: weather(() => 1) });
  });
  assert.equal(prompts[1]?.messages.at(-1)?.content, 'No tool has that name.');
  assert.deepEqual(tools, []);
});

test('the model reads a long tool result cut, with a note', async () => {
  const { prompts, tools } = await play([asksWeather('Rome'), { text: 'long' }], async function* () {
    yield* model({ model: 'small', toolResultUnitsMax: 3, tools: weather(() => 'abcdef') });
  });
  assert.equal(prompts[1]?.messages.at(-1)?.content, 'abc\n[cut: 3 more characters]');
  assert.equal(tools[0]?.result, 'abcdef');
});

test('a stream that breaks off is requested again, and only its text is replaced, not the agent’s text before it', async () => {
  const cut = recorded(['Half an '], { cut: true });
  const { text, events } = await play([asksWeather('Rome'), cut, recorded(['whole'])], async function* () {
    yield 'So: ';
    yield* model({ model: 'small', tools: weather(() => 'clear') });
  });
  assert.equal(text, 'So: Let me see. whole');
  assert.deepEqual(
    events.filter(({ type }) => type === 'snapshot'),
    [{ type: 'snapshot', text: 'So: Let me see. ' }],
  );
});

test('a failing model makes the turn fail as in the adapter, with a reason without content', async () => {
  const { end } = await play([{ status: 401 }], async function* () {
    yield* model({ model: 'small' });
  });
  const reason = 'the model provider does not accept the credentials (HTTP 401)';
  assert.deepEqual(end, { state: 'TASK_STATE_FAILED', reason, retryable: false, cause: 'unauthorized' });
  const endless = await play([asksWeather('Rome'), asksWeather('Rome')], async function* () {
    yield* model({ model: 'small', stepsMax: 2, tools: weather(() => 'clear') });
  });
  assert.equal(endless.end.reason, 'the model did not finish within 2 steps');
  assert.equal(endless.end.cause, 'too_many_steps');
});

test('another model may replace a failed one, and the text of the failed step is removed', async () => {
  const cut = recorded(['Half an '], { cut: true });
  const { text, end } = await play([asksWeather('Rome'), cut, recorded(['Whole'])], async function* () {
    const options = { model: 'small', limits: { triesMax: 1 }, tools: weather(() => 'clear') };
    try {
      yield* model(options);
    } catch (error) {
      assert.equal((error as { code?: string }).code, 'cut_off');
      yield* model({ ...options, model: 'large' });
    }
  });
  assert.deepEqual([text, end.state], ['Let me see. Whole', 'TASK_STATE_COMPLETED']);
});

test('a model whose text is not shown has only calls and usage; reasoning becomes artifacts that are numbered within the turn', async () => {
  const thinks: ModelReply = { reasoning: 'hm', text: 'yes' };
  const { text, artifacts } = await play([thinks, thinks], async function* () {
    const { text } = yield* model({ model: 'small', shown: false, reasoning: true });
    yield* model({ model: 'small', shown: false, reasoning: true, messages: [{ role: 'user', text }] });
    yield 'done';
  });
  assert.equal(text, 'done');
  assert.deepEqual(
    artifacts.map(({ name, parts }) => [name, parts.map(part => part.text).join('')]),
    [
      ['reasoning', 'hm'],
      ['reasoning', 'hm'],
    ],
  );
});

test('the messages of an answer continue the conversation, and messages of a client are messages for the model', async () => {
  const { prompts } = await play([{ text: 'one' }, { text: 'two' }], async function* (turn) {
    const { messages } = yield* model({ model: 'small', messages: [turn.message] });
    yield* model({ model: 'small', messages: [...messages, { role: 'user', text: 'and?' }] });
  });
  assert.deepEqual(
    prompts[1]?.messages.map(({ role, content }) => [role, content]),
    [
      ['user', 'go'],
      ['assistant', 'one'],
      ['user', 'and?'],
    ],
  );
});

test('the next attempt does not request stored answers and results again, and shows them in the same way', async () => {
  let runs = 0;
  const agent = agentOf(async function* () {
    const tools = weather(() => {
      runs += 1;
      return `clear ${runs}`;
    });
    yield 'So: ';
    const { usage } = yield* model({ model: 'small', stored: true, tools });
    yield ` (${usage.outputTokens ?? 'unknown'})`;
  });
  const first = await playTurn(agent, 'go', { model: [asksWeather('Rome', 'Oslo'), recorded(['Sun', 'ny'])] });
  assert.equal(first.text, 'So: Let me see. Sunny (2)');
  assert.deepEqual(
    first.steps.map(({ step, n }) => `${step} ${n}`),
    ['model 1', 'weather 1', 'weather 2', 'model 2'],
  );
  // The process has died in the second answer.
  const second = await playTurn(agent, 'go', { attempt: 2, steps: first.steps.slice(0, 3), model: [recorded(['Rainy'])] });
  assert.equal(second.text, 'So: Let me see. Rainy (1)');
  assert.deepEqual([runs, second.prompts.length], [2, 1]);
  assert.deepEqual(second.tools, first.tools);
  assert.equal(second.prompts[0]?.messages.at(-1)?.content, 'clear 2');
  const third = await playTurn(agent, 'go', { attempt: 2, steps: first.steps, model: [] });
  assert.deepEqual([third.text, third.end.state], [first.text, first.end.state]);
});

test('a stored failure of a model is the same failure in the next attempt', async () => {
  const agent = agentOf(async function* () {
    yield* model({ model: 'small', stored: true });
  });
  const first = await playTurn(agent, 'go', { model: [{ status: 403 }] });
  assert.equal(first.end.cause, 'unauthorized');
  const second = await playTurn(agent, 'go', { attempt: 2, steps: first.steps, model: [] });
  assert.deepEqual(second.end, first.end);
});

test('a model whose stored failure is temporary is asked again when the call is repeated', async () => {
  const agent = agentOf(async function* () {
    yield* model({ model: 'small', stored: true, limits: { triesMax: 1 } });
  });
  const first = await playTurn(agent, 'go', { model: [{ status: 503 }] });
  assert.equal(first.end.retryable, true);
  const second = await playTurn(agent, 'go', { attempt: 2, steps: first.steps, model: [recorded(['Sunny'])] });
  assert.deepEqual([second.text, second.prompts.length], ['Sunny', 1]);
});

test('a played turn that makes more requests than it has answers is an error of the test', async () => {
  const asking = play([], async function* () {
    yield* model({ model: 'small' });
  });
  await assert.rejects(asking, /the turn sent 1 requests to models, but `model` has 0 answers/);
});

test('options with which no model can work are misuse, and the error names the member', async () => {
  const tool = weather(() => 1).weather!;
  const many = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, n) => [`t${n}`, tool]));
  const cases: [unknown, RegExp | undefined][] = [
    ['small', /its argument is a string/],
    [{ model: '' }, /model: model is empty/],
    [{ model: 'x', baseUrl: 'localhost:1' }, /baseUrl must be/],
    [{ model: 'x', stepsMax: MODEL_STEPS_MAX }, undefined],
    [{ model: 'x', stepsMax: MODEL_STEPS_MAX + 1 }, /stepsMax must be a whole number from 1 to 128/],
    [{ model: 'x', toolResultUnitsMax: 0 }, /toolResultUnitsMax must be/],
    [{ model: 'x', messages: ['hi'] }, /messages must be a list/],
    [{ model: 'x', messages: [{ role: 'assistant', text: 'hi' }] }, /messages must be a list/],
    [{ model: 'x', tools: many(MODEL_TOOLS_MAX) }, undefined],
    [{ model: 'x', tools: many(MODEL_TOOLS_MAX + 1) }, /129 tools are more than 128/],
    [{ model: 'x', tools: { 'a b': tool } }, /the name of a tool/],
    [{ model: 'x', tools: { a: { description: 'A' } } }, /tool a needs description, parameters and run/],
  ];
  for (const [options, fault] of cases) {
    const { end } = await play([{ text: 'ok' }], async function* () {
      yield* model(options as ModelOptions);
    });
    if (fault === undefined) assert.equal(end.state, 'TASK_STATE_COMPLETED');
    else assert.match(end.reason ?? '', fault);
  }
});

/** A turn whose models ask this server. */
const turnWith = (answer: () => Response, showError: (error: unknown) => void): Turn =>
  bareTurn({ modelFetch: async () => answer(), showError });

test('the author sees why a provider refuses a request; clients do not', async () => {
  const body = JSON.stringify({ error: { message: 'there is no model of the name smal', code: 'model_not_found' } });
  const headers = { 'content-type': 'application/json' };
  const refuse = () => new Response(body, { status: 400, headers });
  const shown: unknown[] = [];
  const agent = agentOf(async function* () {
    yield* model({ model: 'smal' });
  });
  const reason = 'the model provider refused the request (HTTP 400)';
  assert.deepEqual(await collect(agent.run(turnWith(refuse, error => shown.push(error)))), [
    { type: 'failed', reason, retryable: false, cause: 'refused' },
  ]);
  assert.match(inspect(shown), /there is no model of the name smal/);
  const catching = agentOf(async function* () {
    try {
      yield* model({ model: 'smal' });
    } catch (error) {
      yield `${(error as Error).message}: ${((error as Error).cause as Error).message}`;
    }
  });
  const [event] = await collect(catching.run(turnWith(refuse, () => assert.fail())));
  assert.deepEqual(event, { type: 'text', text: `${reason}: there is no model of the name smal` });
});

test('an undefined limit of a model is the default', async () => {
  let requests = 0;
  const busy = () => {
    requests += 1;
    return new Response('{}', { status: requests > 3 ? 401 : 503 });
  };
  const agent = agentOf(async function* () {
    yield* model({ model: 'small', limits: { triesMax: undefined } as object });
  });
  const [end] = await collect(agent.run(turnWith(busy, () => {})));
  assert.deepEqual([end?.type === 'failed' && end.cause, requests], ['provider_failed', 3]);
});
