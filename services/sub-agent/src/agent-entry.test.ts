import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AGENT_EXTENSIONS_MAX } from '@hopline/agent-a2a/limits';
import { Ajv } from 'ajv';
import { FAULTS_MAX, parseAgentEntry, SCHEMAS } from './agent-entry.ts';
import { subAgentConfig } from './config.ts';

const parse = (entry: unknown) => parseAgentEntry(typeof entry === 'string' ? entry : JSON.stringify(entry));
const rejects = (entry: unknown, sentence: string | RegExp) => assert.throws(() => parse(entry), { message: sentence });

const A2A = { name: 'argo', adapter: 'a2a', url: 'http://localhost:8001/' };
const MCP = { name: 'files', adapter: 'mcp', command: 'node', args: ['server.js'] };
const MODEL = { name: 'llm', adapter: 'model', model: 'gpt-5-mini' };
const RECORDING = { name: 'demo', adapter: 'recording', path: 'a.jsonl' };

test('the schemas of entries are valid JSON Schemas', () => {
  const ajv = new Ajv({ strict: false });
  for (const schema of Object.values(SCHEMAS)) assert.equal(ajv.validateSchema(schema), true, ajv.errorsText());
});

test('an unknown field is named before a missing one, with the field that it resembles', () => {
  rejects(
    { name: 'own', adapter: 'module', pth: './a.ts' },
    /^agent "own": unknown field pth; did you mean path\? known fields: /,
  );
  rejects({ ...A2A, fowardText: true }, /unknown field fowardText; did you mean forwardText\?/);
  rejects({ ...A2A, colour: 'red' }, /unknown field colour; known fields: /);
  rejects({ ...A2A, tls: { cafile: 'x' } }, /unknown field tls\.cafile; did you mean caFile\?/);
});

test('all faults of an entry are in one error, each once, and at most ten of them', () => {
  const skills = [{ name: 'One' }, 7, { id: 'x', name: 'X', description: 'Does x', tags: [] }];
  rejects(
    { ...MCP, skills, retries: -1, colour: 'red' },
    /^agent "files": unknown field colour; known fields: [^;]+; skills\.0\.id is missing; skills\.0\.description is missing; skills\.0\.tags is missing; skills\.1 must be a text, or \{"id": …, "name": …, "description": …, "tags": \[…\]\}; retries must be >= 0$/,
  );
  const many = Array.from({ length: FAULTS_MAX + 1 }, () => 7);
  const count = (faults: number) => {
    let message = '';
    assert.throws(
      () => parse({ ...MCP, skills: many.slice(0, faults) }),
      (error: Error) => {
        message = error.message;
        return true;
      },
    );
    return [message.split('; ').length, message.endsWith('; and 1 more')];
  };
  assert.deepEqual(
    [count(FAULTS_MAX), count(FAULTS_MAX + 1)],
    [
      [FAULTS_MAX, false],
      [FAULTS_MAX + 1, true],
    ],
  );
});

test('a skill may be its name, as in defineAgent', () => {
  assert.deepEqual(parse({ ...MCP, skills: ['Read a File!'] }).skills, [
    { id: 'read-a-file-', name: 'Read a File!', description: 'Read a File!', tags: [] },
  ]);
  rejects({ ...MCP, skills: [''] }, /^agent "files": skills\.0\.(?:id|name) /);
});

test('the entries of the README are valid', () => {
  const skills = [{ id: 'x', name: 'X', description: 'Does x', tags: [], examples: ['do x'] }];
  for (const entry of [
    A2A,
    {
      ...A2A,
      deltas: 'cumulative',
      text: 'progress',
      headers: { authorization: 'Bearer k' },
      silenceMsMax: 5_000,
      description: 'd',
      skills,
    },
    {
      ...A2A,
      auth: { bearerEnv: 'ARGO_TOKEN' },
      headersEnv: { 'x-org': 'ORG_VAR' },
      extensions: ['https://example.org/ext/one'],
    },
    { ...A2A, auth: { apiKeyEnv: 'ARGO_KEY', header: 'x-key' } },
    { ...A2A, url: 'https://argo.test/', tls: { caFile: 'ca.pem', certFile: './own.pem', keyFile: '/etc/own.key' } },
    MCP,
    { ...MCP, env: { A: 'b' }, totalMsMax: 1 },
    { name: 'http', adapter: 'mcp', url: 'https://mcp.test/mcp', headers: { a: 'b' } },
    MODEL,
    {
      ...MODEL,
      baseUrl: 'http://127.0.0.1:11434/v1',
      apiKeyEnv: 'MY_KEY',
      system: 'be brief',
      mcp: [{ command: 'node', args: ['x.js'] }, { url: 'https://mcp.test/mcp' }],
      reasoning: true,
      approve: ['refund'],
      stepsMax: 128,
      silenceMsMax: 280_000,
    },
    RECORDING,
    { ...RECORDING, pace: 'burst' },
    { ...RECORDING, pace: 0.5 },
    { adapter: 'module', path: './a.ts', loadMsMax: 600_000 },
    { name: 'g', adapter: 'langgraph', module: './g.ts', export: 'graph', checkpointer: 'saver', silenceMsMax: 1, totalMsMax: 1 },
    { name: 'g', adapter: 'langgraph', url: 'http://x/', assistant: 'a', headers: { 'x-api-key': 'k' } },
    { name: 'own', adapter: 'module', path: './a.ts', export: 'agent', description: 'd', skills },
  ]) {
    assert.deepEqual(parse(entry), entry);
  }
});

