import assert from 'node:assert/strict';
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { until } from '../../../test/kit/until.ts';
import { hasEnded } from './process-identity.ts';
import { type RunningProcess, readRunFile } from './run-file.ts';

/** A fake of every service: /readyz, one streamed answer at POST /, and both ways to stop. */
const FAKE_SERVICE = `
// An import statement would load Node's copy of undici, which takes most of the CPU time of this program.
const { createServer } = process.getBuiltinModule('node:http');
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
const { HOPLINE_PORT, HOPLINE_HOST, HOPLINE_INSTANCE, HOPLINE_STDIN_LIFELINE, HOPLINE_AGENT } = process.env;
// The launcher passes on only variables that it knows.
const { FAKE_NOTES, FAKE_BROKEN, FAKE_WRONG, FAKE_UNREACHABLE, FAKE_SLOW, FAKE_KEY } = JSON.parse(readFileSync(new URL('../../../fake.json', import.meta.url)));
const end = cause => { appendFileSync(FAKE_NOTES, HOPLINE_INSTANCE + ' ' + cause + '\\n'); process.exit(0); };
if (HOPLINE_INSTANCE === FAKE_BROKEN) { console.error('no such stream'); process.exit(1); }
if (FAKE_WRONG?.split(',').includes(HOPLINE_INSTANCE)) { console.error(HOPLINE_INSTANCE.replace(/-\\w+$/, '') + ': HOPLINE_X must be y'); process.exit(78); }
if (HOPLINE_AGENT) console.log(JSON.parse(HOPLINE_AGENT).name, process.cwd());
process.on('SIGTERM', () => end('drained'));
if (HOPLINE_STDIN_LIFELINE === '1') process.stdin.on('end', () => end('lost its launcher')).resume();
createServer((request, response) => {
  const isReached = existsSync(FAKE_NOTES + '.reached') || !FAKE_UNREACHABLE?.split(',').includes(HOPLINE_INSTANCE);
  const degraded = isReached ? [] : [{ check: 'agent', reason: 'ECONNREFUSED' }];
  // An agent that does not answer until the test lets it.
  const isStarting = HOPLINE_INSTANCE === FAKE_SLOW && !existsSync(FAKE_NOTES + '.started');
  if (isStarting) degraded.push({ check: 'agent', reason: 'pending' });
  if (request.url === '/') appendFileSync(FAKE_NOTES + '.asked', '');
  // Services wait for the streams of a relay, which does not start with a wrong setting.
  if (FAKE_WRONG) return response.writeHead(503).end();
  if (request.url !== '/') return response.end(JSON.stringify({ ready: true, degraded }));
  if (FAKE_KEY && request.headers['x-api-key'] !== FAKE_KEY) return response.writeHead(401).end();
  response.setHeader('content-type', 'text/event-stream');
  const ids = { taskId: 't-1', contextId: 'c-1' };
  const artifact = text => ({ artifactId: 'a', name: 'streaming_result', parts: [{ text }] });
  const results = [
    { task: { id: 't-1', contextId: 'c-1', status: { state: 'TASK_STATE_SUBMITTED' } } },
    { artifactUpdate: { ...ids, artifact: artifact('Hello') } },
    { artifactUpdate: { ...ids, append: true, artifact: artifact(' there') } },
    { statusUpdate: { ...ids, status: { state: 'TASK_STATE_COMPLETED' } } },
  ];
  response.end(results.map((result, i) => 'id: ' + (i + 1) + '.' + (i + 11) + '\\ndata: ' + JSON.stringify({ jsonrpc: '2.0', id: 1, result }) + '\\n\\n').join(''));
}).listen(Number(HOPLINE_PORT), HOPLINE_HOST);
`;

const NATS_SERVER = process.env.HOPLINE_NATS_SERVER ?? 'nats-server';

/** The files that a checkout has before its launcher starts. */
const PARTS = ['infra', 'services', 'package.json'];
let made: string | undefined;

/**
 * A checkout of the launcher with fake services, as new: what an earlier test left in it is removed. All tests have it at one path, because
 * Node's compile cache goes by path, and without it a process spends most of its start on removing types.
 */
function checkout(): string {
  made ??= makeCheckout();
  for (const name of readdirSync(made)) if (!PARTS.includes(name)) rmSync(join(made, name), { recursive: true });
  return made;
}

after(() => {
  if (made !== undefined) rmSync(made, { recursive: true, force: true });
});

