import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { createClient } from '@hopline/client';
import { freePort } from '@hopline/local-cluster';
import type { ClientView } from '@hopline/task-view';
import { UVICORN, untilServed } from '../../support/agents/python-agent.ts';
import { Cluster } from '../../support/cluster/cluster.ts';
import { pythonEnv } from '../../support/python/python-driver.ts';
import { httpxRequirement, newestPythonWith, PYTHON_PACKAGE } from '../../support/python/python-with-httpx.ts';

/** Stored steps of an agent of the Python kit. Its effects are lines in a file (packages/python/tests/agents/clerk.py). */

const [, kit = ''] = /^agent = \["([^"]*)"/m.exec(readFileSync(join(PYTHON_PACKAGE, 'pyproject.toml'), 'utf8')) ?? [];
// The environment of python-kit.test.ts.
const found = await newestPythonWith([kit, httpxRequirement(), UVICORN, 'mypy==2.4.1']);
const options = { skip: 'skip' in found && found.skip, timeout: 300_000 };

let folder: string;
let child: ChildProcess | undefined;
let cluster: Cluster | undefined;

before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'hopline-clerk-'));
  if (!('python' in found)) return;
  const port = await freePort();
  const args = ['-m', 'tests.agents.clerk', String(port)];
  child = spawn(found.python, args, { cwd: PYTHON_PACKAGE, env: pythonEnv(), stdio: ['pipe', 'ignore', 'inherit'] });
  const { url } = await untilServed('clerk', child, `http://127.0.0.1:${port}/`);
  cluster = await Cluster.shared({ agents: [{ name: 'clerk', adapter: 'a2a', url, retries: 2 }] });
});

after(async () => {
  await cluster?.[Symbol.asyncDispose]();
  if (child !== undefined) {
    child.stdin?.end();
    await once(child, 'exit');
  }
  rmSync(folder, { recursive: true, force: true });
});

async function viewOf(question: string): Promise<ClientView> {
  const client = createClient({ url: cluster!.url });
  const sent = await client.send({ parts: [{ text: question }] });
  assert.ok('task' in sent);
  let last: ClientView | undefined;
  for await (const view of client.watch(sent.task.id)) last = view;
  return last!;
}

/** The effects, and the keys of the charges. */
function effectsIn(file: string) {
  const lines = readFileSync(file, 'utf8').trim().split('\n');
  const effects = lines.map(line => line.split(' ') as [name: string, key?: string]);
  return { names: effects.map(([name]) => name), keys: new Set(effects.flatMap(([, key]) => key ?? [])) };
}

test('the effect of a step happens once if the agent is killed after the step', options, async () => {
  const file = join(folder, 'between');
  const { state, answer } = await viewOf(`between ${file}`);
  assert.deepEqual([state, answer, existsSync(`${file}.died`)], ['TASK_STATE_COMPLETED', 'Charging. Charged 1. sent 1', true]);
  assert.deepEqual(effectsIn(file).names, ['charge', 'send']);
});

test('a step runs again, under the same key, if the agent is killed in it', options, async () => {
  const file = join(folder, 'inside');
  const { state, answer } = await viewOf(`inside ${file}`);
  assert.deepEqual([state, answer, existsSync(`${file}.died`)], ['TASK_STATE_COMPLETED', 'Charging. Charged 2. sent 1', true]);
  const { names, keys } = effectsIn(file);
  assert.deepEqual([names, keys.size], [['charge', 'charge', 'send'], 1]);
});

test('a step that failed last runs again when the call is repeated', options, async () => {
  const file = join(folder, 'away');
  const { state, answer } = await viewOf(`away ${file}`);
  assert.deepEqual([state, answer], ['TASK_STATE_COMPLETED', 'Charging. Charged 1. sent 2']);
  assert.deepEqual(effectsIn(file).names, ['charge', 'send', 'send']);
});
