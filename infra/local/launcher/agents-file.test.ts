import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { test } from 'node:test';
import { parseAgents, readAgentsFile } from './agents-file.ts';
import { DEMO_AGENTS, demoQuestion } from './demo.ts';

const file = (...agents: unknown[]) => JSON.stringify({ agents });

test('entries are passed on unchanged, with all members', () => {
  const entry = { name: 'files', adapter: 'mcp', command: 'node', args: ['x'], nested: { a: 1 } };
  assert.deepEqual(parseAgents(file(entry)), [entry]);
});

test('the file may name its schema for editors; any other member is unknown', () => {
  const agents = [{ name: 'a', adapter: 'a2a' }];
  assert.equal(parseAgents(JSON.stringify({ $schema: './agents.schema.json', agents })).length, 1);
  assert.throws(
    () => parseAgents(JSON.stringify({ agent: agents })),
    /contains the unknown member "agent"; did you mean agents\?$/,
  );
});

test('each fault has its own message', () => {
  assert.throws(() => parseAgents('{'), /^Error: is not JSON/);
  for (const text of ['[]', 'null', '{"agents":{}}'])
    assert.throws(() => parseAgents(text), /must be an object with a list "agents"/);
  assert.throws(() => parseAgents(file()), /contains no agent/);
  assert.throws(
    () => parseAgents(file({ name: 'a', adapter: 'a2a' }, { name: 'a', adapter: 'mcp' })),
    /contains the agent "a" twice/,
  );
  assert.throws(() => parseAgents(file({ name: 'a' })), /has no "adapter" for the agent "a"/);
  assert.throws(() => parseAgents(file(null)), /has no valid name for agent 1/);
});

test('all faults are reported at once', () => {
  assert.throws(() => parseAgents(file({ name: 'A' }, { name: 'b', adapter: 'a2a' }, { name: 'b', adapter: 'a2a' })), {
    message:
      'has no valid name for agent 1: use 1 to 32 of a-z, 0-9 and - (not first); ' +
      'it has no "adapter" for agent 1: use one of a2a, ag-ui, langgraph, mcp, model, module, recording; ' +
      'it contains the agent "b" twice; names must be unique',
  });
});

test('a name is lower case and at most 32 characters, because it is part of subjects and file names', () => {
  assert.equal(parseAgents(file({ name: 'a'.repeat(32), adapter: 'a2a' })).length, 1);
  for (const name of ['a'.repeat(33), 'A', '-a', 'a.b', 'a/b', '', 7])
    assert.throws(() => parseAgents(file({ name, adapter: 'a2a' })), /has no valid name for agent 1/);
});

test('the number of agents and the size of an entry are bounded', () => {
  const many = (count: number) => file(...Array.from({ length: count }, (_, i) => ({ name: `a${i}`, adapter: 'a2a' })));
  assert.equal(parseAgents(many(64)).length, 64);
  assert.throws(() => parseAgents(many(65)), /contains 65 agents; the maximum is 64/);
  assert.throws(() => parseAgents(file({ name: 'a', adapter: 'a2a', url: 'x'.repeat(65_536) })), /more than 65536 characters/);
});

test('a missing file is named in the error', () => {
  assert.throws(() => readAgentsFile('/nowhere/agents.json'), {
    name: 'LaunchError',
    message: /^the agents file \/nowhere\/agents.json cannot be read \(ENOENT\)/,
  });
});

const recordedLines = () =>
  readFileSync(resolve(dirname(DEMO_AGENTS), 'guide.jsonl'), 'utf8')
    .trimEnd()
    .split('\n');

test('the demo has an installed MCP server and a recording', () => {
  const { agents, folder } = readAgentsFile(DEMO_AGENTS);
  assert.equal(folder, dirname(DEMO_AGENTS));
  const [files, guide] = agents as unknown as [{ args: string[] }, { path: string; default: boolean }];
  const server = files.args.find(argument => argument.includes('node_modules'));
  assert.ok(existsSync(resolve(folder, server ?? '')));
  assert.ok(files.args.includes('--permission'), 'the permission model disables the tools that write');
  assert.match(demoQuestion(), /^list_directory \{/);
  assert.ok(existsSync(resolve(folder, guide.path)) && guide.default, 'the guide answers what no skill fits');
  assert.ok(recordedLines().length >= 300);
});

test('the recording consists of model-sized tokens in chronological order', () => {
  let before = 0;
  const lines = recordedLines();
  assert.ok(lines.length > 100, `${lines.length} tokens`);
  for (const line of lines) {
    const { t, ms } = JSON.parse(line);
    assert.ok(t.length >= 1 && t.length <= 10, line);
    assert.ok(ms >= before, line);
    before = ms;
  }
});
