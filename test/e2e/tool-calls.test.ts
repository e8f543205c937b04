import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { type BaseEvent, HttpAgent } from '@ag-ui/client';
import { CUT_KEY, TOOL_RESULT_BYTES_MAX } from '@hopline/agent';
import { type ClientView, createClient } from '@hopline/client';
import OpenAI from 'openai';
import { ModelServer, newest } from '../support/agents/model-server.ts';
import { Cluster } from '../support/cluster/cluster.ts';

/** Arguments, results and tokens of an agent with adapter `model`, as each kind of client reads them. */

const TOOLS = {
  command: process.execPath,
  args: [fileURLToPath(new URL('../support/agents/hostile-mcp-server.ts', import.meta.url))],
};
const ARGS = { city: 'Rome', days: [1, 2] };
const TIMEOUT = { timeout: 120_000 };
/** The model server counts 11 tokens of input for each request, 4 of them cached, and one of output for each delta. */
const USAGE = { inputTokens: 22, cachedTokens: 8, reasoningTokens: 1 };

let model: ModelServer;
const clusters = new Map<string, Cluster>();

before(async () => {
  model = await ModelServer.start(request => {
    if (newest(request, 'tool') !== '') return [{ reasoning: 'hm' }, { tokens: ['It ', 'rains.'] }];
    const asked = newest(request, 'user');
    return ['noise', 'error', 'long'].flatMap(call => (asked.includes(call) ? [{ call, args: ARGS }] : []));
  });
  const agents = [{ name: 'coder', adapter: 'model', model: 'stand-in', baseUrl: model.url, mcp: [TOOLS] }];
  clusters.set('caipe', await Cluster.shared({ agents }));
  // The agent above serves this profile, too.
  clusters.set('transparent', await Cluster.shared({ profile: 'transparent', agents: [] }));
});

after(async () => {
  for (const cluster of clusters.values()) await cluster[Symbol.asyncDispose]();
  await model?.[Symbol.asyncDispose]();
});

const toolsOf = ({ tools }: ClientView) =>
  tools
    .filter(({ agent }) => agent === 'coder')
    .map(({ tool, outcome, arguments: args, result }) => ({ tool, outcome, args, result }))
    .toSorted((a, b) => (a.tool < b.tool ? -1 : 1));

for (const profile of ['caipe', 'transparent']) {
  const urlOf = () => clusters.get(profile)!.url;

  async function viewOf(text: string): Promise<ClientView> {
    let view: ClientView | undefined;
    await createClient({ url: urlOf() }).ask(text, {
      onView: one => {
        view = one;
      },
    });
    return view!;
  }

  test(`${profile}: the client reads arguments, results, errors and tokens`, TIMEOUT, async () => {
    const view = await viewOf('noise and error');
    assert.deepEqual(toolsOf(view), [
      { tool: 'error', outcome: 'failed', args: ARGS, result: 'no such file' },
      { tool: 'noise', outcome: 'completed', args: ARGS, result: 'noted' },
    ]);
    const { outputTokens, ...others } = view.usage!;
    assert.deepEqual(others, USAGE);
    assert.ok(outputTokens! > 4);
  });

  test(`${profile}: a result above its bound is cut, and states its size`, TIMEOUT, async () => {
    const [call] = toolsOf(await viewOf('long'));
    const { [CUT_KEY]: bytes, text } = call!.result as { [CUT_KEY]: number; text: string };
    assert.equal(bytes, 4 * 25_000 + '""'.length);
    assert.ok(Buffer.byteLength(JSON.stringify(text)) <= TOOL_RESULT_BYTES_MAX);
    assert.match(text, /^(?:😀)+$/u);
  });

  test(`${profile}: the AI SDK's stream has the input and output of the tool`, TIMEOUT, async () => {
    const response = await fetch(`${urlOf().replace(/\/$/, '')}/ui/chat`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        id: crypto.randomUUID(),
        trigger: 'submit-message',
        messages: [{ id: crypto.randomUUID(), role: 'user', parts: [{ type: 'text', text: 'noise and error' }] }],
      }),
    });
    const chunks = (await response.text())
      .split('\n')
      .filter(line => line.startsWith('data: {'))
      .map(line => JSON.parse(line.slice('data: '.length)));
    const inputs = chunks.filter(({ type, input }) => type === 'tool-input-available' && Object.keys(input).length > 0);
    const outputs = chunks.filter(({ type }) => type === 'tool-output-available');
    const errors = chunks.filter(({ type }) => type === 'tool-output-error');
    const ofNoise = inputs.find(({ toolName }) => toolName === 'noise');
    assert.deepEqual(ofNoise.input, ARGS);
    const { output } = outputs.find(({ toolCallId }) => toolCallId === ofNoise.toolCallId);
    assert.equal(output, 'noted');
    assert.ok(errors.some(({ errorText }) => errorText === 'no such file'));
    const metadata = chunks
      .filter(({ type }) => type === 'message-metadata')
      .map(({ messageMetadata }) => messageMetadata.hopline);
    assert.ok(metadata.some(({ usage }) => usage?.inputTokens === USAGE.inputTokens));
  });

  test(`${profile}: AG-UI's events have the arguments and the result`, TIMEOUT, async () => {
    const agent = new HttpAgent({
      url: `${urlOf().replace(/\/$/, '')}/agui/coder`,
      initialMessages: [{ id: crypto.randomUUID(), role: 'user', content: 'noise' }],
    });
    const events: (BaseEvent & Record<string, unknown>)[] = [];
    await agent.runAgent({}, { onEvent: ({ event }) => void events.push(event as BaseEvent & Record<string, unknown>) });
    const { toolCallId } = events.find(({ type, toolCallName }) => type === 'TOOL_CALL_START' && toolCallName === 'noise')!;
    const ofCall = events.filter(event => event.toolCallId === toolCallId);
    const delta = ofCall.find(({ type }) => type === 'TOOL_CALL_ARGS')?.delta;
    assert.deepEqual(JSON.parse(String(delta)), ARGS);
    assert.equal(ofCall.find(({ type }) => type === 'TOOL_CALL_RESULT')?.content, 'noted');
    const { usage } = events.find(({ type }) => type === 'RUN_FINISHED') as { usage?: Record<string, number>[] };
    assert.equal(usage?.[0]?.cachedInputTokens, USAGE.cachedTokens);
  });

  test(`${profile}: OpenAI's API reports the tokens, including cached and reasoning ones`, TIMEOUT, async () => {
    const openai = new OpenAI({ baseURL: `${urlOf().replace(/\/$/, '')}/v1`, apiKey: 'unused', maxRetries: 0 });
    const messages = [{ role: 'user' as const, content: 'noise' }];
    const { usage } = await openai.chat.completions.create({ model: 'coder', messages });
    assert.equal(usage?.prompt_tokens, USAGE.inputTokens);
    assert.equal(usage?.total_tokens, USAGE.inputTokens + usage!.completion_tokens);
    assert.equal(usage?.prompt_tokens_details?.cached_tokens, USAGE.cachedTokens);
    assert.equal(usage?.completion_tokens_details?.reasoning_tokens, USAGE.reasoningTokens);
    const response = await openai.responses.create({ model: 'coder', input: 'noise' });
    assert.equal(response.usage?.input_tokens, USAGE.inputTokens);
    assert.equal(response.usage?.input_tokens_details.cached_tokens, USAGE.cachedTokens);
    assert.equal(response.usage?.output_tokens_details.reasoning_tokens, USAGE.reasoningTokens);
  });
}
