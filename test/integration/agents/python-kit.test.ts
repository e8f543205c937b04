import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { approvalResponse, createClient } from '@hopline/client';
import { freePort } from '@hopline/local-cluster';
import type { ClientView } from '@hopline/task-view';
import { until } from '../../kit/until.ts';
import { startKitAgents, startUvicorn, UVICORN, untilServed } from '../../support/agents/python-agent.ts';
import { ClientViews } from '../../support/cluster/client-views.ts';
import { Cluster } from '../../support/cluster/cluster.ts';
import { Guide } from '../../support/guides/guide.ts';
import { pythonEnv } from '../../support/python/python-driver.ts';
import { httpxRequirement, PYTHON_PACKAGE, pythonsWithPackages } from '../../support/python/python-with-httpx.ts';
import { OtlpReceiver } from '../../support/telemetry/otlp-receiver.ts';

/** The agent kit of packages/python, with the oldest and the newest Python that are there. */

const [, kit = ''] = /^agent = \["([^"]*)"/m.exec(readFileSync(join(PYTHON_PACKAGE, 'pyproject.toml'), 'utf8')) ?? [];
const pythons = await pythonsWithPackages([kit, httpxRequirement(), UVICORN, 'mypy==2.4.1']);
const cwd = PYTHON_PACKAGE;
/** Without a cache of the types of the packages, a check takes 7 CPU seconds instead of 0.4. */
const TYPES_CACHE = fileURLToPath(new URL('../../../node_modules/.cache/mypy', import.meta.url));

if (pythons.length === 0)
  test('the agent kit works with the oldest and the newest Python', {
    skip: 'no Python of 3.10 or newer: install one, or name its folder in PYENV_ROOT',
  });