test('each error is one sentence with agent and field, without values', () => {
  rejects('{', 'HOPLINE_AGENT is not JSON');
  rejects([], 'HOPLINE_AGENT is not an object');
  rejects({}, 'the agent: adapter must be one of a2a, ag-ui, langgraph, mcp, model, module, recording');
  rejects(
    { name: 'x', adapter: 'nothing' },
    'agent "x": adapter must be one of a2a, ag-ui, langgraph, mcp, model, module, recording',
  );
  rejects({ name: 'x', adapter: 'toString' }, /adapter must be one of/);
  rejects(
    { ...A2A, urls: 1 },
    /^agent "argo": unknown field urls; did you mean url\? known fields: name, adapter, description, skills, retries, default, forwardText, url, deltas, text, headers, /,
  );
  rejects({ name: 'argo', adapter: 'a2a' }, 'agent "argo": url is missing');
  rejects({ ...A2A, name: 'Argo CD' }, 'agent "Argo CD": name must be 1 to 32 of a-z, 0-9 and - (not first)');
  rejects({ ...A2A, url: 'ftp://secret' }, 'agent "argo": url must begin with http:// or https://');
  rejects({ ...A2A, deltas: 'all' }, 'agent "argo": deltas must be one of incremental, cumulative, whole');
  rejects({ ...A2A, headers: { authorization: 7 } }, 'agent "argo": headers.authorization must be string');
  rejects({ ...A2A, silenceMsMax: 0 }, 'agent "argo": silenceMsMax must be >= 1');
  rejects(
    { ...A2A, skills: [{ id: 'x' }] },
    /^agent "argo": skills\.0\.name is missing; skills\.0\.description is missing; skills\.0\.tags is missing$/,
  );
  rejects(
    { ...RECORDING, pace: 'slow' },
    'agent "demo": pace must be "recorded", "burst", "packets" or a number of tokens per second up to 100000',
  );
  rejects({ ...RECORDING, pace: 0 }, /pace must be/);
  rejects({ name: 'm', adapter: 'mcp' }, 'agent "m": give either a command or a url');
  rejects({ ...MCP, url: 'http://x/' }, 'agent "files": give either a command or a url');
  rejects({ name: 'm', adapter: 'mcp', url: 'http://x/', args: [] }, 'agent "m": args and env require a command, not a url');
  rejects({ name: 'm', adapter: 'module' }, 'agent "m": path is missing');
  rejects({ name: 'No', adapter: 'module', path: 'a.ts' }, 'agent "No": name must be 1 to 32 of a-z, 0-9 and - (not first)');
  const graph = { name: 'g', adapter: 'langgraph' };
  rejects(graph, 'agent "g": give either a module or the url of a server');
  rejects({ ...graph, module: 'g.ts', url: 'http://x/' }, 'agent "g": give either a module or the url of a server');
  rejects({ ...graph, url: 'http://x/' }, 'agent "g": assistant is missing: name a graph of the server');
  rejects({ ...graph, module: 'g.ts', assistant: 'a' }, 'agent "g": assistant and headers require a url, not a module');
  rejects(
    { ...graph, url: 'http://x/', assistant: 'a', checkpointer: 'c' },
    /export, checkpointer, loadMsMax and env require a module/,
  );
  rejects({ ...graph, url: 'http://x/', assistant: 'a', loadMsMax: 1 }, /loadMsMax and env require a module/);
  rejects({ ...graph, url: 'http://x/', assistant: 'a', env: ['A'] }, /export, checkpointer, loadMsMax and env require a module/);
  rejects({ ...MCP, headers: {} }, 'agent "files": headers require a url, not a command');
});

test('the entry is checked with the settings and never logged', () => {
  const settings = subAgentConfig.load({
    HOPLINE_AGENT: JSON.stringify({ ...A2A, headers: { authorization: 'Bearer secret' } }),
  });
  assert.ok(!JSON.stringify(subAgentConfig.effective(settings)).includes('secret'));
  assert.throws(() => subAgentConfig.load({ HOPLINE_AGENT: '{"name":"x","adapter":"y"}' }), /agent "x": adapter must be one of/);
  assert.throws(() => subAgentConfig.load({}), /HOPLINE_AGENT is required/);
});