function makeCheckout(): string {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'hopline-')));
  for (const part of ['launcher', 'demo']) {
    cpSync(fileURLToPath(new URL(`../${part}`, import.meta.url)), join(root, 'infra/local', part), { recursive: true });
  }
  // Node strips types only outside node_modules: the links lead back to the packages of this checkout.
  symlinkSync(fileURLToPath(new URL('../node_modules', import.meta.url)), join(root, 'infra/local/node_modules'));
  writeFileSync(join(root, 'package.json'), '{"type":"module"}');
  for (const service of ['ingress', 'console', 'supervisor', 'sub-agent', 'relay', 'notifier']) {
    mkdirSync(join(root, 'services', service, 'src'), { recursive: true });
    writeFileSync(join(root, 'services', service, 'src/main.ts'), FAKE_SERVICE);
  }
  return root;
}

type Launcher = {
  child: ChildProcess;
  output: () => string;
  prints: (pattern: RegExp) => Promise<boolean>;
  exit: () => Promise<number | null>;
};

function start(t: TestContext, root: string, args: string[] = [], env: NodeJS.ProcessEnv = {}): Launcher {
  // The environment of the test run must not change the settings under test.
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith('HOPLINE_') && name !== 'INIT_CWD');
  writeFileSync(join(root, 'fake.json'), JSON.stringify({ FAKE_NOTES: join(root, 'notes'), ...env }));
  const child = spawn(process.execPath, [join(root, 'infra/local/launcher/main.ts'), '--port', '0', ...args], {
    cwd: root,
    env: { ...Object.fromEntries(inherited), HOPLINE_NATS_SERVER: NATS_SERVER, ...env },
    // The IPC channel of the bootstrap: the launcher drains when its parent is killed.
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
  let text = '';
  for (const stream of [child.stdout, child.stderr]) stream?.setEncoding('utf8').on('data', piece => (text += piece));
  // Does not wait for `exit`, after which output may still arrive.
  const exited = once(child, 'close').then(([code]) => code as number | null);
  t.after(async () => {
    child.kill('SIGTERM');
    await exited;
  });
  return {
    child,
    output: () => text,
    prints: pattern =>
      until(
        () => pattern.test(text),
        () => `${pattern} in:\n${text}`,
      ),
    exit: () => exited,
  };
}

/** The command of this checkout, for the cluster in `root`. */
async function hopline(root: string, ...args: string[]): Promise<string> {
  const main = fileURLToPath(new URL('../../../packages/cli/src/main.ts', import.meta.url));
  const env = { ...process.env, HOPLINE_HOME: join(root, '.hopline') };
  return (await promisify(execFile)(process.execPath, [main, ...args], { env })).stdout.trimEnd();
}

/** Waits until a service listens: before that it has no signal handlers. */
async function untilAlive(url: string): Promise<void> {
  await until(async () => (await fetch(`${url}/livez`).catch(() => null))?.ok, `${url} responds`);
}

const isRunning = ({ pid }: RunningProcess) => !hasEnded(pid);

test('the cluster starts, answers the demo question, restarts a killed relay, drains in order and leaves no process behind', async t => {
  const root = checkout();
  const launcher = start(t, root, [], { HOPLINE_RELAYS: '2' });
  await launcher.prints(/Ctrl-C drains and stops everything/);
  const output = launcher.output();
  assert.match(output, /^Starting Hopline …\n\nOpen http:\/\/127\.0\.0\.1:\d+\/\nHopline is up: /);
  assert.match(output, /task t-1 submitted\n── streaming_result\nHello there\ntask t-1 completed\n4 frames in/);
  assert.match(output, /Last-Event-ID: 3\.13' .*"params":\{"id":"t-1"\}/);

  const runFile = join(root, '.hopline/run.json');
  const processes = readRunFile(runFile);
  const instances = [
    'nats-1',
    'ingress-1',
    'console-1',
    'supervisor-1',
    'sub-agent-files',
    'sub-agent-guide',
    'relay-1',
    'relay-2',
    'notifier-1',
  ];
  assert.deepEqual(
    processes.map(({ instance }) => instance),
    instances,
  );
  const services = processes.filter(({ service }) => service !== 'nats');
  for (const { url } of services) assert.equal((await fetch(`${url}/livez`)).status, 200);
  const demo = join(root, 'infra/local/demo');
  assert.equal(readFileSync(join(root, '.hopline/logs/sub-agent-guide.log'), 'utf8'), `guide ${demo}\n`);

  const status = await hopline(root, 'status', '--json');
  const rows = status.split('\n').map(line => JSON.parse(line));
  assert.deepEqual(
    rows.map(({ instance, pid, isReady }) => [instance, pid, isReady]),
    processes.map(({ instance, pid }) => [instance, pid, true]),
  );

  const relay = processes.find(({ instance }) => instance === 'relay-2') as RunningProcess;
  process.kill(relay.pid, 'SIGKILL');
  await launcher.prints(/relay-2 ended \(SIGKILL\); restarting in 0.2 s\nrelay-2 restarted as process \d+/);
  const again = readRunFile(runFile);
  const reborn = again.find(({ instance }) => instance === 'relay-2') as RunningProcess;
  assert.notEqual(reborn.pid, relay.pid);
  await untilAlive(reborn.url);

  launcher.child.kill('SIGINT');
  assert.equal(await launcher.exit(), 0);
  assert.match(launcher.output(), /SIGINT: draining\nStopped; nothing is left running\.\n$/);
  const order = readFileSync(join(root, 'notes'), 'utf8')
    .trimEnd()
    .split('\n')
    .map(line => line.replace(/-(\w+) drained$/, ''));
  assert.deepEqual(order, ['console', 'ingress', 'supervisor', 'sub-agent', 'sub-agent', 'relay', 'relay', 'notifier']);
  for (const name of ['run.json', 'lock']) assert.ok(!existsSync(join(root, '.hopline', name)));
  assert.deepEqual(again.filter(isRunning), []);
});

test('a home in use, a port in use and an old data folder are each reported', async t => {
  const root = checkout();
  const first = start(t, root, ['--no-demo']);
  await first.prints(/Hopline is up/);
  const url = /is up: (\S+)/.exec(first.output())?.[1] ?? '';
  const second = start(t, root);
  assert.equal(await second.exit(), 1);
  assert.ok(second.output().includes(`Hopline is already running in ${root}/.hopline (${url}, process ${first.child.pid})`));

  const blocker = createServer().listen(0, '127.0.0.1');
  t.after(() => blocker.close());
  await once(blocker, 'listening');
  const { port } = blocker.address() as { port: number };
  const third = start(t, root, ['--port', String(port)], { HOPLINE_HOME: 'other' });
  assert.equal(await third.exit(), 1);
  assert.ok(third.output().includes(`hopline: port ${port} is in use;`));
  assert.ok(!existsSync(join(root, 'other/lock')));

  writeFileSync(join(root, 'other/format'), '99');
  const fourth = start(t, root, [], { HOPLINE_HOME: 'other' });
  assert.equal(await fourth.exit(), 1);
  assert.match(fourth.output(), /hopline: the data in \S+other has format "99"/);
  assert.equal(readRunFile(join(root, '.hopline/run.json')).length, 8, 'the first cluster is unaffected');
});

test('a run.json that cannot be written is reported once, and the cluster keeps running', async t => {
  const root = checkout();
  const launcher = start(t, root, ['--no-demo']);
  await launcher.prints(/Hopline is up/);
  const runFile = join(root, '.hopline/run.json');
  const relay = readRunFile(runFile).find(({ service }) => service === 'relay') as RunningProcess;
  // Acts like a full disk, but for any user.
  rmSync(runFile);
  mkdirSync(join(runFile, 'in-the-way'), { recursive: true });
  process.kill(relay.pid, 'SIGKILL');
  await launcher.prints(/relay-1 restarted as process \d+/);
  assert.equal(launcher.output().match(/run\.json cannot be written \(EISDIR\)/g)?.length, 1);
  rmSync(runFile, { recursive: true });
  launcher.child.kill('SIGTERM');
  assert.equal(await launcher.exit(), 0);
  assert.match(launcher.output(), /SIGTERM: draining\nStopped; nothing is left running\.\n$/);
});

test('services end when the launcher is killed, and the next start on the home cleans up', async t => {
  const root = checkout();
  const killed = start(t, root, ['--no-demo']);
  await killed.prints(/Hopline is up/);
  const orphans = readRunFile(join(root, '.hopline/run.json'));
  killed.child.kill('SIGKILL');
  await until(() => orphans.filter(isRunning).length === 0, 'the orphans end');
  assert.equal(readFileSync(join(root, 'notes'), 'utf8').match(/lost its launcher/g)?.length, orphans.length - 1);
  const next = start(t, root, ['--no-demo']);
  await next.prints(/Hopline is up/);
});

test('a service that cannot start fails the launch with its output; an agent that cannot start is listed', async t => {
  const root = checkout();
  const failing = start(t, root, [], { FAKE_BROKEN: 'supervisor-1' });
  assert.equal(await failing.exit(), 1);
  assert.match(
    failing.output(),
    /hopline: supervisor-1 cannot start \(exit code 1\): no such stream \(log: \S+supervisor-1\.log\)\n$/,
  );
  assert.ok(!existsSync(join(root, '.hopline/lock')));

  const limping = start(t, root, ['--no-demo'], { FAKE_BROKEN: 'sub-agent-files' });
  await limping.prints(/agent files ✗ is not running \(exit code 1\)/);
  await limping.prints(/agent guide ✓/);
  assert.match(limping.output(), /Hopline is up/);
});

test('a wrong setting ends the start with the service’s error, printed once, without a restart', async t => {
  const root = checkout();
  const wrong = start(t, root, [], { FAKE_WRONG: 'ingress-1,relay-1,sub-agent-files' });
  assert.equal(await wrong.exit(), 1);
  // The service that ends first is named.
  assert.match(wrong.output(), /\nhopline: (ingress|relay|sub-agent): HOPLINE_X must be y\n$/);
  assert.equal(wrong.output().match(/HOPLINE_X/g)?.length, 1);
  assert.doesNotMatch(wrong.output(), /restart|exit code|Hopline is up/);
});

test('an agent that cannot be reached is listed with the reason, and again when it is reachable', async t => {
  const root = checkout();
  writeFileSync(join(root, 'mine.json'), '{"agents":[{"name":"argocd","adapter":"a2a","url":"http://127.0.0.1:8001/"}]}');
  const launcher = start(t, root, ['--agents', 'mine.json'], { FAKE_UNREACHABLE: 'sub-agent-argocd' });
  await launcher.prints(/agent argocd ✗ cannot be reached \(ECONNREFUSED 127\.0\.0\.1:8001\)/);
  assert.doesNotMatch(launcher.output(), /Hopline is up/);
  assert.match(launcher.output(), /Hopline is running, but no agent is ready yet: http/);
  writeFileSync(join(root, 'notes.reached'), '');
  await launcher.prints(/agent argocd ✓/);
});

test('the first question waits for an agent that is still starting, without reporting a fault', async t => {
  const root = checkout();
  const launcher = start(t, root, [], { FAKE_SLOW: 'sub-agent-files' });
  await launcher.prints(/agent files … starting\n[\s\S]*agent guide ✓/);
  await launcher.prints(/The first question waits for files, at most 60 s\.\n/);
  assert.equal(existsSync(join(root, 'notes.asked')), false, 'nothing is asked before');
  writeFileSync(join(root, 'notes.started'), '');
  await launcher.prints(/ {2}agent files ✓\nAsking: .*\n[\s\S]*Hello there/);
  assert.doesNotMatch(launcher.output(), /✗/);
});

test('an existing NATS server is checked first, and its fault is the only output', async t => {
  const root = checkout();
  const away = start(t, root, [], { NATS_URL: 'nats://user:secret@127.0.0.1:1' });
  assert.equal(await away.exit(), 1);
  assert.equal(
    away.output(),
    'Starting Hopline …\nhopline: NATS at nats://127.0.0.1:1 refuses the connection: start nats-server, or correct NATS_URL\n',
  );
});

test('if callers need credentials, the first question uses those of the environment, or is not sent', async t => {
  const root = checkout();
  const settings = { HOPLINE_AUTH_API_KEYS_FILE: 'keys.json', FAKE_KEY: 'key-of-ann' };
  const without = start(t, root, [], settings);
  await without.prints(/Ctrl-C drains and stops everything/);
  assert.match(without.output(), /No first question: this cluster requires credentials, and HOPLINE_API_KEY is not set\.\n/);
  assert.doesNotMatch(without.output(), /Asking:|failed/);
  assert.match(without.output(), /curl -N \S+ .*-H "x-api-key: \$HOPLINE_API_KEY" -d /);
  const asked = start(t, root, [], { ...settings, HOPLINE_API_KEY: 'key-of-ann', HOPLINE_HOME: 'other' });
  await asked.prints(/Ctrl-C drains and stops everything/);
  assert.match(asked.output(), /task t-1 completed\n4 frames in/);
  assert.doesNotMatch(asked.output(), /key-of-ann/);
});

test('HOPLINE_HOST sets only the address of the public endpoint', { skip: process.platform !== 'linux' }, async t => {
  const root = checkout();
  const launcher = start(t, root, ['--no-demo'], { HOPLINE_HOST: '127.0.0.2', HOPLINE_PREFIX: 'blue' });
  await launcher.prints(/Hopline is up: http:\/\/127\.0\.0\.2:\d+\//);
  const runFile = join(root, '.hopline/run.json');
  assert.equal(JSON.parse(readFileSync(runFile, 'utf8')).prefix, 'blue');
  for (const { service, url } of readRunFile(runFile))
    assert.equal(new URL(url).hostname, service === 'ingress' ? '127.0.0.2' : '127.0.0.1', service);
  const nowhere = start(t, root, [], { HOPLINE_HOST: '192.0.2.1', HOPLINE_HOME: 'other' });
  assert.equal(await nowhere.exit(), 1);
  assert.match(nowhere.output(), /HOPLINE_HOST is 192\.0\.2\.1, which is not an address of this machine \(EADDRNOTAVAIL\)/);
});

/** The variables of running processes whose value contains `text`, by instance. */
function holders(root: string, text: string): Record<string, string[]> {
  const found = readRunFile(join(root, '.hopline/run.json')).map(({ instance, pid }) => {
    const variables = readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0');
    return [instance, variables.filter(one => one.includes(text)).map(one => one.split('=')[0])];
  });
  return Object.fromEntries(found);
}

test('a process gets only the secrets that it needs', { skip: process.platform !== 'linux' }, async t => {
  const root = checkout();
  const agents = [
    { name: 'argo', adapter: 'a2a', url: 'http://127.0.0.1:1', auth: { bearerEnv: 'ARGO_TOKEN' } },
    { name: 'own', adapter: 'module', path: './own.ts', env: ['OWN_KEY'] },
    { name: 'model', adapter: 'model', model: 'm' },
  ];
  writeFileSync(join(root, 'mine.json'), JSON.stringify({ agents }));
  const secrets = { ARGO_TOKEN: 'canary', OWN_KEY: 'canary', OPENAI_API_KEY: 'canary', GITHUB_TOKEN: 'canary' };
  const launcher = start(t, root, ['--agents', 'mine.json'], secrets);
  await launcher.prints(/Ctrl-C drains and stops everything/);
  assert.deepEqual(holders(root, 'canary'), {
    'nats-1': [],
    'ingress-1': [],
    'console-1': [],
    'supervisor-1': [],
    'sub-agent-argo': ['ARGO_TOKEN'],
    'sub-agent-own': ['OWN_KEY'],
    'sub-agent-model': ['OPENAI_API_KEY'],
    'relay-1': [],
    'notifier-1': [],
  });
});

test('a file path in a setting is relative to the folder of the user, for every process', {
  skip: process.platform !== 'linux',
}, async t => {
  const root = checkout();
  const launcher = start(t, root, ['--no-demo'], { HOPLINE_AUTH_API_KEYS_FILE: 'keys.json' });
  await launcher.prints(/Ctrl-C drains and stops everything/);
  const having = Object.entries(holders(root, join(root, 'keys.json'))).filter(([, names]) => names.length > 0);
  assert.deepEqual(having, [
    ['ingress-1', ['HOPLINE_AUTH_API_KEYS_FILE']],
    ['sub-agent-files', ['HOPLINE_AUTH_API_KEYS_FILE']],
    ['sub-agent-guide', ['HOPLINE_AUTH_API_KEYS_FILE']],
  ]);
});

test('custom agents run instead of the demo and receive no question', async t => {
  const root = checkout();
  writeFileSync(join(root, 'mine.json'), '{"agents":[{"name":"mine","adapter":"a2a","url":"http://127.0.0.1:1"}]}');
  const launcher = start(t, root, ['--agents', 'mine.json']);
  await launcher.prints(/Ctrl-C drains and stops everything/);
  assert.doesNotMatch(launcher.output(), /Asking:|sub-agent-guide/);
  assert.match(launcher.output(), /sub-agent-mine/);
});