for (const found of pythons) {
  const { version } = found;
  const python = 'python' in found ? found.python : '';
  const options = { skip: 'skip' in found && found.skip, timeout: 600_000 };

  const ofThis = (agent: string) => `${agent}-${version.replaceAll('.', '-')}`;
  let started: ReturnType<typeof startKitAgents> | undefined;
  const agents = () => (started ??= startKitAgents(python, { cwd, env: { ...pythonEnv(), PYTHONWARNINGS: 'default' } }));
  after(async () => (await started)?.stop());

  // mypy checks the types of Python 3.10 whatever interpreter runs it (pyproject.toml), so the newest packages are enough.
  const isNewest = found === pythons.at(-1);
  const types = isNewest ? ', and its types are strict' : '';
  test(`Python ${version}: the unit tests of the agent kit pass${types}`, options, async () => {
    const args = ['-m', 'unittest', 'tests.test_agent', 'tests.test_agent_server'];
    const { stderr } = await promisify(execFile)(python, args, { cwd, env: { ...pythonEnv(), PYTHONWARNINGS: 'default' } });
    assert.match(stderr, /^Ran [1-9][0-9] tests in /m);
    assert.doesNotMatch(stderr, /skipped/);
    if (!isNewest) return;
    const { stdout } = await promisify(execFile)(python, ['-m', 'mypy', '--cache-dir', TYPES_CACHE], { cwd, env: pythonEnv() });
    assert.match(stdout, /^Success: no issues found/m);
  });

  test(`Python ${version}: an agent of the kit answers, asks and sends a file behind Hopline`, options, async () => {
    const { greeter } = await agents();
    await using cluster = await Cluster.shared({
      agents: [{ name: ofThis('greeter'), adapter: 'a2a', url: greeter, text: 'progress' }],
    });
    const client = createClient({ url: cluster.url });
    const viewOf = async (question: string, taskId?: string) => {
      const sent = await client.send({ parts: [{ text: question }], ...(taskId !== undefined && { taskId }) });
      assert.ok('task' in sent);
      let last: ClientView | undefined;
      for await (const view of client.watch(sent.task.id)) {
        last = view;
        // The first turn of the task ends with the question.
        if (taskId === undefined && view.question !== undefined) break;
      }
      return last!;
    };
    const answered = await viewOf('Ada 🎯');
    assert.deepEqual([answered.answer, answered.state], ['Hello, Ada 🎯!\n', 'TASK_STATE_COMPLETED']);
    assert.deepEqual(
      answered.files.map(({ name, parts }) => [name, parts[0]?.text]),
      [['card.md', '# For Ada 🎯\n']],
    );
    const asked = await viewOf('who');
    assert.deepEqual([asked.state, asked.question?.text], ['TASK_STATE_INPUT_REQUIRED', 'Who should I greet?']);
    assert.equal((await viewOf('Bob', asked.taskId)).answer, 'Hello, Bob!\n');
  });

  test(
    `Python ${version}: an agent of the kit asks for an approval behind Hopline, and runs the call with the arguments shown`,
    options,
    async () => {
      const { refunder } = await agents();
      await using cluster = await Cluster.shared({ agents: [{ name: ofThis('refunder'), adapter: 'a2a', url: refunder }] });
      const views = new ClientViews(cluster.url, ofThis('refunder'));
      const call = { tool: 'refund', arguments: { order: '17', cents: 950 } };
      const callsOf = ({ tools }: ClientView) =>
        tools
          .filter(({ tool }) => tool === 'refund')
          .map(({ id, outcome, arguments: args, result }) => [id.split('/').at(-1), outcome, args, result]);
      const asked = await views.ask('17');
      const { approval, text } = asked.question!;
      assert.deepEqual([text, approval], ['Run refund with {"order":"17","cents":950}?', { callId: approval?.callId, ...call }]);
      const waiting = [approval?.callId, 'waiting', call.arguments, undefined];
      assert.deepEqual(callsOf(asked), [waiting]);
      const done = await views.answer(asked, approvalResponse(approval!, true));
      assert.deepEqual([done.state, done.answer], ['TASK_STATE_COMPLETED', 'Refunded 950 of 17 (from 17).']);
      assert.deepEqual(callsOf(done), [waiting, [approval?.callId, 'completed', call.arguments, '950 of 17']]);
      const refused = await views.answer(await views.ask('17'), [{ text: 'too late' }]);
      assert.deepEqual([refused.state, refused.answer], ['TASK_STATE_COMPLETED', 'Not refunded: too late']);
    },
  );

  test(
    `Python ${version}: a turn that runs when its server is stopped ends behind Hopline, and does not run again`,
    options,
    async t => {
      const folder = mkdtempSync(join(tmpdir(), 'hopline-walker-'));
      t.after(() => rmSync(folder, { recursive: true }));
      const notes = join(folder, 'notes');
      const port = await freePort();
      const url = `http://127.0.0.1:${port}/`;
      const args = ['-m', 'uvicorn', 'tests.agents.walker:app', '--port', String(port), '--log-level', 'warning'];
      const env = { ...pythonEnv(), PYTHONWARNINGS: 'default', WALKER_URL: url, WALKER_FILE: notes };
      const child = spawn(python, args, { cwd, env, stdio: ['ignore', 'ignore', 'inherit'] });
      const agent = await untilServed('walker', child, url);
      t.after(agent.stop);
      await using cluster = await Cluster.shared({ agents: [{ name: ofThis('walker'), adapter: 'a2a', url }] });
      const client = createClient({ url: cluster.url });
      const sent = await client.send({ parts: [{ text: '20' }] });
      assert.ok('task' in sent);
      let last: ClientView | undefined;
      for await (const view of client.watch(sent.task.id)) {
        last = view;
        if (view.answer !== '') child.kill('SIGTERM');
      }
      assert.deepEqual(
        [last?.state, last?.answer],
        ['TASK_STATE_COMPLETED', Array.from({ length: 20 }, (_, step) => `${step} `).join('')],
      );
      assert.equal(readFileSync(notes, 'utf8'), 'arrived\ncleaned up\n');
    },
  );

  test(`Python ${version}: the agent of the guide plays a turn, and answers behind Hopline`, options, async t => {
    const guide = new Guide('python-agent.md');
    const folder = guide.folder(t, ['greeter.py', 'play.py', 'refunder.py']);
    for (const file of ['play.py', 'refunder.py']) await promisify(execFile)(python, [file], { cwd: folder, env: pythonEnv() });
    const [, app] = / -m uvicorn (\S+) --port 9100$/.exec(guide.command('.venv/bin/python3 -m uvicorn')) ?? assert.fail();
    const port = await freePort();
    const greeter = join(folder, 'greeter.py');
    writeFileSync(greeter, readFileSync(greeter, 'utf8').replace('9100', String(port)));
    const agent = await startUvicorn(python, app!, port, { cwd: folder, env: pythonEnv() });
    t.after(agent.stop);
    const [[entry]] = guide.agents() as [[Record<string, unknown> & { name: string }]];
    await using cluster = await Cluster.shared({ agents: [{ ...entry, name: ofThis('guide'), url: agent.url }] });
    assert.deepEqual(guide.npmStart().args, ['--agents', 'agents.json']);
    const [, question] = / -- ask (\w+)$/.exec(guide.command('npm run -s hopline')) ?? assert.fail();
    assert.equal(await createClient({ url: cluster.url }).ask(question!), 'Hello, Dr. Ada!\n');
    guide.assertAllTaken();
  });

  test(`Python ${version}: clients and the trace have the calls of an agent's tools`, options, async t => {
    const { forecaster } = await agents();
    const name = ofThis('forecaster');
    const receiver = new OtlpReceiver();
    const endpoint = await receiver.start();
    t.after(() => receiver.stop());
    await using cluster = await Cluster.shared({
      agents: [{ name, adapter: 'a2a', url: forecaster }],
      ownEnv: { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint },
    });
    const client = createClient({ url: cluster.url });
    const watched = async (question: string) => {
      const sent = await client.send({ parts: [{ text: question }] });
      assert.ok('task' in sent);
      let last: ClientView | undefined;
      for await (const view of client.watch(sent.task.id)) last = view;
      return { ...last!, tools: last!.tools.filter(({ agent }) => agent === name) };
    };
    const { answer, files, tools } = await watched('Oslo, Lima');
    assert.deepEqual([answer, files], ['Looking up: Oslo clear; Lima clear', []]);
    const weather = (city: string) => ['weather', 'completed', { city }, { sky: 'clear', degrees: 21, city }];
    assert.deepEqual(
      tools.map(({ tool, outcome, arguments: args, result }) => [tool, outcome, args, result]),
      [weather('Oslo'), weather('Lima'), ['units', 'completed', { system: 'metric' }, '°C']],
    );
    const failed = await watched('Atlantis');
    assert.deepEqual([failed.state, failed.answer], ['TASK_STATE_FAILED', 'Looking ']);
    assert.deepEqual(
      failed.tools.map(({ tool, outcome, result }) => [tool, outcome, result]),
      [['weather', 'failed', 'no such city']],
    );
    const ended = () =>
      receiver.spans.filter(({ name }) => name.startsWith('execute_tool ')).map(({ name, isError }) => [name, isError]);
    await until(() => ended().length === 4);
    const weatherSpan = 'execute_tool weather';
    assert.deepEqual(ended().toSorted(), [
      ['execute_tool units', false],
      [weatherSpan, false],
      [weatherSpan, false],
      [weatherSpan, true],
    ]);
  });
}