test('a model entry is checked at its bounds; each MCP server has a command or a url', () => {
  rejects({ name: 'llm', adapter: 'model' }, /model is missing$/);
  rejects({ ...MODEL, stepsMax: 129 }, /stepsMax must be <= 128$/);
  rejects({ ...MODEL, silenceMsMax: 280_001 }, /silenceMsMax must be <= 280000$/);
  rejects({ ...MODEL, apiKeyEnv: 'sk-secret' }, 'agent "llm": apiKeyEnv must be the name of an environment variable');
  rejects({ ...MODEL, mcp: [{ url: 'https://x/' }, {}] }, 'agent "llm", mcp.1: give either a command or a url');
});

test('the credentials of an A2A entry and its bounds are checked', () => {
  const auth = 'agent "argo": auth must be {"bearerEnv": "VARIABLE"} or {"apiKeyEnv": "VARIABLE", "header": "x-api-key"}';
  for (const value of ['x', {}, { bearerEnv: 'sk-secret' }, { bearerEnv: 'A', apiKeyEnv: 'B' }, { bearerEnv: 'A', header: 'x' }])
    rejects({ ...A2A, auth: value }, auth);
  rejects({ ...A2A, auth: { apiKeyEnv: 'A', header: 'x y' } }, auth);
  rejects({ ...A2A, auth: { bearerEnv: 'A' }, headers: { Authorization: 'x' } }, /auth and another field set the same header$/);
  rejects({ ...A2A, auth: { apiKeyEnv: 'A' }, headersEnv: { 'X-Api-Key': 'B' } }, /auth and another field set the same header$/);
  rejects({ ...A2A, headersEnv: { 'x-org': 'sk-secret' } }, /: headersEnv\.x-org must be the name of an environment variable$/);
  rejects(
    { ...A2A, headersEnv: { 'x-org': 'A' }, headers: { 'X-Org': 'b' } },
    'agent "argo": headersEnv.x-org is also in headers',
  );
  for (const entry of [
    A2A,
    MODEL,
    { name: 'argo', adapter: 'langgraph', url: A2A.url, assistant: 'a' },
    { name: 'argo', adapter: 'mcp', url: A2A.url },
  ])
    rejects({ ...entry, headers: { 'x-org': 'sk-“secret”' } }, /: headers\.x-org contains characters that a header cannot have$/);
  const server = { url: A2A.url, headers: { 'x-org': 'é' } };
  rejects({ ...MODEL, mcp: [server] }, /, mcp\.0: headers\.x-org contains characters that a header cannot have$/);
  rejects({ ...A2A, headersEnv: { 'x org': 'A' } }, 'agent "argo": headersEnv has an invalid header name');
  const variables = Array.from({ length: 65 }, (_, at) => [`x-${at}`, 'A']);
  assert.doesNotThrow(() => parse({ ...A2A, headersEnv: Object.fromEntries(variables.slice(1)) }));
  rejects({ ...A2A, headersEnv: Object.fromEntries(variables) }, /: headersEnv must NOT have more than 64 properties$/);
  const env = Array.from({ length: 1_025 }, (_, at) => `V${at}`);
  const module = { name: 'own', adapter: 'module', path: './own.ts' };
  assert.doesNotThrow(() => parse({ ...module, env: env.slice(1) }));
  rejects({ ...module, env }, /: env must be a list of names of environment variables$/);
  assert.doesNotThrow(() => parse({ ...A2A, extensions: ['x'.repeat(1_024)] }));
  rejects({ ...A2A, extensions: ['x'.repeat(1_025)] }, /: extensions\.0 must be a URI of at most 1024 characters/);
  const extensions = Array.from({ length: AGENT_EXTENSIONS_MAX + 1 }, (_, at) => `urn:${at}`);
  assert.doesNotThrow(() => parse({ ...A2A, extensions: extensions.slice(1) }));
  rejects({ ...A2A, extensions }, 'agent "argo": extensions must NOT have more than 16 items');
  rejects(
    { ...A2A, extensions: ['urn:a,urn:b'] },
    'agent "argo": extensions.0 must be a URI of at most 1024 characters, without spaces and commas',
  );
  const secure = { ...A2A, url: 'https://argo.test/' };
  rejects({ ...A2A, tls: { caFile: 'a' } }, 'agent "argo": tls requires a url that begins with https://');
  rejects({ ...secure, tls: {} }, 'agent "argo": tls must name a file');
  rejects({ ...secure, tls: { certFile: 'a' } }, 'agent "argo": tls needs certFile and keyFile together; one is missing');
  rejects({ ...secure, tls: { ca: 'a' } }, 'agent "argo": unknown field tls.ca; known fields: caFile, certFile, keyFile');
});
