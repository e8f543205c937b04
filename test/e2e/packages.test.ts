import assert from 'node:assert/strict';
import { type ChildProcess, execFile, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, delimiter, dirname, join } from 'node:path';
import { after, before, type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { checkPackage, createPackageFromTarballData } from '@arethetypeswrong/core';
import { build } from 'esbuild';
import { publint } from 'publint';
import { formatMessage } from 'publint/utils';
import { binaryFault } from '../../infra/release/binary.ts';
import { COMMANDS } from '../../packages/cli/src/commands.ts';
import { Cluster } from '../support/cluster/cluster.ts';
import { COMMAND_SOURCE } from '../support/cluster/service-process.ts';
import { lowestNode, NO_LOWEST_NODE } from '../support/lowest-node.ts';
import { isUnreachable, NPM_UNREACHABLE, NpmRelease } from './npm-release.ts';
import { testTutorial } from './tutorial.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const run = promisify(execFile);
const INSTALL_MS_MAX = 240_000;
/** Source of an agent that repeats its question. */
const ECHO = `export default { name: 'echo', description: 'Repeats', async *run(turn) { yield turn.text; } };`;

/**
 * The public packages as a stranger gets them. Everything runs in one process, because making a release takes as long as its tests. npm
 * installs the 200 dependencies once, into the folder of a new agent; the global install and npx link the command of that folder.
 */
let folder: string;
let release: NpmRelease;
/** A folder that `hopline new agent` of this checkout has written, with the tarballs of its packages and of the client. */
let project: string;
/** A folder with only the client and the agent. */
let library: string;
/** The files of that folder before the install. */
const written = new Map<string, string>();
/** The command of the global install. */
let hopline: string;
let tarballs: Tarball[];
let unreachable: string | undefined;
let lowest: string | undefined;

/** The Node of the tests, which is the newest, and the lowest that the packages declare. */
const nodes = () => [process.execPath, ...(lowest === undefined ? [] : [lowest])];
const oldestNode = () => lowest ?? process.execPath;

before(
  async () => {
    folder = mkdtempSync(join(tmpdir(), 'hopline-packages-'));
    lowest = await lowestNode();
    release = await NpmRelease.start(join(folder, 'tarballs'));
    tarballs = ['client', 'agent', 'cli', 'react'].map(name => madeTarball(name, release.printed));
    // The modules in it are ES modules.
    writeFileSync(join(folder, 'package.json'), JSON.stringify({ name: 'stranger', private: true, type: 'module' }));
    project = join(folder, 'my-first');
    await run(process.execPath, [COMMAND_SOURCE, 'new', 'agent', 'my-first', '--packages', 'tarballs'], { cwd: folder });
    for (const file of readdirSync(project)) written.set(file, readFileSync(join(project, file), 'utf8'));
    library = join(folder, 'library');
    mkdirSync(library);
    writeFileSync(join(library, 'package.json'), JSON.stringify({ name: 'library', private: true, type: 'module' }));
    const [client, agent, , react] = tarballs.map(({ path }) => path);
    await install(project, client!).catch(error => {
      if (!isUnreachable(error)) throw error;
      unreachable = NPM_UNREACHABLE;
    });
    if (unreachable !== undefined) return;
    const command = join(project, 'node_modules/@hopline/cli');
    await install(project, '--global', '--prefix', join(folder, 'global'), command);
    await install(library, client!, agent!, react!, 'react-dom');
    hopline = join(folder, 'global/bin/hopline');
  },
  { timeout: 2 * INSTALL_MS_MAX },
);

/** Installs into a folder what its package.json names, and `args`. */
function install(cwd: string, ...args: string[]) {
  const npm = ['install', '--no-audit', '--no-fund', '--prefer-offline', ...args];
  return run('npm', npm, { cwd, timeout: INSTALL_MS_MAX });
}

let commandCluster: Promise<Cluster> | undefined;

/** The cluster that the tests of the command share, with the agent `echo`. The last of them stops it. */
function clusterOfCommand(): Promise<Cluster> {
  if (commandCluster === undefined) {
    const path = join(folder, 'echo.mjs');
    writeFileSync(path, ECHO);
    commandCluster = Cluster.start({ agents: [{ name: 'echo', adapter: 'module', path }] });
  }
  return commandCluster;
}

async function stopClusterOfCommand(): Promise<void> {
  await (await commandCluster)?.[Symbol.asyncDispose]();
  commandCluster = undefined;
}

after(async () => {
  await stopClusterOfCommand();
  await release?.stop();
  rmSync(folder, { recursive: true, force: true });
});

// Before the tests that start the cluster of the command, which runs until the end.
testTutorial(() => release);

/** A tarball of the packages, with the output about it of the command that made the packages. */
type Tarball = { name: string; path: string; files: number };

function madeTarball(name: string, printed: string): Tarball {
  const path = join(folder, 'tarballs', `hopline-${name}-${version()}.tgz`);
  const line = printed.split('\n').find(text => text.endsWith(path));
  assert.ok(line, `${path} is not among:\n${printed}`);
  return { name: `@hopline/${name}`, path, files: Number(/ (\d+) files /.exec(line)![1]) };
}

function version(): string {
  return JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')).version;
}

function isInstalled(t: TestContext): boolean {
  if (unreachable !== undefined) t.skip(unreachable);
  return unreachable === undefined;
}

/** The first code block of a README that holds `marker`. */
function readmeCode(path: string, marker: string): string {
  const blocks = [...readFileSync(join(project, 'node_modules', path), 'utf8').matchAll(/```ts\n([\s\S]*?)```/g)].map(
    match => match[1]!,
  );
  const code = blocks.find(block => block.includes(marker));
  assert.ok(code, `${path} has no code block with ${marker}`);
  return code;
}

async function printed(script: string, { node = process.execPath, cwd = project } = {}): Promise<string> {
  const { stdout } = await run(node, ['--input-type=module', '--eval', script], { cwd, timeout: 120_000 });
  return stdout;
}

test('publint finds nothing wrong with the tarballs', async () => {
  for (const { name, path } of tarballs) {
    const data = readFileSync(path);
    const tarball = data.buffer.slice(data.byteOffset, data.byteOffset + data.byteLength) as ArrayBuffer;
    const { messages, pkg } = await publint({ pack: { tarball }, strict: true });
    assert.deepEqual(
      messages.map(message => formatMessage(message, pkg)),
      [],
      name,
    );
  }
});

test('the types of the tarballs resolve in every way that their code does', async () => {
  for (const { name, path } of tarballs) {
    // The command has no types, because code does not import it.
    if (name === '@hopline/cli') continue;
    const checked = await checkPackage(createPackageFromTarballData(new Uint8Array(readFileSync(path))));
    assert.ok(checked.types, `${name} has no types`);
    // The packages have only ES modules. `require` loads them from Node 20.19 on; older resolution modes are not supported.
    const problems = checked.problems.filter(
      ({ kind, ...where }) => kind !== 'CJSResolvesToESM' && !('resolutionKind' in where && where.resolutionKind === 'node10'),
    );
    assert.deepEqual(problems, [], name);
  }
});

test('a tarball contains code, declarations, README and license, but no tests', () => {
  for (const { path, files } of tarballs) {
    const bytes = statSync(path).size;
    assert.ok(files > 3, basename(path));
    assert.ok(bytes < 960 * 1024, `${basename(path)} has ${bytes} bytes`);
  }
});

test('the bill of materials of a package names what npm installs with it', t => {
  type Listed = { components: { name: string; hashes?: object[] }[]; metadata: { component: { name: string } } };
  const read = (file: string) => JSON.parse(readFileSync(join(folder, 'tarballs', file), 'utf8')) as Listed;
  const namesOf = ({ components }: Listed) => new Set(components.map(({ name }) => name));
  const sboms = tarballs.map(({ path }) => read(basename(path).replace('.tgz', '.sbom.cdx.json')));
  assert.deepEqual(
    sboms.map(({ metadata }) => metadata.component.name),
    tarballs.map(({ name }) => name),
  );
  for (const { components } of sboms) assert.ok(components.every(({ hashes }) => hashes?.length === 1));
  const bundled = namesOf(read(`hopline-${version()}.sbom.cdx.json`));
  for (const name of ['node', 'fastify', '@nats-io/jetstream', 'preact']) assert.ok(bundled.has(name), name);
  assert.equal(read(`create-hopline-${version()}.sbom.cdx.json`).components.length, 0);
  if (!isInstalled(t)) return;
  const { packages } = JSON.parse(readFileSync(join(library, 'package-lock.json'), 'utf8'));
  const installed = Object.keys(packages).flatMap(path => /node_modules\/((?:@[^/]+\/)?[^/]+)$/.exec(path)?.[1] ?? []);
  const ours = new Set([...tarballs.map(({ name }) => name), 'react', 'react-dom', 'scheduler']);
  const [client, agent] = sboms.map(namesOf);
  assert.deepEqual(new Set(installed.filter(name => !ours.has(name))), new Set([...client!, ...agent!]));
});

test('the formula for Homebrew installs the package of this release by its checksum', () => {
  const read = (file: string) => readFileSync(join(folder, 'tarballs', file), 'utf8');
  const checksum = read('SHA256SUMS')
    .split('\n')
    .find(line => line.endsWith(`  hopline-${version()}.tgz`))!
    .slice(0, 64);
  const formula = read('hopline.rb');
  assert.ok(formula.includes(`sha256 "${checksum}"`), formula);
  assert.ok(formula.includes(`/hopline-${version()}.tgz"`), formula);
});

const binaryPath = () => join(folder, `tarballs/hopline-${version()}-${process.platform}-${process.arch}`);

test('the binary has no path of the machine that made it, so that others can make the same bytes', {
  skip: binaryFault(),
}, () => {
  assert.ok(!readFileSync(binaryPath()).includes('hopline-binary-'));
});

/** One process of the binary in an empty folder, without Node and without a PATH. */
async function runBinary(cwd: string, args: string[], env: Record<string, string> = {}) {
  const options = { cwd, env: { PATH: '', HOME: cwd, ...env } };
  return run(binaryPath(), args, options).catch((error: { code: number; stdout: string; stderr: string }) => error);
}

test('the binary works without Node, and refuses what needs it', { timeout: 120_000, skip: binaryFault() }, async () => {
  const cwd = mkdtempSync(join(folder, 'binary-'));
  const file = join(ROOT, 'packages/task-file/golden/version-1.hopline.jsonl');
  assert.equal((await runBinary(cwd, ['--version'])).stdout, `${version()}\n`);
  assert.match((await runBinary(cwd, ['--help'])).stdout, /^hopline COMMAND/);
  await runBinary(cwd, ['view', file, '--output', 'page.html']);
  assert.match(readFileSync(join(cwd, 'page.html'), 'utf8'), /id="task-file">\{"name":"version-1\.hopline\.jsonl"/);
  for (const args of [['dev'], ['agent', 'agent.mjs']]) {
    const { stderr } = await runBinary(cwd, args);
    assert.equal(
      stderr,
      `hopline: hopline ${args[0]} starts programs with Node, which this binary cannot do: use the npm package hopline\n`,
    );
  }
  const cluster = await clusterOfCommand();
  const env = { HOPLINE_URL: cluster.url, NATS_URL: cluster.nats.url };
  const asked = await runBinary(cwd, ['ask', 'one two', '--json'], env);
  const task = JSON.parse(asked.stdout.trim().split('\n').at(-1)!).event.statusUpdate.taskId as string;
  assert.match((await runBinary(cwd, ['get', task], env)).stdout, /^one two/);
  // Reads the log, so that modules which only some commands load are in the binary as well.
  assert.match((await runBinary(cwd, ['trace', task, '--chunks', '--nats'], env)).stdout, /text echo/);
});

test('npm installs one copy of each package of OpenTelemetry with the command', t => {
  if (!isInstalled(t)) return;
  const { packages } = JSON.parse(readFileSync(join(project, 'package-lock.json'), 'utf8'));
  const names = Object.keys(packages).flatMap(path => /@opentelemetry\/[^/]+$/.exec(path) ?? []);
  assert.ok(names.includes('@opentelemetry/sdk-node'), names.join());
  assert.deepEqual(names, [...new Set(names)]);
});

/** Packages that an install of client and agent may add. It was 88 of 55 MB while exporters and models were not optional, and 23 of 17 MB after. */
const INSTALLED_MAX = 30;

test('the agent installs without exporters and models, and names what is missing when it is needed', async t => {
  if (!isInstalled(t)) return;
  const { packages } = JSON.parse(readFileSync(join(library, 'package-lock.json'), 'utf8')) as { packages: object };
  const names = Object.keys(packages).filter(path => path.startsWith('node_modules/'));
  t.diagnostic(`${names.length} packages`);
  assert.ok(names.length <= INSTALLED_MAX, names.join());
  assert.deepEqual(
    names.filter(name => name.includes('@opentelemetry/')),
    ['node_modules/@opentelemetry/api', 'node_modules/@opentelemetry/context-async-hooks'],
  );
  const script = `
    import { defineAgent, model } from '@hopline/agent';
    import { playTurn } from '@hopline/agent/test-kit';
    const agent = defineAgent({ name: 'asks', description: 'Asks', async *run() { yield* model({ model: 'small' }); } });
    console.log((await playTurn(agent, 'Ada', { model: [{ text: 'Hello' }] })).end.reason);
    const { startTelemetry } = await import('./node_modules/@hopline/agent/dist/packages/telemetry/src/index.js');
    const env = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1' };
    await startTelemetry({ service: 'agent', version: '1', instance: 'i', env }).catch(error => console.log(error.message));
  `;
  assert.equal(
    await printed(script, { cwd: library }),
    'model needs a package that is not installed: npm install @ai-sdk/openai-compatible\n' +
      'the packages of OpenTelemetry that export metrics are not installed: npm install @opentelemetry/exporter-prometheus @opentelemetry/resources @opentelemetry/sdk-metrics\n',
  );
});

const PLAY = `
  import { defineAgent, notice } from '@hopline/agent';
  import { playTurn } from '@hopline/agent/test-kit';
  const agent = defineAgent({ name: 'greeter', description: 'Greets', async *run(turn) { yield notice('thinking'); yield 'Hello, '; yield turn.text; } });
  const { text, notices, end } = await playTurn(agent, 'Ada');
  console.log(JSON.stringify([text, notices, end.state]));
`;

test('an agent from the package answers on the oldest and the newest supported Node', { timeout: 120_000 }, async t => {
  if (!isInstalled(t)) return;
  const expected = '["Hello, Ada",["thinking"],"TASK_STATE_COMPLETED"]\n';
  assert.equal(await printed(PLAY), expected);
  if (lowest === undefined) t.diagnostic(NO_LOWEST_NODE);
  else assert.equal(await printed(PLAY, { node: lowest }), expected);
});

test('the lines of the READMEs compile under strict TypeScript, declarations of the packages included', {
  timeout: 120_000,
}, async t => {
  if (!isInstalled(t)) return;
  const src = join(project, 'src');
  mkdirSync(src, { recursive: true });
  writeFileSync(join(src, 'my-agent.ts'), readmeCode('@hopline/agent/README.md', 'defineAgent('));
  writeFileSync(join(src, 'ask.ts'), readmeCode('@hopline/client/README.md', 'createClient('));
  const compilerOptions = {
    strict: true,
    module: 'nodenext',
    target: 'es2022',
    lib: ['es2023', 'dom', 'esnext.disposable'],
    noEmit: true,
    skipLibCheck: true,
    types: ['node'],
  };
  writeFileSync(join(src, 'tsconfig.json'), JSON.stringify({ compilerOptions }));
  await run(join(project, 'node_modules/.bin/tsc'), ['-p', src, '--pretty', 'false']).catch(error => assert.fail(error.stdout));
});

test('the packages compile without skipLibCheck where no optional package is installed', { timeout: 120_000 }, async t => {
  if (!isInstalled(t)) return;
  writeFileSync(join(library, 'agent.ts'), readmeCode('@hopline/agent/README.md', 'defineAgent('));
  writeFileSync(
    join(library, 'test.ts'),
    "export { playTurn } from '@hopline/agent/test-kit';\nexport * from '@hopline/client';\n",
  );
  const compilerOptions = {
    strict: true,
    module: 'nodenext',
    target: 'es2022',
    lib: ['es2023', 'dom', 'esnext.disposable'],
    noEmit: true,
    skipLibCheck: false,
    typeRoots: [join(ROOT, 'node_modules/@types')],
    types: ['node'],
  };
  writeFileSync(join(library, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['agent.ts', 'test.ts'] }));
  const tsc = join(ROOT, 'node_modules/.bin/tsc');
  await run(tsc, ['-p', library, '--pretty', 'false']).catch(error => assert.fail(error.stdout));
});

test('the README of the client, run as it stands, prints the answer', { timeout: 120_000 }, async t => {
  if (!isInstalled(t)) return;
  const path = join(project, 'src/my-agent.ts');
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, readmeCode('@hopline/agent/README.md', 'defineAgent('));
  await using cluster = await Cluster.start({ agents: [{ name: 'greeter', adapter: 'module', path }] });
  const code = readmeCode('@hopline/client/README.md', 'createClient(').replace(/http:\/\/127\.0\.0\.1:8000\//g, cluster.url);
  for (const node of nodes()) {
    const { stdout } = await run(node, ['--input-type=module', '--eval', code], { cwd: project, timeout: 120_000 });
    assert.match(stdout, /Hello, explain hopline!/);
  }
});

// These two start the program itself, on the lowest Node only: the tests below start it on the newest as well.
test('the command of the package asks a cluster, and standard output has only the answer', { timeout: 120_000 }, async t => {
  if (!isInstalled(t)) return;
  const cluster = await clusterOfCommand();
  const env = { ...process.env, HOPLINE_URL: cluster.url };
  const { stdout } = await run(oldestNode(), [hopline, 'ask', 'one two'], { cwd: folder, env });
  assert.equal(stdout.trimEnd(), 'one two');
});

test('the command of the package replays a file and serves it', { timeout: 120_000 }, async t => {
  if (!isInstalled(t)) return;
  const file = join(ROOT, 'packages/task-file/golden/version-1.hopline.jsonl');
  const command = (...args: string[]) => run(oldestNode(), [hopline, ...args], { cwd: folder }).catch(error => error);
  const replayed = await command('replay', file, '--pace', 'max', '--json');
  assert.equal(replayed.stdout.trim().split('\n').length, 4);
  const server = spawn(oldestNode(), [hopline, 'serve', file, '--port', '0', '--pace', 'max', '--json'], { cwd: folder });
  try {
    const [line] = (await once(server.stdout, 'data')) as [Buffer];
    const { url } = JSON.parse(line.toString()) as { url: string };
    const asked = await command('ask', 'explain hopline', '--url', url);
    assert.match(asked.stdout, /^How it works/);
  } finally {
    server.kill('SIGINT');
    await once(server, 'close');
  }
});

/**
 * A command line: its exit code, the text that its output must contain, and, for a command that does not end by itself, the output after
 * which Ctrl-C is sent.
 */
type Line = { args: string[]; code?: number; prints?: RegExp; stdin?: string; until?: RegExp };

/** Exit code of a fault of the program rather than of its user. */
const CRASH = /TypeError|ReferenceError|SyntaxError|ERR_[A-Z]|\n {4}at /;
const LINE_MS_MAX = 120_000;

/** A process of one Node that runs command lines of the package, one after the other. */
class CommandLines {
  readonly #process: ChildProcess;
  readonly #ended: Promise<number | null>;
  #output = '';

  constructor(node: string, env: NodeJS.ProcessEnv) {
    const program = fileURLToPath(new URL('run-command-lines.mjs', import.meta.url));
    const installed = join(folder, 'global/lib/node_modules/@hopline/cli');
    this.#process = fork(program, [installed], { cwd: folder, env, execPath: node, execArgv: [], silent: true });
    for (const stream of [this.#process.stdout, this.#process.stderr])
      stream?.setEncoding('utf8').on('data', (text: string) => (this.#output += text));
    // Not `close`, which a process whose parent has closed the channel does not emit.
    this.#ended = once(this.#process, 'exit').then(([code]) => code);
  }

  /** Resolves with what the line has printed. */
  async run({ args, prints = /^/, stdin = '', until, code = until === undefined ? 0 : 130 }: Line): Promise<string> {
    const name = `hopline ${args.join(' ')}`;
    const answer = once(this.#process, 'message') as Promise<[{ code: number; out: string; err: string }]>;
    if (this.#process.connected) this.#process.send({ args, stdin, until: until?.source });
    const end = this.#ended.then(() => assert.fail(`${name}: the process has ended\n${this.#output}`));
    const late = setTimeout(() => this.#process.kill('SIGKILL'), LINE_MS_MAX);
    const [ended] = await Promise.race([answer, end]).finally(() => clearTimeout(late));
    const shown = `${name}\n${ended.out}${ended.err}`;
    assert.doesNotMatch(ended.out + ended.err, CRASH, shown);
    assert.equal(ended.code, code, shown);
    assert.match(ended.out, prints, shown);
    return ended.out;
  }

  /** When its channel is gone, the process ends by itself, unless a command has left a connection, a server or a timer open. */
  async end(): Promise<void> {
    if (this.#process.connected) this.#process.disconnect();
    const late = setTimeout(() => this.#process.kill('SIGKILL'), LINE_MS_MAX);
    const code = await this.#ended;
    clearTimeout(late);
    assert.equal(code, 0, this.#output);
  }

  [Symbol.dispose](): void {
    this.#process.kill('SIGKILL');
  }
}

test('every command of the package runs on the oldest Node that it declares and on the newest', { timeout: 480_000 }, async t => {
  if (!isInstalled(t)) return;
  if (lowest === undefined) t.diagnostic(NO_LOWEST_NODE);
  const [module, typed] = [join(folder, 'commands.mjs'), join(folder, 'commands.ts')];
  writeFileSync(module, ECHO);
  writeFileSync(typed, ECHO.replace('(turn)', '(turn: { text: string })'));
  const cluster = await clusterOfCommand();
  t.after(stopClusterOfCommand);
  const home = mkdtempSync(join(folder, 'home-'));
  mkdirSync(join(home, 'logs'));
  writeFileSync(join(home, 'logs/relay-1.log'), `${JSON.stringify({ level: 30, time: Date.now(), msg: 'ready' })}\n`);
  const processes = [{ service: 'ingress', instance: 'ingress-1', pid: process.pid, url: cluster.url, restarts: 0 }];
  const runFile = { url: cluster.url, nats: cluster.nats.url, logs: join(home, 'logs'), processes };
  writeFileSync(join(home, 'run.json'), JSON.stringify(runFile));
  const { NODE_OPTIONS: _, ...inherited } = process.env;
  const env = { ...inherited, HOPLINE_HOME: home, HOPLINE_URL: cluster.url, NATS_URL: cluster.nats.url };
  const runCommands = async (node: string, index: number) => {
    const at = (name: string) => join(folder, `${name}-${index}`);
    using commands = new CommandLines(node, env);
    const asked = await commands.run({ args: ['ask', 'one two', '--json'] });
    const { cursor, event } = JSON.parse(asked.trim().split('\n').at(-1)!) as {
      cursor: string;
      event: { statusUpdate: { taskId: string } };
    };
    const task = event.statusUpdate.taskId;
    await commands.run({ args: ['export', task, '--nats', '--output', at('file')] });
    const isLowest = node === lowest;
    const lines: Record<string, Line[]> = {
      ask: [{ args: ['ask', 'one two'], prints: /^one two\n?$/ }],
      chat: [{ args: ['chat'], stdin: 'one\ntwo\n', prints: /one\s+two/ }],
      follow: [{ args: ['follow', task], prints: /^one two/ }],
      tasks: [{ args: ['tasks', '--text', 'one two', '--since', '1h'], prints: new RegExp(task) }],
      get: [{ args: ['get', task], prints: /^one two/ }],
      cancel: [{ args: ['cancel', task], code: 1 }],
      trace: [
        { args: ['trace', task, '--html', at('trace')] },
        { args: ['trace', task, '--chunks', '--nats'], prints: /text echo/ },
      ],
      export: [{ args: ['export', task, '--redact'], prints: /"kind":"end"/ }],
      import: [{ args: ['import', at('file')], prints: /[0-9a-f-]{36}/ }],
      replay: [{ args: ['replay', at('file'), '--pace', 'max'], prints: /^one two/ }],
      serve: [{ args: ['serve', at('file'), '--port', '0', '--json'], code: 0, until: /"url"/ }],
      view: [{ args: ['view', at('file'), '--no-open', '--json'], code: 0, until: /"url"/ }],
      why: [
        { args: ['why', task, cursor], prints: /\S/ },
        { args: ['why', task, cursor, '--nats'], prints: /\S/ },
      ],
      verify: [{ args: ['verify', at('file')], prints: /1 same/ }, { args: ['verify', task] }],
      'what-if': [{ args: ['what-if', at('file'), '--event-cost', '2'], prints: /\S/ }],
      diff: [{ args: ['diff', task, task], prints: /\S/ }],
      rerun: [{ args: ['rerun', task, '--yes', '--compare'] }],
      fork: [{ args: ['fork', task, 'three', '--at', cursor, '--yes'], prints: /three/ }],
      agents: [{ args: ['agents'], prints: /echo/ }],
      top: [{ args: ['top'], prints: /echo/ }],
      card: [{ args: ['card'], prints: /http/ }],
      // The package of the command has no launcher.
      dev: [{ args: ['dev'], code: 2 }],
      status: [{ args: ['status'], prints: /ingress-1/ }],
      logs: [{ args: ['logs'], prints: /ready/ }],
      backup: [{ args: ['backup', at('backup')], prints: /messages/ }],
      // By now the server has created the streams.
      restore: [{ args: ['restore', at('backup')], code: 2 }],
      layout: [
        { args: ['layout'], prints: /^16 shards in 1 stream group from the beginning on/ },
        { args: ['layout', '2/3'], code: 2 },
      ],
      // The task of this line has just ended, so no relay has listed it: another id shows that the command reaches the log.
      erase: [{ args: ['erase', 'no-such-task'], prints: /^the log stores nothing of task no-such-task/ }],
      agent: [
        { args: ['agent', module, '--name', `other-${index}`], until: /other/ },
        isLowest ? { args: ['agent', typed], code: 2 } : { args: ['agent', typed, '--name', 'typed'], until: /typed/ },
      ],
      new: [{ args: ['new', 'agent', `made-${index}`, '--packages', 'tarballs'], prints: /is ready/ }],
      completion: ['bash', 'zsh', 'fish'].map(shell => ({ args: ['completion', shell], prints: /hopline/ })),
    };
    assert.deepEqual(Object.keys(lines).toSorted(), COMMANDS.map(({ name }) => name).toSorted());
    const faults: string[] = [];
    for (const line of [...Object.values(lines).flat(), { args: ['--help'] }, { args: ['--version'] }])
      await commands.run(line).catch(error => faults.push(error.message));
    assert.deepEqual(faults, [], node);
    await commands.end();
  };
  // Side by side, because most commands wait for the cluster.
  await Promise.all(nodes().map(runCommands));
});

test('a new agent, made by the command of the package, installs, passes its test and its types', {
  timeout: INSTALL_MS_MAX,
}, async t => {
  if (!isInstalled(t)) return;
  const make = (name: string) => run(hopline, ['new', 'agent', name, '--packages', 'tarballs'], { cwd: folder });
  // The command of the package writes the folder that the command of the checkout has written.
  await make('the-same');
  const same = join(folder, 'the-same');
  assert.deepEqual(
    new Map(readdirSync(same).map(file => [file, readFileSync(join(same, file), 'utf8').replaceAll('the-same', 'my-first')])),
    written,
  );
  // In a test run `node --test` prints for its parent, not for a person.
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const npm = (...args: string[]) => run('npm', args, { cwd: project, env, timeout: INSTALL_MS_MAX });
  assert.match((await npm('test')).stdout, /pass 1\n/);
  if (lowest !== undefined) {
    // The test file must fail there, not be skipped, because such a Node cannot read its types.
    const path = [dirname(lowest), env.PATH].join(delimiter);
    const old = await run('npm', ['test'], { cwd: project, env: { ...env, PATH: path } }).catch(
      (error: { stdout: string }) => error,
    );
    assert.match(old.stdout, /fail 1\n/);
  }
  await npm('run', 'check');
  // Its scripts name the command of its own folder.
  const { stdout } = await run(join(project, 'node_modules/.bin/hopline'), ['--version'], { cwd: project });
  assert.equal(stdout, `${version()}\n`);
  await assert.rejects(make('my-first'), { stderr: /the folder my-first is not empty/ });
});

test('the packaged command contains the page that shows a task file', async t => {
  if (!isInstalled(t)) return;
  const file = join(ROOT, 'packages/task-file/golden/version-1.hopline.jsonl');
  const page = join(folder, 'page.html');
  await run(oldestNode(), [hopline, 'view', file, '--output', page], { cwd: folder });
  assert.match(readFileSync(page, 'utf8'), /id="task-file">\{"name":"version-1\.hopline\.jsonl"/);
});

test('npx and a global install run the command; it knows its version, and its hints are commands that work there', {
  timeout: 2 * INSTALL_MS_MAX,
}, async t => {
  if (!isInstalled(t)) return;
  const elsewhere = join(folder, 'elsewhere');
  mkdirSync(elsewhere);
  const npm = (args: string[], env = process.env) =>
    run('npm', ['--prefer-offline', '--no-audit', '--no-fund', ...args], { cwd: elsewhere, env, timeout: INSTALL_MS_MAX });
  const { npm_command: _, ...terminal } = process.env;
  const globally = (...args: string[]) => run(hopline, args, { cwd: elsewhere, env: terminal });
  assert.equal((await globally('--version')).stdout, `${version()}\n`);
  assert.match((await globally('completion', 'bash')).stdout, /complete .* hopline\n$/);
  // A terminal, in which npm has set no variable and no folder of a package is on the PATH.
  const works = async ({ stderr }: { stderr?: string }) => {
    const [, help] = /unknown command what.*; see (.+ --help)$/m.exec(stderr ?? '') ?? assert.fail(stderr);
    const { stdout } = await run('sh', ['-c', help!], { cwd: elsewhere, env: terminal });
    assert.match(stdout, /^hopline COMMAND/);
  };
  await works(await globally('what').catch(error => error));
  const env = { ...terminal, npm_command: 'start' };
  await works(await run(hopline, ['what'], { cwd: elsewhere, env }).catch(error => error));
  // The link is in a cache of the test, because it must not outlive the package.
  const asked = ['exec', '--yes', `--package=${join(project, 'node_modules/@hopline/cli')}`, '--', 'hopline'];
  const npx = (...args: string[]) => npm([...asked, ...args], { ...process.env, npm_config_cache: join(folder, 'npx') });
  assert.equal((await npx('--version')).stdout, `${version()}\n`);
  await works(await npx('what').catch(error => error));
});

test('in a checkout `npm run -s` prints no banner', { timeout: 120_000 }, async () => {
  const { stdout } = await run('npm', ['run', '-s', 'hopline', '--', '--version'], { cwd: ROOT });
  assert.equal(stdout, `${version()}\n`);
});

test('the hooks render a first view on the server, with the same client as the page', { timeout: 120_000 }, async t => {
  if (!isInstalled(t)) return;
  const script = `
    import { createElement } from 'react';
    import { renderToString } from 'react-dom/server';
    import { useTask } from '@hopline/react';
    import { createClient } from '@hopline/client/tasks';
    const client = createClient({ url: 'http://127.0.0.1:1/' });
    console.log(renderToString(createElement(() => createElement('p', null, useTask(client, 't').status))));
  `;
  assert.equal(await printed(script, { cwd: library }), '<p>loading</p>\n');
  const files = readdirSync(join(library, 'node_modules/@hopline/react'), { recursive: true, encoding: 'utf8' });
  assert.deepEqual(
    files.filter(file => file.includes('packages/client')),
    [],
  );
});

test('the client can be bundled for a page: without modules of Node, and with a known size', { timeout: 120_000 }, async t => {
  if (!isInstalled(t)) return;
  const { outputFiles } = await build({
    stdin: { contents: `export { createClient } from '@hopline/client';`, resolveDir: project },
    bundle: true,
    format: 'esm',
    minify: true,
    platform: 'browser',
    write: false,
  });
  const { text } = outputFiles[0]!;
  assert.doesNotMatch(text, /from\s*["']node:/);
  t.diagnostic(`client bundled and minified: ${(text.length / 1024).toFixed(0)} KiB`);
});
