import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { Agent, Turn } from '@hopline/agent';
import { playTurn } from '@hopline/agent/test-kit';
import { createLogger, type RemoteSpan } from '@hopline/telemetry';
import { createCodeAgent } from './code-agent.ts';
import type { HostLink } from './code-session.ts';
import { connectHost } from './connect-host.ts';
import { serveHosts } from './host-listener.ts';
import { type HostProcessOptions, startHostProcess } from './host-process.ts';

const MODULE = `
import { defineAgent, notice } from '@hopline/agent';
export default defineAgent({
  name: 'greeter', description: 'Greets', skills: ['greet'],
  async *run(turn) {
    console.log('printed line');
    yield notice('thinking');
    for (const word of ['Hello', ', ', turn.text]) yield word;
    turn.log.info\`greeted \${1}\`;
    yield ' ' + process.pid;
  },
});`;

async function folderOf(t: TestContext, text = MODULE): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'code-host-'));
  t.after(() => rm(folder, { recursive: true }));
  await writeFile(join(folder, 'agent.ts'), text);
  return folder;
}

function hostOptions(): HostProcessOptions & { printed: () => string } {
  const stdout = new PassThrough();
  let printed = '';
  stdout.setEncoding('utf8').on('data', text => (printed += text));
  const env = { PATH: '/usr/bin:/bin' };
  return {
    env,
    nodeOptions: ['--disable-warning=MODULE_TYPELESS_PACKAGE_JSON'],
    stdout,
    stderr: process.stderr,
    printed: () => printed,
  };
}

async function agentOf(
  t: TestContext,
  folder: string,
  start: () => HostLink | Promise<HostLink>,
  exportSpan?: (span: RemoteSpan) => void,
): Promise<Agent> {
  const agent = await createCodeAgent({
    code: { adapter: 'module', path: './agent.ts' },
    folder,
    name: 'greeter',
    logger: createLogger({ service: 'test', instance: 'test', level: 'silent' }),
    showAuthor: () => {},
    onSkipped: () => {},
    exportSpan,
    start,
  });
  t.after(() => agent.close());
  return agent;
}

const pidIn = (text: string) => Number(/(\d+)$/.exec(text)?.[1]);

test('a module runs in a process of its own, and what it prints arrives by lines', async t => {
  const options = hostOptions();
  const agent = await agentOf(t, await folderOf(t), () => startHostProcess(options));
  const { text, notices, log, end } = await playTurn(agent, 'Ada');
  assert.match(text, /^Hello, Ada \d+$/);
  assert.notEqual(pidIn(text), process.pid);
  assert.deepEqual([notices, log, end.state], [['thinking'], ['greeted 1'], 'TASK_STATE_COMPLETED']);
  assert.equal(options.printed(), 'printed line\n');
});

test('the process ends when the agent closes, and with it what it has started', async t => {
  const agent = await agentOf(t, await folderOf(t), () => startHostProcess(hostOptions()));
  const pid = pidIn((await playTurn(agent, 'Ada')).text);
  await agent.close();
  assert.throws(() => process.kill(pid, 0), { code: 'ESRCH' });
});

const TRACED = `
import { defineAgent } from '@hopline/agent';
export default defineAgent({
  name: 'traced', description: 'Traces',
  async *run({ tracer }) {
    yield 'a';
    await tracer.startActiveSpan('look up', async outer => {
      await new Promise(resolve => setImmediate(resolve));
      const inner = tracer.startSpan('read', { attributes: { rows: 3, names: ['a', 'b'] } });
      inner.setStatus({ code: 2, message: 'no row' });
      inner.end();
      outer.end();
    });
    yield 'b';
  },
});`;

const TURN_TRACE = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331' };

test('the sub-agent exports the spans of the code in the trace of its turn, and none of a turn that is not sampled', async t => {
  const exported: RemoteSpan[] = [];
  const folder = await folderOf(t, TRACED);
  const agent = await agentOf(
    t,
    folder,
    () => startHostProcess(hostOptions()),
    span => exported.push(span),
  );
  const turn = (flags: string): Turn => ({
    taskId: 't',
    contextId: 'c',
    message: { messageId: 'm', role: 'ROLE_USER', parts: [] },
    metadata: {},
    history: [],
    attempt: 1,
    trace: { traceparent: `00-${TURN_TRACE.traceId}-${TURN_TRACE.spanId}-${flags}` },
    signal: new AbortController().signal,
  });
  for (const flags of ['00', '01']) for await (const _event of agent.run(turn(flags)));
  assert.deepEqual(
    exported.map(({ name, traceId, attributes, status, scope }) => [name, traceId, attributes, status, scope]),
    [
      ['read', TURN_TRACE.traceId, { rows: 3, names: 'a, b' }, { code: 2, message: 'no row' }, 'hopline.agent'],
      ['look up', TURN_TRACE.traceId, {}, { code: 0 }, 'hopline.agent'],
    ],
  );
  const [read, lookUp] = exported;
  assert.deepEqual([read?.parentSpanId, lookUp?.parentSpanId], [lookUp?.spanId, TURN_TRACE.spanId]);
});

