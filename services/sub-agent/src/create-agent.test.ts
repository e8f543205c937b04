import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { playTurn } from '@hopline/agent/test-kit';
import { listen } from '../../../test/kit/listen.ts';
import { parseAgentEntry } from './agent-entry.ts';
import { elsewhere, sharedUser } from './code-processes.test-kit.ts';
import { createAgent } from './create-agent.ts';

const make = (entry: object, folder = '/nowhere', code = sharedUser()) =>
  createAgent(parseAgentEntry(JSON.stringify(entry)), {
    folder,
    onSkipped: () => {},
    model: { baseUrl: 'http://127.0.0.1:1/v1', apiKey: 'default-key' },
    webhooks: () => ({ open: () => undefined }),
    secret: variable => ({ MODEL_KEY: 'own-key', BROKEN_KEY: 'own-“key”' })[variable],
    code,
  });

test('a recording is read relative to the agents file; a missing one rejects', async t => {
  const folder = await mkdtemp(join(tmpdir(), 'sub-agent-'));
  t.after(() => rm(folder, { recursive: true }));
  await writeFile(join(folder, 'a.jsonl'), '{"t":"a"}\n');
  const agent = await make({ name: 'demo', adapter: 'recording', path: 'a.jsonl', description: 'A demo' }, folder);
  assert.equal(agent.description, 'A demo');
  await make({ name: 'demo', adapter: 'recording', path: join(folder, 'a.jsonl') });
  await assert.rejects(make({ name: 'demo', adapter: 'recording', path: 'b.jsonl' }, folder), /b\.jsonl does not exist/);
  await assert.rejects(make({ name: 'demo', adapter: 'recording', path: 'a.jsonl', pace: 'recorded' }, folder), /needs "ms"/);
});

/** An MCP server with one tool, whose name and description are its program and a variable. */
const SERVER = `
  const answer = (id, result) => console.log(JSON.stringify({ jsonrpc: '2.0', id, result }));
  require('node:readline').createInterface({ input: process.stdin }).on('line', line => {
    const { id, method } = JSON.parse(line);
    if (method === 'initialize') answer(id, { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 's', version: '1' } });
    const description = process.env.GIVEN + ' ' + process.ppid;
    if (method === 'tools/list') answer(id, { tools: [{ name: process.execPath, description, inputSchema: { type: 'object' } }] });
  });`;
const COMMAND = { command: 'node', args: ['server.cjs'], env: { GIVEN: 'yes' } };

async function serverFolder(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'sub-agent-'));
  t.after(() => rm(folder, { recursive: true }));
  await writeFile(join(folder, 'server.cjs'), SERVER);
  return folder;
}

test('an MCP server runs in the folder of the agents file, with the Node that runs Hopline', async t => {
  const agent = await make({ name: 'm', adapter: 'mcp', ...COMMAND }, await serverFolder(t));
  t.after(() => agent.close());
  const [skill] = await agent.skills();
  assert.equal(skill?.id, process.execPath);
  assert.equal(skill?.description, `yes ${process.pid}`);
});

const ENTRIES = [
  { name: 'm', adapter: 'mcp', ...COMMAND },
  { name: 'llm', adapter: 'model', model: 'x', mcp: [COMMAND] },
];
for (const entry of ENTRIES)
  test(`an MCP server of the adapter ${entry.adapter} is a child of the container of the code`, async t => {
    const folder = await serverFolder(t);
    const socket = join(folder, 'socket');
    const program = fileURLToPath(import.meta.resolve('@hopline/agent-code/listener'));
    const container = spawn(process.execPath, [program, socket], { env: { PATH: '/usr/bin:/bin' }, stdio: 'inherit' });
    t.after(() => container.kill('SIGKILL'));
    const agent = await make(entry, folder, elsewhere(socket));
    t.after(() => agent.close());
    const skill = (await agent.skills()).find(({ id }) => id === process.execPath);
    assert.equal(skill?.description, `yes ${container.pid}`);
  });

test('an A2A agent is not contacted before its first use', async () => {
  const agent = await make({ name: 'a', adapter: 'a2a', url: 'http://127.0.0.1:1/', description: 'There' });
  assert.equal(agent.description, 'There');
  await assert.rejects(agent.skills(), /cannot be reached/);
  await agent.close();
});

test("a model's key comes from the named variable; the default key is sent only to the default address", async t => {
  const seen: (string | undefined)[] = [];
  const server = createServer((request, response) => {
    seen.push(request.headers.authorization);
    response.writeHead(400).end();
  });
  const origin = await listen(server);
  t.after(() => server.close());
  const baseUrl = `${origin}/v1`;
  for (const more of [{ apiKeyEnv: 'MODEL_KEY' }, {}]) {
    const agent = await make({ name: 'm', adapter: 'model', model: 'x', baseUrl, ...more });
    const message = { messageId: 'm', role: 'ROLE_USER' as const, parts: [{ text: 'hi' }] };
    const turn = {
      taskId: 't',
      contextId: 'c',
      message,
      metadata: {},
      history: [],
      attempt: 1,
      trace: {},
      signal: AbortSignal.timeout(20_000),
    };
    for await (const event of agent.run(turn)) assert.equal(event.type, 'failed');
    await agent.close();
  }
  assert.deepEqual(seen, ['Bearer own-key', undefined]);
  const missing = { name: 'm', adapter: 'model', model: 'x', baseUrl, apiKeyEnv: 'NOT_SET' };
  await assert.rejects(make(missing), { message: 'agent "m": the variable that apiKeyEnv names is not set' });
  await assert.rejects(make({ ...missing, apiKeyEnv: 'BROKEN_KEY' }), {
    message: 'agent "m": the variable that apiKeyEnv names contains characters that a header cannot have',
  });
});

test('an unset variable that the code of an agent needs is reported at start', async t => {
  const folder = await mkdtemp(join(tmpdir(), 'sub-agent-'));
  t.after(() => rm(folder, { recursive: true }));
  await writeFile(join(folder, 'a.mjs'), 'export default { name: "a", description: "a", async *run() {} };');
  const entry = { name: 'a', adapter: 'module', path: './a.mjs' };
  await (await make({ ...entry, env: ['MODEL_KEY'] }, folder)).close();
  await assert.rejects(make({ ...entry, env: ['MODEL_KEY', 'NOT_SET'] }, folder), {
    message: 'agent "a": the variable that env.1 names is not set',
  });
  assert.throws(() => make({ ...entry, env: { A: 'b' } }, folder), /env must be a list of names of environment variables/);
});

test('an instance of a class is an agent, even with a description in its entry', async t => {
  const folder = await mkdtemp(join(tmpdir(), 'sub-agent-'));
  t.after(() => rm(folder, { recursive: true }));
  const text = `class Counter {
    #turns = 0;
    description = 'from the module';
    async skills() { return []; }
    async *run() { this.#turns += 1; yield { type: 'text', text: String(this.#turns) }; }
    async close() { this.#turns = -1; }
  }
  export default new Counter();`;
  await writeFile(join(folder, 'counter.mjs'), text);
  const entry = { name: 'a', adapter: 'module', path: './counter.mjs' };
  for (const [more, description] of [
    [{}, 'from the module'],
    [{ description: 'from the entry' }, 'from the entry'],
  ] as const) {
    const agent = await make({ ...entry, ...more }, folder);
    assert.equal(agent.description, description);
    assert.deepEqual(await agent.skills(), []);
    assert.match((await playTurn(agent, 'x')).text, /^-?\d$/);
    await agent.close();
  }
});
