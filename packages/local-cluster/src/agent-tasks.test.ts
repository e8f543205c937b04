import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { listen } from '../../../test/kit/listen.ts';
import { agentTasks } from './agent-tasks.ts';

const { signal } = new AbortController();

let folder: string;
let file: string;
let url: string;
const requests: { path: string; headers: IncomingHttpHeaders }[] = [];
const elsewhere: string[] = [];

const other = createServer((request, response) => {
  elsewhere.push(request.url!);
  response.end('{}');
});
const server = createServer((request, response) => {
  requests.push({ path: request.url!, headers: request.headers });
  if (request.url!.includes('moved')) {
    const { port } = other.address() as AddressInfo;
    return response.writeHead(302, { location: `http://127.0.0.1:${port}/tasks/moved/audit` }).end();
  }
  const isKnown = request.url === '/tasks/t%2F1/audit';
  response.writeHead(isKnown ? 200 : 404, { 'content-type': 'application/json' }).end(isKnown ? '{"taskId":"t/1"}' : '{}');
});

before(async () => {
  for (const one of [server, other]) {
    await listen(one);
  }
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  folder = mkdtempSync(join(tmpdir(), 'hopline-agent-tasks-'));
  file = join(folder, 'agents.json');
  const auth = { bearerEnv: 'REGIONAL_TOKEN' };
  const agents = [
    { name: 'regional', adapter: 'a2a', url, auth, headers: { 'x-team': 'ops' } },
    { name: 'keyed', adapter: 'a2a', url, auth: { apiKeyEnv: 'KEY' }, headersEnv: { 'x-more': 'MORE' } },
    { name: 'own', adapter: 'module', path: './own.ts' },
  ];
  writeFileSync(file, JSON.stringify({ agents }));
});

after(() => {
  for (const one of [server, other]) {
    one.closeAllConnections();
    one.close();
  }
  rmSync(folder, { recursive: true, force: true });
});

test('an audit is read with the credentials of the entry, whose variables the reader has', async () => {
  const read = agentTasks(file, { REGIONAL_TOKEN: 'secret', KEY: 'k', MORE: 'm' });
  assert.deepEqual(await read('regional', 't/1', signal), { url, report: { taskId: 't/1' } });
  const { path, headers } = requests.at(-1)!;
  assert.deepEqual([path, headers.authorization, headers['x-team']], ['/tasks/t%2F1/audit', 'Bearer secret', 'ops']);
  await read('keyed', 't/1', signal);
  const { 'x-api-key': key, 'x-more': more } = requests.at(-1)!.headers;
  assert.deepEqual([key, more], ['k', 'm']);
});

test('a credential that no header can have is named by its field, and nothing is sent', async () => {
  const before = requests.length;
  const { fault } = await agentTasks(file, { REGIONAL_TOKEN: 'sec\nret' })('regional', 't/1', signal);
  assert.equal(fault, 'the variable that auth.bearerEnv names contains characters that a header cannot have');
  assert.equal(requests.length, before);
});

test('a reader without credentials sends none', async () => {
  await agentTasks(file, undefined)('regional', 't/1', signal);
  const { authorization, 'x-team': team } = requests.at(-1)!.headers;
  assert.deepEqual([authorization, team], [undefined, undefined]);
});

test('no request goes to an address that the file does not name: unknown agents, agents without an address, redirects', async () => {
  const read = agentTasks(file, {});
  const before = requests.length;
  for (const agent of ['own', 'absent', 'toString'])
    assert.deepEqual(await read(agent, 't/1', signal), { fault: 'the agents file has no address for this agent' });
  assert.equal(requests.length, before);
  const moved = await read('regional', 'moved', signal);
  assert.ok(moved.fault !== undefined && moved.report === undefined);
  assert.deepEqual(elsewhere, []);
});

test('an agent without audits has the reason of its server, and an interrupted reader rejects', async () => {
  const absent = await agentTasks(file, {})('regional', 'unknown', signal);
  assert.match(absent.fault!, /audits|not found/i);
  const aborted = AbortSignal.abort(new Error('interrupted'));
  await assert.rejects(agentTasks(file, {})('regional', 't/1', aborted), /interrupted/);
});

test('a file that is not an agents file is refused with its name', () => {
  const wrong = join(folder, 'wrong.json');
  for (const [text, reason] of [
    ['{', 'not JSON'],
    ['{"agents":1}', 'no list "agents"'],
  ] as const) {
    writeFileSync(wrong, text);
    assert.throws(() => agentTasks(wrong, {}), { message: `${wrong} is not an agents file (${reason})` });
  }
  assert.throws(() => agentTasks(join(folder, 'absent.json'), {}), /absent\.json is not an agents file \(ENOENT\)/);
});