test('a module that cannot be loaded is one sentence, with the cause for its author', async t => {
  const folder = await folderOf(t, 'import "not-installed-anywhere";');
  await assert.rejects(
    agentOf(t, folder, () => startHostProcess(hostOptions())),
    (error: Error) =>
      error.message === './agent.ts cannot be loaded' && /not-installed-anywhere/.test(String((error.cause as Error).stack)),
  );
});

test('a sub-agent in another container reaches its host by a socket, and another one after it', async t => {
  const folder = await folderOf(t);
  const path = join(folder, 'socket');
  const listener = await serveHosts(path, hostOptions());
  const pids = [];
  for (let starts = 0; starts < 2; starts += 1) {
    const agent = await agentOf(t, folder, () => connectHost(path));
    pids.push(pidIn((await playTurn(agent, 'Ada')).text));
    await agent.close();
  }
  assert.equal(new Set([process.pid, ...pids]).size, 3);
  await listener.close();
});

/** The program of the container of the code, with its arguments after the socket. */
function containerOf(t: TestContext, folder: string, env: Record<string, string>, ...required: string[]) {
  const path = join(folder, 'socket');
  const program = fileURLToPath(new URL('listener/main.ts', import.meta.url));
  const child = spawn(process.execPath, [program, path, ...required], { env, stdio: ['ignore', 'ignore', 'pipe'] });
  t.after(() => child.kill('SIGKILL'));
  return { path, child, exited: once(child, 'exit') as Promise<[code: number | null, signal: string | null]> };
}

const CONTAINER_MODULE = `
export default {
  name: 'greeter', description: 'Greets', skills: ['greet'],
  async *run(turn) {
    if (turn.text === 'die') process.kill(process.pid, 'SIGKILL');
    yield Object.keys(process.env).sort().join(' ');
    if (turn.text === 'wait') await new Promise(resolve => setTimeout(resolve, 1_000));
    yield ' end';
  },
};`;

test('SIGTERM to the container of the code waits until the sub-agent has drained its turns and is gone', async t => {
  const folder = await folderOf(t, CONTAINER_MODULE);
  const { path, child, exited } = containerOf(t, folder, { PATH: '/usr/bin:/bin', KEY: 'k' }, 'KEY');
  const agent = await agentOf(t, folder, () => connectHost(path));
  assert.equal((await stat(path)).mode & 0o777, 0o660, 'the group of the socket, which both containers share, may connect');
  const played = playTurn(agent, 'wait');
  child.kill('SIGTERM');
  assert.equal((await played).text, 'KEY PATH end');
  assert.equal(child.exitCode, null, 'the sub-agent is still connected');
  await agent.close();
  assert.deepEqual(await exited, [0, null]);
});

test('a host that dies is replaced in the same container, whose restart Kubernetes would delay', async t => {
  const folder = await folderOf(t, CONTAINER_MODULE);
  const { path, child } = containerOf(t, folder, { PATH: '/usr/bin:/bin' });
  const agent = await agentOf(t, folder, () => connectHost(path));
  assert.equal((await playTurn(agent, 'die')).end.state, 'TASK_STATE_FAILED');
  assert.equal((await playTurn(agent, 'Ada')).text, 'PATH end');
  assert.equal(child.exitCode, null);
});

test('a container of the code without a variable that the entry names ends with exit code 78 and its name', async t => {
  const folder = await folderOf(t, CONTAINER_MODULE);
  const { child, exited } = containerOf(t, folder, { PATH: '/usr/bin:/bin', KEY: 'k' }, 'KEY', 'OTHER_KEY');
  const printed = child.stderr.setEncoding('utf8').toArray();
  assert.deepEqual(await exited, [78, null]);
  assert.equal((await printed).join(''), 'hopline code: the entry of the agent names variables that are not set: OTHER_KEY\n');
});
