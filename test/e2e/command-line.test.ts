import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { ModelServer } from '../support/agents/model-server.ts';
import { Cluster } from '../support/cluster/cluster.ts';
import { type Finished, HoplineCommand } from '../support/cluster/hopline-command.ts';
import { COMMAND_SOURCE } from '../support/cluster/service-process.ts';

/** Tests the command against real clusters: its standard output is exactly the bytes of the answer, whatever else an agent sends. */

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const EXAMPLES = join(ROOT, 'infra/examples');

/** The limit is long, because each cluster has eight processes, and each command is a further one. */
const TIMEOUT = { timeout: 180_000 };

let folder: string;
let lower: Cluster;
let upper: Cluster;
let model: ModelServer;

/** The agent of the README of packages/agent, as it stands there. */
function greeterOfReadme(): string {
  const readme = readFileSync(join(ROOT, 'packages/agent/README.md'), 'utf8');
  const code = [...readme.matchAll(/```ts\n([\s\S]*?)```/g)]
    .map(match => match[1]!)
    .find(block => block.includes('defineAgent('));
  return code ?? assert.fail('the README has no agent');
}

/** Its answer as it was recorded. */
const GUIDE = readFileSync(join(ROOT, 'infra/local/demo/guide.jsonl'), 'utf8')
  .trim()
  .split('\n')
  .map(line => (JSON.parse(line) as { t?: string }).t ?? '')
  .join('');

const AGENTS = () => [
  { name: 'greeter', adapter: 'module', path: join(folder, 'my-agent.ts') },
  { name: 'dice', adapter: 'module', path: join(EXAMPLES, 'hand-written/dice.ts') },
  { name: 'writer', adapter: 'langgraph', module: join(EXAMPLES, 'langgraph/writer.ts'), export: 'graph', checkpointer: 'saver' },
  {
    name: 'guide',
    adapter: 'recording',
    path: join(ROOT, 'infra/local/demo/guide.jsonl'),
    skills: [skill('explain', 'Explain Hopline')],
  },
  {
    name: 'sums',
    adapter: 'model',
    model: 'm',
    description: 'Adds numbers',
    default: true,
    skills: [skill('sum', 'Add numbers')],
  },
];

const skill = (id: string, name: string) => ({ id, name, description: name, tags: [] });

before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'hopline-command-line-'));
  writeFileSync(join(folder, 'my-agent.ts'), greeterOfReadme());
  model = await ModelServer.start(() => [{ text: 'It is 42.\n' }, { finish: 'stop' }]);
  const env = { OPENAI_BASE_URL: model.url, OPENAI_API_KEY: 'key' };
  lower = await Cluster.start({ agents: AGENTS(), env });
  upper = await Cluster.start({ agents: [{ name: 'regional', adapter: 'a2a', url: lower.url }] });
});

