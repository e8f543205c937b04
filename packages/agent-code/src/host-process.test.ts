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
import { createLogger, inWork, type RemoteSpan, startTelemetry } from '@hopline/telemetry';
import { compileCache } from '../../../test/kit/compile-cache.ts';
import { ModelServer } from '../../../test/support/agents/model-server.ts';
import { type CodeAgentOptions, createCodeAgent } from './code-agent.ts';
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

function hostOptions(): HostProcessOptions & { stdout: PassThrough; printed: () => string } {
  const stdout = new PassThrough();
  let printed = '';
  stdout.setEncoding('utf8').on('data', text => (printed += text));
  const env = { PATH: '/usr/bin:/bin', ...compileCache() };
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
  { exportSpan, priceOf }: Pick<CodeAgentOptions, 'exportSpan' | 'priceOf'> = {},
): Promise<Agent> {
  const agent = await createCodeAgent({
    code: { adapter: 'module', path: './agent.ts' },
    folder,
    name: 'greeter',
    logger: createLogger({ service: 'test', instance: 'test', level: 'silent' }),
    showAuthor: () => {},
    onSkipped: () => {},
    exportSpan,
    priceOf,
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
  // Its output and its events take two pipes.
  if (options.printed() === '') await once(options.stdout, 'data');
  assert.equal(options.printed(), 'printed line\n');
});

test('when the agent closes, its process ends, together with everything that it has started', async t => {
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

function tracedTurn(flags: string): Turn {
  return {
    taskId: 't',
    contextId: 'c',
    message: { messageId: 'm', role: 'ROLE_USER', parts: [] },
    metadata: {},
    history: [],
    attempt: 1,
    trace: { traceparent: `00-${TURN_TRACE.traceId}-${TURN_TRACE.spanId}-${flags}` },
    signal: new AbortController().signal,
  };
}

const TURN_TRACE = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331' };

test('the sub-agent exports the spans of the code in the trace of its turn, and none of a turn that is not sampled', async t => {
  const exported: RemoteSpan[] = [];
  const folder = await folderOf(t, TRACED);
  const agent = await agentOf(t, folder, () => startHostProcess(hostOptions()), { exportSpan: span => exported.push(span) });
  for (const flags of ['00', '01']) for await (const _event of agent.run(tracedTurn(flags)));
  assert.deepEqual(
    exported.map(({ name, traceId, attributes, status, scope }) => [name, traceId, attributes, status, scope]),
    [
      ['read', TURN_TRACE.traceId, { rows: 3, names: 'a, b' }, { code: 2, message: 'no row' }, 'hopline.agent'],
      ['look up', TURN_TRACE.traceId, {}, { code: 0 }, 'hopline.agent'],
    ],
  );
  const [read, lookUp] = exported;
  assert.deepEqual([read?.parentSpanId, lookUp?.parentSpanId], [lookUp?.spanId, TURN_TRACE.spanId]);
  assert.deepEqual([read?.linkIds, lookUp?.linkIds], [[], []], 'a turn without a span of its own');
});

const WITH_MODEL = `
import { defineAgent, model } from '@hopline/agent';
export default defineAgent({
  name: 'asks', description: 'Asks a model',
  async *run() {
    const { MODEL_URL: baseUrl, MODEL_KEY: apiKey } = process.env;
    yield* model({ model: 'lab/large', baseUrl, apiKey, messages: [{ role: 'user', text: 'hi' }] });
  },
});`;

test('the sub-agent counts a model that the code calls like a model of the adapter, with span and cost', async t => {
  const telemetry = await startTelemetry({ service: 'sub-agent', version: '1', instance: 'i', env: {} });
  t.after(() => telemetry.shutdown());
  await using server = await ModelServer.start(() => [{ tokens: ['Hel', 'lo'] }]);
  const exported: RemoteSpan[] = [];
  const options = hostOptions();
  const host = { ...options, env: { ...options.env, MODEL_URL: server.url, MODEL_KEY: 'key-of-the-agent' } };
  const agent = await agentOf(t, await folderOf(t, WITH_MODEL), () => startHostProcess(host), {
    exportSpan: span => exported.push(span),
    priceOf: name => (name === 'lab/large' ? { input: 1, output: 100 } : undefined),
  });
  const owner = { tenant: 'acme', subject: 'eva' };
  const { tenant } = telemetry.metrics.parties.of(owner);
  const types: string[] = [];
  const own = { traceparent: `00-${TURN_TRACE.traceId}-00f067aa0ba902b7-01` };
  await inWork({ agent: 'guide', taskId: 't', contextId: 'c', owner, tenant, span: own }, async () => {
    for await (const { type } of agent.run(tracedTurn('01'))) types.push(type);
  });
  assert.deepEqual(types, ['text', 'text', 'usage']);
  const [{ headers }] = server.requests as [(typeof server.requests)[number]];
  assert.equal(headers.authorization, 'Bearer key-of-the-agent');
  const [span] = exported as [RemoteSpan];
  assert.deepEqual([span.name, span.traceId, span.parentSpanId], ['chat lab/large', TURN_TRACE.traceId, TURN_TRACE.spanId]);
  assert.deepEqual(span.linkIds, ['00f067aa0ba902b7'], 'the span of the turn');
  assert.equal(String(headers.traceparent), `00-${span.traceId}-${span.spanId}-01`);
  // 11 input tokens and 2 output tokens.
  assert.equal(span.attributes['hopline.model.cost'], 0.000_211);
  assert.equal(span.attributes['gen_ai.agent.name'], 'guide');
  const text = await telemetry.metricsText();
  const of = 'service="sub-agent",agent="guide",tenant="acme",model="lab/large"';
  assert.ok(text.includes(`hopline_tenant_model_tokens_total{${of},kind="output"} 2\n`), text);
  assert.ok(text.includes(`hopline_tenant_model_cost_total{${of}} 0.000211\n`), text);
  assert.match(text, /gen_ai_client_operation_duration_seconds_count\{.*agent="guide".*gen_ai_request_model="lab\/large"\} 1\n/);
});

test('a module that cannot be loaded is reported in one sentence, with the cause for its author', async t => {
  const folder = await folderOf(t, 'import "not-installed-anywhere";');
  await assert.rejects(
    agentOf(t, folder, () => startHostProcess(hostOptions())),
    (error: Error) =>
      error.message === './agent.ts cannot be loaded' && /not-installed-anywhere/.test(String((error.cause as Error).stack)),
  );
});

test('a sub-agent in another container reaches its host by a socket, and so does the next sub-agent', async t => {
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

test('after SIGTERM, the code’s container waits until the sub-agent has drained its turns and is gone', async t => {
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

test('a container of the code that lacks a variable which the entry names exits with code 78 and names the variable', async t => {
  const folder = await folderOf(t, CONTAINER_MODULE);
  const { child, exited } = containerOf(t, folder, { PATH: '/usr/bin:/bin', KEY: 'k' }, 'KEY', 'OTHER_KEY');
  const printed = child.stderr.setEncoding('utf8').toArray();
  assert.deepEqual(await exited, [78, null]);
  assert.equal((await printed).join(''), 'hopline code: the entry of the agent names variables that are not set: OTHER_KEY\n');
});
