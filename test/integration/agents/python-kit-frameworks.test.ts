import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { until } from '../../kit/until.ts';
import { ModelServer, newest } from '../../support/agents/model-server.ts';
import { startPythonScript, UVICORN } from '../../support/agents/python-agent.ts';
import { ClientViews } from '../../support/cluster/client-views.ts';
import { Cluster } from '../../support/cluster/cluster.ts';
import { pythonEnv } from '../../support/python/python-driver.ts';
import { httpxRequirement, newestPythonWith, PYTHON_PACKAGE } from '../../support/python/python-with-httpx.ts';

/** Agents of frameworks without an A2A server that follows the protocol, each in the kit of packages/python. The model is a stand-in over HTTP. */

const FRAMEWORKS = [
  // The SDK passes the result of the function on unchanged, and Agno passes it on as text.
  {
    name: 'the OpenAI Agents SDK',
    agentName: 'sdk-forecaster',
    script: 'openai_agents_agent.py',
    requirements: ['openai-agents==0.24.0'],
    result: (city: string): unknown => ({ city, sky: 'clear' }),
  },
  {
    name: 'Agno',
    agentName: 'agno-forecaster',
    script: 'agno_agent.py',
    requirements: ['agno==3.1.10', 'openai'],
    result: (city: string): unknown => `{'city': '${city}', 'sky': 'clear'}`,
  },
];
const BEFORE = ['Let me ', 'look.\n'];
const AFTER = ['It is ', 'clear ✅', '\r\n\r\n', '👩‍👩‍👧'];
const IMAGE = { raw: 'iVBORw0KGgo=', filename: 'sky.png', mediaType: 'image/png' };
const PDF = { raw: Buffer.from('%PDF-1.4').toString('base64'), filename: 'sky.pdf', mediaType: 'application/pdf' };
const TIMEOUT = 600_000;

const [, kit = ''] = /^agent = \["([^"]*)"/m.exec(readFileSync(join(PYTHON_PACKAGE, 'pyproject.toml'), 'utf8')) ?? [];

for (const { name, agentName, script, requirements, result } of FRAMEWORKS) {
  const found = await newestPythonWith([kit, httpxRequirement(), UVICORN, ...requirements]);
  const skip = 'skip' in found && found.skip;

  test(`an agent of ${name}: its answer, byte for byte, the calls of its tools, a failure, files and a cancel`, {
    skip,
    timeout: TIMEOUT,
  }, async t => {
    await using model = await ModelServer.start(request => {
      const question = newest(request, 'user');
      if (question.includes('fail')) return { status: 400 };
      if (question.includes('wait')) return [{ tokens: BEFORE }, { stall: true }];
      if (newest(request, 'tool') !== '' || question.includes('look')) return [{ tokens: AFTER }];
      return [{ tokens: BEFORE }, ...['Oslo', 'Lima'].map(city => ({ call: 'weather', args: { city }, id: `call-${city}` }))];
    });
    const path = fileURLToPath(new URL(`../../support/agents/python/${script}`, import.meta.url));
    const agent = await startPythonScript('python' in found ? found.python : '', path, {
      args: [model.url],
      env: { ...pythonEnv(), PYTHONWARNINGS: 'ignore' },
    });
    t.after(agent.stop);
    await using cluster = await Cluster.shared({ agents: [{ name: agentName, adapter: 'a2a', url: agent.url }] });
    const views = new ClientViews(cluster.url);
    const { state, answer, tools } = await views.ask('weather?');
    assert.deepEqual([state, answer], ['TASK_STATE_COMPLETED', [...BEFORE, ...AFTER].join('')]);
    assert.deepEqual(
      tools
        .filter(({ agent }) => agent === agentName)
        .map(({ id, tool, outcome, arguments: args, result }) => [id.replace(/^.*(?=call-)/, ''), tool, outcome, args, result])
        .toSorted(),
      ['Lima', 'Oslo'].map(city => [`call-${city}`, 'weather', 'completed', { city }, result(city)]),
    );
    const failed = await views.ask('fail');
    assert.deepEqual([failed.state, failed.answer], ['TASK_STATE_FAILED', '']);
    const seen = await views.ask({ parts: [{ text: 'look' }, IMAGE, PDF] });
    assert.deepEqual([seen.state, seen.answer], ['TASK_STATE_COMPLETED', AFTER.join('')]);
    const request = JSON.stringify(model.requests.at(-1)!.messages);
    for (const { raw, mediaType } of [IMAGE, PDF]) assert.ok(request.includes(`data:${mediaType};base64,${raw}`), request);
    const taskId = await views.send('wait');
    for await (const { answer } of views.client.watch(taskId)) if (answer === BEFORE.join('')) break;
    await views.client.cancel(taskId);
    const canceled = await views.watched(taskId);
    assert.deepEqual([canceled.state, canceled.answer], ['TASK_STATE_CANCELED', BEFORE.join('')]);
    await until(() => model.open === 0);
  });
}