after(async () => {
  await Promise.all([lower, upper].map(cluster => cluster?.[Symbol.asyncDispose]()));
  await model?.[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

const hopline = (
  { url }: { url: string },
  argv: readonly string[],
  input = '',
  environment: Record<string, string> = {},
): Promise<Finished> => new HoplineCommand(url, argv, input, { HOPLINE_HOME: join(folder, 'home'), ...environment }).finished;

/** Asks, and reads the task again with `get`, and with `follow` if it has ended: all print the same. */
async function answerOf(cluster: { url: string }, argv: readonly string[]): Promise<Finished> {
  const context = crypto.randomUUID();
  const asked = await hopline(cluster, ['ask', '--context', context, ...argv]);
  const [task] = (await hopline(cluster, ['list', '--context', context, '--json'])).out.trim().split('\n');
  const { id } = JSON.parse(task!) as { id: string };
  for (const command of asked.code === 0 ? ['get', 'follow'] : ['get']) {
    const again = await hopline(cluster, [command, id]);
    assert.equal(again.out, asked.out, command);
    if (asked.code === 0) assert.equal(again.err, asked.err, command);
  }
  return asked;
}

test('the README’s agent: its answer is printed once, its file in one line, and its progress only on a terminal', {
  timeout: 180_000,
}, async () => {
  const expected = { code: 0, out: 'Hello, Ada!\n', err: 'card.md, 10 bytes\n' };
  assert.deepEqual(await answerOf(lower, ['--agent', 'greeter', 'Ada']), expected);
});

test('--out saves the file of an agent, and a second answer does not replace it', TIMEOUT, async () => {
  const out = join(folder, 'saved');
  for (const [name, file] of [
    ['Ada', 'card.md'],
    ['Bob', 'card-2.md'],
  ] as const) {
    const asked = await hopline(lower, ['ask', '--agent', 'greeter', name, '--out', out]);
    assert.deepEqual([asked.code, asked.out, asked.err], [0, `Hello, ${name}!\n`, `card.md, 10 bytes -> ${join(out, file)}\n`]);
    assert.equal(readFileSync(join(out, file), 'utf8'), `# For ${name}\n`);
  }
  const asJson = await hopline(lower, ['ask', '--agent', 'greeter', 'Eve', '--out', out, '--json']);
  assert.ok(asJson.out.split('\n').every(line => line === '' || 'cursor' in JSON.parse(line)));
  assert.deepEqual(readdirSync(out).sort(), ['card-2.md', 'card-3.md', 'card.md']);
});

test('dice: data and a file beside the answer', TIMEOUT, async () => {
  const { code, out, err } = await answerOf(lower, ['--agent', 'dice', 'throw 5 dice']);
  assert.equal(code, 0);
  assert.match(out, /^([1-6] ){5}\nTogether \d+\.\n$/);
  assert.match(err, /^data, \d+ bytes\ndice\.csv, 27 bytes\n$/);
});

test('LangGraph: the answer before a question and the one after it', TIMEOUT, async () => {
  const asked = await answerOf(lower, ['--agent', 'writer', 'a poem']);
  assert.deepEqual([asked.code, asked.out], [4, 'Roses are red,\nviolets are blue,\nlogs are append-only,\nand so are you.\n']);
  const task = /input required: Shall I publish it\? \(yes or no\)\nreply with: .* --task (\S+)/.exec(asked.err)?.[1];
  assert.deepEqual(await hopline(lower, ['ask', '--task', task!, 'yes']), { code: 0, out: 'Published.', err: '' });
});

test('a recording: byte for byte', TIMEOUT, async () => {
  assert.deepEqual(await answerOf(lower, ['--agent', 'guide', 'explain']), { code: 0, out: GUIDE, err: '' });
});

test('a model: its text', TIMEOUT, async () => {
  assert.deepEqual(await answerOf(lower, ['--agent', 'sums', 'add 40 and 2']), { code: 0, out: 'It is 42.\n', err: '' });
});

test('nested clusters: plan and notices of the lower cluster are not printed, and its files stay files', TIMEOUT, async () => {
  const greeted = await answerOf(upper, ['greet a person']);
  assert.deepEqual(greeted, { code: 0, out: 'Hello, greet a person!\n', err: 'card.md, 21 bytes\n' });
  const thrown = await answerOf(upper, ['throw 2 dice']);
  assert.match(thrown.out, /^([1-6] ){2}\nTogether \d+\.\n$/);
  assert.deepEqual(await answerOf(upper, ['explain hopline']), { code: 0, out: GUIDE, err: '' });
});

test('agents shows names, states, skills and the default; if no agent fits, the hint names them', TIMEOUT, async () => {
  const { code, out, err } = await hopline(lower, ['agents']);
  assert.deepEqual([code, err], [0, '']);
  assert.match(out, /^ {2}dice {5}live, seen \d+ s ago {2}Throws dice {2}\[Throw dice\]$/m);
  assert.match(out, /^\* sums {5}live, /m);
  const list = (await hopline(lower, ['agents', '--json'])).out
    .trim()
    .split('\n')
    .map(line => JSON.parse(line));
  assert.deepEqual(
    list.map(({ name }) => name).sort(),
    AGENTS()
      .map(({ name }) => name)
      .sort(),
  );
  const asked = await new HoplineCommand(lower.url, ['ask', '--agent', 'absent', 'hello'], '', {}, COMMAND_SOURCE).finished;
  assert.equal(asked.code, 1);
  assert.match(
    asked.err,
    /failed: the agent "absent" is not available; choose one of: [\w, ]+\nname one with: npm .*ask --agent [\w|]+ --url \S+ TEXT\n$/,
  );
  assert.equal((await hopline(upper, ['ask', '--agent', 'regional/greeter', 'Ada'])).out, 'Hello, Ada!\n');
});

test('profiles transparent and aion: the answer is the same', TIMEOUT, async () => {
  for (const profile of ['transparent', 'aion']) {
    const ingress = await lower.addIngress(`ingress-${profile}`, { HOPLINE_PROFILE: profile });
    const expected = { code: 0, out: 'Hello, Ada!\n', err: 'card.md, 10 bytes\n' };
    assert.deepEqual(await answerOf(ingress, ['--agent', 'greeter', 'Ada']), expected, profile);
  }
});
