import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, type TestContext, test } from 'node:test';
import { freePort } from '@hopline/local-cluster';
import { until } from '../../kit/until.ts';
import { ModelServer, newest } from '../../support/agents/model-server.ts';
import { type PythonAgent, startUvicorn, untilServed } from '../../support/agents/python-agent.ts';
import { ClientViews } from '../../support/cluster/client-views.ts';
import { Cluster } from '../../support/cluster/cluster.ts';
import { Guide } from '../../support/guides/guide.ts';
import { npmPackages } from '../../support/npm-packages.ts';
import { newestPythonWith } from '../../support/python/python-with-httpx.ts';

/** The agents of docs/guides/frameworks.md behind a cluster. Their models are a stand-in over HTTP. */

const TIMEOUT = 600_000;
const BEFORE = ['Let me ', 'look.\n'];
const AFTER = ['It is ', 'clear ✅', '\r\n\r\n', '👩‍👩‍👧', ' ha', 'ha'];
const IMAGE = { raw: 'iVBORw0KGgo=', filename: 'sky.png', mediaType: 'image/png' };

const guide = new Guide('frameworks.md');
const [crewEntry, mastraEntry] = guide.agents().map(([entry]) => entry as Record<string, unknown> & { name: string });

const [, crewai = ''] = /pip install '([^']+)' uvicorn$/.exec(guide.command('.venv/bin/python3 -m pip')) ?? [];
// 150 packages, 850 MB: more than all other tests install together.
const python =
  process.env.TEST_CREWAI === undefined
    ? { skip: 'TEST_CREWAI is not set, and CrewAI takes 850 MB' }
    : await newestPythonWith([crewai, 'uvicorn==0.54.0']);

const install = guide.command('npm install');
const packages = await npmPackages(`mastra${install.match(/@\d[\d.]*/g)?.join('')}`, install, { type: 'module', private: true });

let model: ModelServer;
/** Resolves when a model that was asked to wait may end. */
let waiting: PromiseWithResolvers<void>;

before(async () => {
  waiting = Promise.withResolvers();
  model = await ModelServer.start(request => {
    const question = newest(request, 'user');
    if (question.includes('fail')) return { status: 400 };
    if (question.includes('wait')) return [{ tokens: BEFORE }, { until: waiting.promise }];
    if (newest(request, 'tool') !== '' || question.includes('look')) return [{ tokens: AFTER }];
    if (question.includes('ask')) return [{ call: 'day', args: {} }];
    return [{ tokens: BEFORE }, { call: 'weather', args: { city: 'Oslo' } }];
  });
});

after(async () => {
  waiting.resolve();
  await model[Symbol.asyncDispose]();
  if ('python' in python && packages !== undefined) guide.assertAllTaken();
});

function folderOf(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'hopline-framework-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Settings of the process of an agent: its model, and no reports to the maker of its framework. */
function agentEnv(): NodeJS.ProcessEnv {
  const quiet = { CREWAI_DISABLE_TELEMETRY: 'true', CREWAI_TRACING_ENABLED: 'false', OTEL_SDK_DISABLED: 'true' };
  return { ...process.env, ...quiet, MASTRA_TELEMETRY_DISABLED: '1', OPENAI_API_KEY: 'none', OPENAI_BASE_URL: model.url };
}

test('the CrewAI agent of the guide: its answer, byte for byte, after a tool call, a failure, a refused file and a cancel', {
  skip: 'skip' in python && python.skip,
  timeout: TIMEOUT,
}, async t => {
  const folder = folderOf(t);
  const port = await freePort();
  writeFileSync(join(folder, 'reporter.py'), guide.file('reporter.py').replace('9101', String(port)));
  const [, app = ''] = /-m uvicorn (\S+) --port 9101$/.exec(guide.command('.venv/bin/python3 -m uvicorn')) ?? [];
  const env = { ...agentEnv(), PYTHONWARNINGS: 'ignore' };
  const agent = await startUvicorn('python' in python ? python.python : '', app, port, { cwd: folder, env });
  t.after(agent.stop);
  await using cluster = await Cluster.shared({ agents: [{ ...crewEntry!, url: agent.url }] });
  const views = new ClientViews(cluster.url);
  const { state, answer } = await views.ask('weather?');
  assert.deepEqual([state, answer], ['TASK_STATE_COMPLETED', AFTER.join('')]);
  const failed = await views.ask('fail');
  assert.deepEqual([failed.state, failed.answer], ['TASK_STATE_FAILED', '']);
  // CrewAI takes text and JSON, unless its card lists more types, and reads files only with the package crewai-files.
  const refused = await views.ask({ parts: [{ text: 'look' }, IMAGE] });
  assert.deepEqual([refused.state, refused.answer], ['TASK_STATE_FAILED', '']);
  // CrewAI names its task only at the end, so it cannot be canceled before.
  const taskId = await views.send('wait');
  await until(() => model.open === 1);
  await views.client.cancel(taskId);
  assert.equal((await views.watched(taskId)).state, 'TASK_STATE_CANCELED');
  assert.equal(model.open, 1);
});

test('the Mastra agent of the guide: its answer, byte for byte, with a tool call, a failure, a question, an image and a cancel', {
  skip: packages === undefined && 'Mastra cannot be installed: the npm registry cannot be reached, or lacks a package',
  timeout: TIMEOUT,
}, async t => {
  const folder = folderOf(t);
  symlinkSync(join(packages!, 'node_modules'), join(folder, 'node_modules'));
  const port = await freePort();
  writeFileSync(join(folder, 'forecaster.mjs'), guide.file('forecaster.mjs').replace('9102', String(port)));
  const [, script = ''] = guide.command('node forecaster').split(' ');
  const child = spawn(process.execPath, [script], { cwd: folder, env: agentEnv(), stdio: ['ignore', 'ignore', 'ignore'] });
  const here = String(mastraEntry!.url).replace('9102', String(port));
  const agent: PythonAgent = await untilServed('Mastra', child, here, '/api/.well-known/forecaster/agent-card.json');
  t.after(agent.stop);
  await using cluster = await Cluster.shared({ agents: [{ ...mastraEntry!, url: here }] });
  const views = new ClientViews(cluster.url);
  const { state, answer } = await views.ask('weather?');
  assert.deepEqual([state, answer], ['TASK_STATE_COMPLETED', [...BEFORE, ...AFTER].join('')]);
  const failed = await views.ask('fail');
  assert.deepEqual([failed.state, failed.answer], ['TASK_STATE_FAILED', '']);
  const asked = await views.ask('ask');
  assert.deepEqual([asked.state, asked.question?.text], ['TASK_STATE_INPUT_REQUIRED', 'Which day?']);
  const answered = await views.answer(asked, [{ text: 'Monday' }]);
  assert.deepEqual([answered.state, answered.answer], ['TASK_STATE_COMPLETED', AFTER.join('')]);
  assert.match(newest(model.requests.at(-1)!, 'tool'), /Monday/);
  const seen = await views.ask({ parts: [{ text: 'look' }, IMAGE] });
  assert.deepEqual([seen.state, seen.answer], ['TASK_STATE_COMPLETED', AFTER.join('')]);
  assert.match(JSON.stringify(model.requests.at(-1)!.messages), /"image_url":\{"url":"data:image\/png;base64,iVBORw0KGgo="/);
  const taskId = await views.send('wait');
  await until(() => model.open === 1);
  await views.client.cancel(taskId);
  assert.equal((await views.watched(taskId)).state, 'TASK_STATE_CANCELED');
  // Mastra leaves its model, too.
  await until(() => model.open === 0);
});
