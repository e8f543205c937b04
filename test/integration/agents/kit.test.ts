import assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { after, type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { decodeRemoteResponse, decodeSse, Fold } from '@hopline/a2a';
import { compileCache } from '../../kit/compile-cache.ts';
import { collect, type Frame, messageParams, shapeOf, textOf } from '../../support/cluster/a2a-stream.ts';
import { Cluster } from '../../support/cluster/cluster.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const CLI = join(ROOT, 'packages/cli/src/main.ts');

async function emptyFolder(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'hopline-agent-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** Code blocks of one language in the README's section about writing an agent. */
async function readmeBlocks(language: string): Promise<string[]> {
  const readme = await readFile(join(ROOT, 'packages/agent/README.md'), 'utf8');
  return [...readme.matchAll(new RegExp(`^\`\`\`${language}\n([\\s\\S]*?)^\`\`\``, 'gm'))].map(match => match[1]!);
}

/** `hopline` and `node` on the PATH, as after an installation. */
async function pathWithHopline(folder: string): Promise<string> {
  const bin = join(folder, 'bin');
  await mkdir(bin);
  await symlink(CLI, join(bin, 'hopline'));
  await symlink(process.execPath, join(bin, 'node'));
  return `${bin}:${process.env.PATH}`;
}

/** Runs a command of the README in a folder, and collects stdout and stderr. */
function runLine(line: string, cwd: string, env: Record<string, string | undefined>) {
  // Its own process group, so that the shell's child ends with it.
  const child = spawn('/bin/sh', ['-c', `exec ${line}`], {
    cwd,
    env: { ...compileCache(), ...env },
    detached: true,
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  const shown = { out: '' };
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text: string) => (shown.out += text));
  return { child, shown };
}

async function waitForOutput(child: ChildProcess, shown: { out: string }, words: RegExp): Promise<void> {
  while (!words.test(shown.out)) {
    const data = [child.stdout!, child.stderr!].map(stream => once(stream, 'data').then(() => false));
    const ended = await Promise.race([once(child, 'close').then(() => true), ...data]);
    if (ended) assert.match(shown.out, words);
  }
}

function foldOf(frames: readonly Frame[]): Fold {
  const fold = new Fold();
  for (const { event } of frames) fold.add(event);
  return fold;
}

const recorded = { name: 'other', adapter: 'recording', path: join(ROOT, 'infra/local/demo/guide.jsonl'), pace: 'burst' };

/** The cluster of the tests that run agents of their own alongside it. */
let beside: Promise<Cluster> | undefined;

function clusterBeside(): Promise<Cluster> {
  beside ??= Cluster.shared({ agents: [recorded] });
  return beside;
}

after(async () => (await beside)?.[Symbol.asyncDispose]());

const curlIsMissing = spawnSync('curl', ['--version']).error !== undefined && 'curl is not installed here';

test('the example of the README, copied into an empty folder, answers a curl request', { skip: curlIsMissing }, async t => {
  const [source] = await readmeBlocks('ts');
  const [commands] = await readmeBlocks('sh');
  const [start, curl] = commands!.trim().split('\n');
  assert.ok(source!.split('\n').length + 2 <= 20, 'the example has at most twenty lines');
  const cluster = await clusterBeside();
  const folder = await emptyFolder(t);
  const PATH = await pathWithHopline(await emptyFolder(t));
  await writeFile(join(folder, 'my-agent.ts'), source!);
  // `npm start` writes this file, by which the command finds the cluster.
  const home = await emptyFolder(t);
  const processes = [{ service: 'nats', instance: 'nats-1', pid: 1, url: cluster.nats.url }];
  await writeFile(join(home, 'run.json'), JSON.stringify({ processes }));
  // The port in the environment is that of the cluster, not of the agent.
  const HOPLINE_PORT = `${cluster.ingresses[0]!.port}`;
  const { child, shown } = runLine(start!, folder, { PATH, HOME: process.env.HOME, HOPLINE_HOME: home, HOPLINE_PORT });
  t.after(() => child.kill('SIGKILL'));
  await waitForOutput(child, shown, /greeter is running/);
  assert.doesNotMatch(shown.out, /MODULE_TYPELESS|warning/i);

  // curl's progress bar would be on stderr, within the collected output.
  const question = runLine(curl!.replace('curl ', 'curl --silent ').replace('http://127.0.0.1:8000/', cluster.url), folder, {
    PATH,
  });
  await once(question.child, 'close');
  const fold = new Fold();
  for await (const { data } of decodeSse(Readable.from([Buffer.from(question.shown.out)]))) {
    const response = decodeRemoteResponse(JSON.parse(data));
    if ('event' in response) fold.add(response.event);
  }
  assert.equal(fold.task?.status.state, 'TASK_STATE_COMPLETED');
  assert.equal(fold.textOf('streaming_result'), 'Hello, Ada!\n');
  assert.equal(fold.textOf('card.md'), '# For Ada\n');
  assert.equal(fold.textOf('progress'), 'Choosing a greeting');
  assert.deepEqual(fold.violations, []);
  await waitForOutput(child, shown, /turn ended · completed/);
  assert.match(shown.out, /greeted with 3 characters/);
  assert.doesNotMatch(shown.out, /Ada/);

  // Ctrl-C drains the current turn; the process then ends.
  child.kill('SIGINT');
  const [code] = await once(child, 'exit');
  assert.equal(code, 130);
});

/** An agent in a folder, run by `hopline agent` alongside a cluster. */
async function startAgent(t: TestContext, cluster: Cluster, source: string, options = '') {
  const folder = await emptyFolder(t);
  await writeFile(join(folder, 'my-agent.ts'), source);
  const env = { PATH: process.env.PATH, HOME: process.env.HOME, NATS_URL: cluster.nats.url };
  const line = `${process.execPath} ${CLI} agent ./my-agent.ts ${options}`;
  const { child, shown } = runLine(line, folder, env);
  t.after(() => child.kill('SIGKILL'));
  const prints = async (words: RegExp) => {
    while (!words.test(shown.out)) {
      assert.equal(child.exitCode, null, shown.out);
      await new Promise(resolve => setTimeout(resolve, 20));
    }
  };
  return { folder, child, shown, prints };
}

const agentSource = (name: string, body: string) =>
  `import { defineAgent } from '@hopline/agent';\nexport default defineAgent({ name: '${name}', description: 'Mine', async *run(turn) { ${body} } });\n`;

const ask = (cluster: Cluster, agent: string, text: string) =>
  collect(cluster.url, { params: messageParams(text, { metadata: { agent } }) });

test('an error that an agent throws is shown with message and stack on its author’s terminal, and nowhere else', {
  timeout: 120_000,
}, async t => {
  const cluster = await clusterBeside();
  const source = agentSource('failing', `yield 'so far'; throw new Error('the password is ' + turn.text);`);
  const { prints } = await startAgent(t, cluster, source);
  await prints(/failing is running/);
  const frames = await ask(cluster, 'failing', 'PLANTED');
  assert.equal(shapeOf(frames.at(-1)!), 'status:failed');
  await prints(/agent failing threw Error: the password is PLANTED\n\s+at .*my-agent\.ts:2/);
  assert.doesNotMatch(JSON.stringify(frames.slice(1)), /the password/);
  for (const service of cluster.services) assert.doesNotMatch(service.output, /the password/);
});

test('a watched agent restarts on the same port when its source changes, and waits while it cannot run', {
  timeout: 120_000,
}, async t => {
  const cluster = await clusterBeside();
  const { folder, child, shown, prints } = await startAgent(t, cluster, agentSource('watched', `yield 'first';`), '--watch');
  await prints(/watched is running \(http\S+\)/);
  const url = /http\S+(?=\))/.exec(shown.out)![0];
  assert.equal(textOf(await ask(cluster, 'watched', 'x'), 'streaming_result'), 'first');
  const change = (source: string) => writeFile(join(folder, 'my-agent.ts'), source);
  await change('export default {');
  await prints(/cannot be loaded[\s\S]*waiting for a change/);
  await change(agentSource('watched', `yield 'second';`));
  await prints(/watched is running[\s\S]*watched is running/);
  assert.ok(shown.out.lastIndexOf(url) > shown.out.indexOf(url), 'the same port');
  assert.equal(textOf(await ask(cluster, 'watched', 'x'), 'streaming_result'), 'second');
  child.kill('SIGINT');
  assert.equal((await once(child, 'exit'))[0], 130);
});

test('a module of the agents file asks, continues with the answer, and has the name of the file', async t => {
  const folder = await emptyFolder(t);
  const [source] = await readmeBlocks('ts');
  await writeFile(join(folder, 'my-agent.ts'), source!);
  const agents = [{ name: 'ada', adapter: 'module', path: './my-agent.ts', export: 'default' }];
  await using cluster = await Cluster.shared({ agents, agentsFolder: folder });
  const question = foldOf(await ask(cluster, 'ada', ''));
  assert.equal(question.task?.status.state, 'TASK_STATE_INPUT_REQUIRED');
  assert.equal(question.task.status.message?.parts[0]?.text, 'Who should I greet?');
  const { id: taskId, contextId } = question.task;
  const frames = await collect(cluster.url, { params: messageParams('Grace', { taskId, contextId }) });
  assert.equal(textOf(frames, 'streaming_result'), 'Hello, Grace!\n');
  assert.equal(shapeOf(frames.at(-1)!), 'status:completed');
});
