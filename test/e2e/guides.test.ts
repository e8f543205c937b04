import assert from 'node:assert/strict';
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { approvalRequestOf, type Part, readApprovalResponse, type TaskArtifactUpdateEvent } from '@hopline/a2a';
import { createClient } from '@hopline/client';
import { freePort } from '@hopline/local-cluster';
import type { DefaultChatTransport, UIMessage } from 'ai';
import { Window } from 'happy-dom';
import { compileCache } from '../kit/compile-cache.ts';
import { until } from '../kit/until.ts';
import { ModelServer } from '../support/agents/model-server.ts';
import { type RemoteAgent, startRemoteAgent } from '../support/agents/remote-agent.ts';
import { collect, type Frame, messageParams, textOf } from '../support/cluster/a2a-stream.ts';
import { Cluster } from '../support/cluster/cluster.ts';
import { type Issuer, startIssuer } from '../support/cluster/issuer.ts';
import { bundlesOfRun, launcherProgram } from '../support/cluster/launcher-process.ts';
import { call } from '../support/cluster/model-cluster.ts';
import { COMMAND_SOURCE, commandProgram } from '../support/cluster/service-process.ts';
import { emptyProject, Guide, settingsIn } from '../support/guides/guide.ts';
import { PYTHON_PACKAGE, pythonWithHttpx } from '../support/python/python-with-httpx.ts';
import { type StartedCommand, startCommand } from '../support/started-command.ts';
import { OtlpReceiver } from '../support/telemetry/otlp-receiver.ts';
import { startWebhook } from '../support/webhooks/webhook.ts';

/**
 * The guides over a running cluster, command by command and block by block as they stand there (ADR 183). One cluster of `npm start` serves all of
 * them, with the settings and agents files of every guide; a second one has what changes all answers: authentication, and a model that plans. Only
 * addresses, ids and the programs that are elsewhere differ.
 */

/** React reads these globals when it is loaded. The page keeps Node's `fetch`. */
const page = new Window({ url: 'http://127.0.0.1/' });
Object.assign(globalThis, { window: page, document: page.document, IS_REACT_ACT_ENVIRONMENT: false });
const { createElement } = await import('react');
const { createRoot } = await import('react-dom/client');

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const RECORDING = join(ROOT, 'infra/local/demo/guide.jsonl');
const TIMEOUT = { timeout: 300_000 };
const run = promisify(execFile);

const AI_SDK = new Guide('ai-sdk.md');
const AUTHENTICATION = new Guide('authentication-and-tenants.md');
const CLIENTS = new Guide('clients-and-resume.md');
const CONSOLE = new Guide('console.md');
const FIRST_AGENT = new Guide('first-agent.md');
const IN_FRONT = new Guide('in-front-of-an-existing-agent.md');
const OBSERVING = new Guide('observing.md');
const REPLAY = new Guide('replay.md');
const VERIFYING = new Guide('verifying.md');
const WEBHOOKS = new Guide('webhooks.md');

const ANSWER = readFileSync(RECORDING, 'utf8')
  .trim()
  .split('\n')
  .map(line => (JSON.parse(line) as { t?: string }).t ?? '')
  .join('');
const QUESTION = 'explain hopline';

type Entry = Record<string, unknown> & { name: string };

let folder: string;
let spans: OtlpReceiver;
let model: ModelServer;
let argocd: RemoteAgent;
/** The token with which the agent was last called. */
let token: string | undefined;
let launcher: ChildProcess;
let output = '';
/** The address of ingress. */
let url: string;
/** The task of `QUESTION`, and its cursors. */
let taskId: string;
let asked: Frame[];
let issuer: Issuer;
let guarded: Cluster;
let apiKey: string;
const running = new Set<ChildProcess>();

/** Entries of the guides, with the addresses and programs of this machine. */
function entryHere(entry: Entry): Entry {
  const { name } = entry;
  if (name === 'argocd') return { ...entry, url: argocd.url };
  // `npx` would download it.
  const server = join(ROOT, 'infra/local/node_modules/@modelcontextprotocol/server-filesystem/dist/index.js');
  if (name === 'files') return { ...entry, command: 'node', args: [server, '.'] };
  // The guides ask "explain hopline" of the demo, whose default agent has this recording.
  return name === 'demo' ? { ...entry, default: true } : entry;
}

function environment(more: Record<string, string> = {}): NodeJS.ProcessEnv {
  const { PATH, LANG } = process.env;
  return { PATH, LANG, HOME: folder, HOPLINE_HOME: join(folder, '.hopline'), ...compileCache(), HOPLINE_URL: url, ...more };
}

before(async () => {
  folder = emptyProject();
  spans = new OtlpReceiver();
  const endpoint = await spans.start();
  model = await ModelServer.start(() => [{ text: 'Brief.' }, { finish: 'stop' }]);
  argocd = await startRemoteAgent({
    dialect: '1.0',
    script: function* ({ headers }) {
      token = headers.authorization;
      yield { artifact: { artifactId: 'a1', name: 'sync', parts: [{ kind: 'text', text: 'in sync' }] }, lastChunk: true };
      yield { complete: true, text: 'done' };
    },
  });
  writeFileSync(join(folder, 'my-agent.ts'), FIRST_AGENT.file('my-agent.ts'));
  writeFileSync(
    join(folder, 'weather.ts'),
    `import { defineAgent } from '@hopline/agent';
     export default defineAgent({ name: 'weather', description: 'w', skills: ['Weather'], async *run({ text }) {
       yield \`\${process.env.WEATHER_KEY} \`; yield text; } });`,
  );
  writeFileSync(join(folder, 'painter.ts'), `export { graph } from '${join(ROOT, 'infra/examples/langgraph/writer.ts')}';\n`);
  copyFileSync(RECORDING, join(folder, 'stream.jsonl'));
  const [[bare], examples] = IN_FRONT.agents() as [Entry[], Entry[]];
  const [, [weather]] = FIRST_AGENT.agents() as [Entry[], Entry[]];
  const agents = [bare!, ...examples.filter(({ name }) => name !== 'argocd'), weather!].map(entryHere);
  writeFileSync(join(folder, 'agents.json'), JSON.stringify({ agents }));

  const starts = [IN_FRONT.npmStart('HOPLINE_PROFILE'), WEBHOOKS.npmStart(), AI_SDK.npmStart(), OBSERVING.npmStart()];
  const settings = Object.assign({}, ...starts.map(({ env }) => env)) as Record<string, string>;
  assert.equal(settings.OTEL_EXPORTER_OTLP_ENDPOINT, 'http://127.0.0.1:4318');
  const args = starts.flatMap(start => start.args);
  assert.deepEqual(args, ['--agents', 'agents.json', '--origin', 'http://localhost:5173']);
  launcher = spawn(process.execPath, [...launcherProgram(), ...args, '--port', '0', '--no-demo'], {
    cwd: folder,
    env: environment({
      ...settings,
      ...bundlesOfRun(),
      // `npm start` runs sources, and only this file tests it with real services. The six sub-agents would take 1.5 CPU seconds more each.
      TEST_BUNDLED: 'sub-agent',
      OTEL_EXPORTER_OTLP_ENDPOINT: endpoint,
      HOPLINE_NATS_SERVER: process.env.HOPLINE_NATS_SERVER ?? 'nats-server',
      HOPLINE_SHARDS: '16',
      WEATHER_KEY: 'w-key',
      OPENAI_BASE_URL: model.url,
      OPENAI_API_KEY: 'key',
    }),
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  launcher.stdout!.setEncoding('utf8').on('data', text => {
    output += text;
  });
  const isUp = () => /Ctrl-C drains/.test(output) && agents.every(({ name }) => output.includes(`agent ${name} ✓`));
  await until(
    () => isUp() || launcher.exitCode !== null,
    () => output,
    240_000,
  );
  assert.ok(isUp(), output);
  url = /Hopline is up: (\S+)/.exec(output)![1]!;
  asked = await collect(url, { params: messageParams(QUESTION) });
  taskId = (asked[0]!.result as { id: string }).id;
}, TIMEOUT);

after(async () => {
  for (const child of running) process.kill(-child.pid!, 'SIGKILL');
  if (launcher !== undefined && launcher.exitCode === null) {
    launcher.kill('SIGTERM');
    await once(launcher, 'exit');
  }
  await guarded?.[Symbol.asyncDispose]();
  issuer?.close();
  await argocd?.close();
  await model?.[Symbol.asyncDispose]();
  await spans?.stop();
  await page.happyDOM.close();
  if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
});

/** What `npm run -s hopline --` of a checkout, and an installed `hopline`, run. */
const FUNCTIONS = `
  npm() { [ "$1 $2 $3 $4" = 'run -s hopline --' ] || { echo "not a command of hopline: npm $*" >&2; return 1; }; shift 4; hopline "$@"; }
  hopline() { case $1 in agent|view) '${process.execPath}' '${COMMAND_SOURCE}' "$@";; *) '${process.execPath}' '${commandProgram([])}' "$@";; esac; }
`;

/** A command of a guide as it stands there, but for these texts. */
function here(command: string, replaced: Record<string, string> = {}): string {
  const known: Record<string, string> = {
    'http://127.0.0.1:8000/': url,
    'https://agents.example/': url,
    TASK: taskId,
    ...replaced,
  };
  return Object.entries(known).reduce((text, [from, to]) => text.replaceAll(from, to), command);
}

type Finished = { code: number; out: string; err: string };

/** Runs a command in the folder of the guides. */
async function shell(command: string, { input = '' } = {}): Promise<Finished> {
  const child = spawn('bash', ['-c', `${FUNCTIONS}\n${command}`], { cwd: folder, env: environment(), detached: true });
  running.add(child);
  let [out, err] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', text => {
    out += text;
  });
  child.stderr.setEncoding('utf8').on('data', text => {
    err += text;
  });
  child.stdin.on('error', () => {});
  child.stdin.end(input);
  const [code] = (await once(child, 'close')) as [number];
  running.delete(child);
  return { code, out, err };
}

/** Runs a command that succeeds. */
async function succeeds(command: string, options?: { input?: string }): Promise<string> {
  const { code, out, err } = await shell(command, options);
  assert.equal(code, 0, `${command}\n${out}${err}`);
  return out;
}

/** Starts a command that runs until it is stopped, and resolves once it has printed this. */
async function start(command: string, wanted: RegExp): Promise<StartedCommand> {
  const options = { program: 'bash', cwd: folder, env: environment(), running, msMax: 120_000 } as const;
  return startCommand(`${FUNCTIONS}\n${command}`, wanted, options);
}

/** Runs a block of a guide as a module in the folder of the guides. */
async function runModule(name: string, code: string): Promise<string> {
  writeFileSync(join(folder, name), code);
  const { stdout } = await run(process.execPath, [join(folder, name)], { cwd: folder, env: environment() });
  return stdout;
}

const agent = (name: string) => ({ metadata: { agent: name } });

/** All text of artifacts, in the order of the frames. */
function textIn(frames: readonly Frame[]): string {
  const parts = frames.flatMap(({ event }) => ('artifactUpdate' in event ? event.artifactUpdate.artifact.parts : []));
  return parts.map(({ text }) => text ?? '').join('');
}

test(
  'in front of an existing agent: its artifact and its messages pass, and each adapter of the guide answers',
  TIMEOUT,
  async () => {
    const list = await collect(url, { params: messageParams('state?', agent('argocd')) });
    assert.equal(textOf(list, 'sync'), 'in sync');
    assert.match(JSON.stringify(list.at(-1)!.result), /"completed".*done/);
    const answers = { files: 'list_directory {"path":"."}', painter: 'a poem', assistant: 'hello', demo: QUESTION };
    const wanted: Record<string, RegExp> = { files: /stream\.jsonl/, painter: /Roses are red/, assistant: /Brief\./, demo: /✅/ };
    await Promise.all(
      Object.entries(answers).map(async ([name, text]) => {
        const frames = await collect(url, { params: messageParams(text, agent(name)) });
        assert.match(textIn(frames), wanted[name]!, name);
      }),
    );
    IN_FRONT.assertAllTaken();
  },
);

test('webhooks: a receiver on this machine gets every event in order, with its cursor', TIMEOUT, async () => {
  await using webhook = await startWebhook();
  const pushNotificationConfig = { url: `${webhook.url}/hook`, token: 'secret' };
  const params = { ...messageParams('hello', agent('weather')), configuration: { pushNotificationConfig, blocking: false } };
  await collect(url, { params });
  await webhook.until(() => webhook.accepted().some(({ body }) => body.status?.state === 'completed'));
  const [first] = webhook.accepted();
  assert.equal(first!.headers['x-a2a-notification-token'], 'secret');
  assert.match(String(first!.headers['x-hopline-cursor']), /^\d+\.\d+$/);

  writeFileSync(join(folder, 'receiver.mjs'), WEBHOOKS.file('receiver.mjs'));
  const receiver = await start(`PORT=0 ${WEBHOOKS.command('WEBHOOK_TOKEN=secret node receiver.mjs')}`, /receiver on port (\d+)/);
  const at = { 'http://127.0.0.1:9000': `http://127.0.0.1:${receiver.matched[1]}` };
  const { task } = JSON.parse(await succeeds(here(WEBHOOKS.command('curl http://127.0.0.1:8000/message:send'), at)));
  await receiver.prints(new RegExp(`"taskId":"${task.id}".*"state":"TASK_STATE_COMPLETED"`));
  const events = receiver
    .printed()
    .split('\n')
    .filter(line => line.includes('artifactUpdate'));
  const parts = events.flatMap(
    line => (JSON.parse(line) as { artifactUpdate: TaskArtifactUpdateEvent }).artifactUpdate.artifact.parts,
  );
  assert.equal(parts.map(({ text = '' }) => text).join(''), ANSWER);
  const added = JSON.parse(
    await succeeds(here(WEBHOOKS.command('curl http://127.0.0.1:8000/tasks/TASK/push'), { ...at, TASK: task.id })),
  );
  assert.deepEqual([added.taskId, added.token], [task.id, undefined]);
  const deliveries = WEBHOOKS.command('curl http://127.0.0.1:8000/tasks/TASK/deliveries');
  const { webhooks } = JSON.parse(await succeeds(here(deliveries, { TASK: task.id })));
  const urls = webhooks.map((one: { url: string }) => one.url);
  assert.deepEqual(urls, [`${at['http://127.0.0.1:9000']}/`]);
  await receiver.stop();
  WEBHOOKS.assertAllTaken();
});

test('first agent: it joins the cluster, answers a question and a chat, and is tested without a cluster', TIMEOUT, async () => {
  const own = await start(FIRST_AGENT.command('npm run -s hopline -- agent'), /greeter is running/);
  const { code, out, err } = await shell(FIRST_AGENT.command('npm run -s hopline -- ask'));
  assert.deepEqual([code, out, err], [0, 'Hello, Ada!\n', 'card.md, 10 bytes\n']);
  const chat = await succeeds(FIRST_AGENT.command('npm run -s hopline -- chat'), { input: 'Bob\n' });
  assert.match(chat, /Hello, Bob!/);
  await own.stop();
  const played = `${FIRST_AGENT.block('playTurn')}\nconsole.log(JSON.stringify({ text, artifacts, notices, tools, steps, end }));\n`;
  const { text, notices, artifacts } = JSON.parse(await runModule('play.ts', played));
  assert.deepEqual([text, notices[0], artifacts.length], ['Hello, Ada!\n', 'Looking for a good word', 1]);
});

test('an agent gets the variable that its entry names', TIMEOUT, async () => {
  assert.equal(textIn(await collect(url, { params: messageParams('Berlin', agent('weather')) })), 'w-key Berlin');
});

test('clients and resume: curl, a Durable Stream, Python and a proxy of vite', TIMEOUT, async t => {
  const [, second] = asked;
  const resumed = await succeeds(here(CLIENTS.command('curl -N'), { '41.40': second!.id }));
  const ids = [...resumed.matchAll(/^id: ?(\S+)$/gm)].map(([, id]) => id);
  assert.deepEqual(
    ids,
    asked.slice(2).map(({ id }) => id),
  );

  const polled = JSON.parse(await succeeds(here(CLIENTS.command("curl 'http"))));
  assert.equal(polled.id, taskId);
  assert.ok(Number(polled.generation) > 3 && polled.timeline.length > 0, JSON.stringify(polled));

  const durable = `let saved;\nconst kept = [];\nconst save = (items, offset) => kept.push(...items);
    process.on('exit', () => console.log(JSON.stringify(kept)));\n${here(CLIENTS.block('@durable-streams/client'), { 'http://127.0.0.1:8000': url.replace(/\/$/, '') })}`;
  const items = JSON.parse(await runModule('durable.mjs', durable)) as unknown[];
  assert.equal(items.length, asked.length);

  const config = CLIENTS.file('vite.config.ts');
  mkdirSync(join(folder, 'page'));
  writeFileSync(join(folder, 'page/vite.config.ts'), config.replace('http://127.0.0.1:8000', url.replace(/\/$/, '')));
  writeFileSync(join(folder, 'page/index.html'), '<!doctype html><title>page</title>\n');
  const vite = join(ROOT, 'services/console/node_modules/vite/bin/vite.js');
  const server = await start(`'${process.execPath}' '${vite}' page --port 0`, /(http:\/\/localhost:\d+\/)/);
  const client = createClient({
    url: `${server.matched[1]}a2a/`,
    fetch: (input, init) => fetch(input, { ...init, headers: { ...Object(init?.headers), origin: 'http://localhost:5173' } }),
  });
  const { tasks } = await client.list();
  assert.ok(tasks.some(({ id }) => id === taskId));
  await server.stop();

  const { parts: asking } = JSON.parse(CLIENTS.block('"approvalRequest"')) as { parts: Part[] };
  const { parts: deciding } = JSON.parse(CLIENTS.block('"approvalResponse"')) as { parts: Part[] };
  const request = approvalRequestOf({ parts: asking });
  assert.ok(request);
  assert.deepEqual(readApprovalResponse(deciding, request), { approved: false, reason: 'Too much' });

  const block = CLIENTS.block('hopline.Client');
  CLIENTS.assertAllTaken();
  const found = await pythonWithHttpx();
  if ('skip' in found) return t.skip(found.skip);
  const python = `import asyncio, hopline\nasync def main():\n${here(block).replaceAll(/^/gm, '  ')}\n  print(answer.view.answer)\nasyncio.run(main())\n`;
  const { stdout } = await run(found.python, ['-c', python], {
    env: { ...environment(), PYTHONPATH: join(PYTHON_PACKAGE, 'src') },
  });
  assert.match(stdout, /TASK_STATE_COMPLETED|completed/);
  assert.ok(stdout.includes(ANSWER.trim().split('\n').at(-1)!), stdout);
});

test('replay: a task is exported, replayed, served, forked and imported', TIMEOUT, async () => {
  const of = (begin: string) => here(REPLAY.command(`npm run -s hopline -- ${begin}`));
  await succeeds(of('export TASK --output'));
  await succeeds(of('export TASK --nats --output'));
  await succeeds(of('export TASK --nats --redact'));
  assert.doesNotMatch(readFileSync(join(folder, 'shared.hopline.jsonl'), 'utf8'), /explain hopline/);
  const [all, fast] = await Promise.all([
    succeeds(of('replay bug.hopline.jsonl')),
    succeeds(of('replay bug.hopline.jsonl --pace 10x')),
  ]);
  assert.equal(all, ANSWER);
  assert.equal(fast, ANSWER);
  const cursors = (await succeeds(of('follow TASK --json')))
    .trim()
    .split('\n')
    .map(line => (JSON.parse(line) as { cursor: string }).cursor);
  const [from, to] = [cursors[4]!, cursors.at(-2)!];
  const part = await succeeds(
    here(REPLAY.command('npm run -s hopline -- replay bug.hopline.jsonl --pace max'), { '17.42': from, '30.51': to }),
  );
  assert.deepEqual(
    part
      .trim()
      .split('\n')
      .map(line => JSON.parse(line).cursor),
    cursors.slice(5, -1),
  );

  const port = String(await freePort());
  const served = await start(`${of('serve bug.hopline.jsonl --port 8010').replace('8010', port)}`, /recorded task at/);
  assert.equal(await succeeds(of('ask').replace('8010', port)), ANSWER);
  await served.stop();
  const faulty = await start(of('serve bug.hopline.jsonl --port 8010 --fault').replace('8010', port), /recorded task at/);
  for (let refused = 0; refused < 2; refused += 1)
    assert.equal((await fetch(`http://127.0.0.1:${port}/tasks`, { headers: { 'a2a-version': '1.0' } })).status, 503);
  const { out } = await shell(REPLAY.command('curl -N').replace('8010', port));
  assert.equal(out.match(/^data:/gm)?.length, 3);
  await faulty.stop();

  const forked = await shell(here(REPLAY.command('npm run -s hopline -- fork'), { '17.42': from }));
  assert.equal(forked.code, 0, forked.err);
  assert.notEqual(forked.out, '');
  const imported = await succeeds(of('import bug.hopline.jsonl'));
  assert.match(imported, /[0-9a-f-]{36}/);
  assert.match(await succeeds(of('import bug.hopline.jsonl --tenant')), /[0-9a-f-]{36}/);
  const rows = (await succeeds(REPLAY.command('jq '))).trim().split('\n');
  assert.match(rows[0]!, /^\S+\t\S+\t1$/);
  REPLAY.assertAllTaken();
});

test('verifying: stored tasks are decided again, compared and asked again', TIMEOUT, async () => {
  const of = (begin: string) => here(VERIFYING.command(`npm run -s hopline -- ${begin}`));
  const others = await collect(url, { params: messageParams('hello', agent('weather')) });
  const other = (others[0]!.result as { id: string }).id;
  await succeeds(`hopline export ${taskId} --nats --output answer.hopline.jsonl`);
  await succeeds(`hopline export ${other} --nats --output another.hopline.jsonl`);
  writeFileSync(join(folder, 'tasks.txt'), `${taskId}\n`);
  assert.match(await succeeds(of('verify TASK')), /1 same, 0 differ/);
  assert.match(await succeeds(of('verify answer')), /2 tasks: 2 same, 0 differ/);
  assert.match(await succeeds(of('verify --all')), /\d+ tasks: \d+ same, 0 differ, 0 failed, 0 unreadable/);
  assert.match(await succeeds(of('what-if --all')), /\d+ tasks, \d+ tokens/);
  assert.match(await succeeds(of('what-if answer')), /^ +40 +100 ms/m);
  const { code, out } = await shell(of('diff'));
  assert.equal(code, 1, out);
  const [once, compared] = await Promise.all([
    succeeds(of('rerun TASK --yes')),
    succeeds(of('rerun --file').replace('--agent guide', '--agent demo')),
  ]);
  assert.equal(once, ANSWER);
  assert.match(compared, /1 task: 1 same, 0 differ, 0 not completed/);
  VERIFYING.assertAllTaken();
});

test('AI SDK: useChat with the code of the guide, stop, and the transport of the client', TIMEOUT, async () => {
  const address = { 'http://127.0.0.1:8000': url.replace(/\/$/, '') };
  const [imports, hook] = AI_SDK.block('useChat({\n').split('\n\n') as [string, string];
  const chatId = randomUUID();
  const code = `${imports}
    import { createClient } from '@hopline/client';
    import { HoplineChatTransport } from '@hopline/client/ai-sdk';
    export function useGuide(chatId, storedMessages) { ${here(hook, address)}\n return { messages, sendMessage, stop, resumeStream }; }
    export async function stopChat(chatId) { ${here(AI_SDK.block('/stop`'), address)} }
    export function clientTransport() {
      ${here(AI_SDK.block('HoplineChatTransport'), address).replaceAll(/^import.*$/gm, '')}
      return transport;
    }
    export const lastTwo = api => ${AI_SDK.block('prepareSendMessagesRequest')}`;
  writeFileSync(join(folder, 'chat.mjs'), code);
  const guide = await import(pathToFileURL(join(folder, 'chat.mjs')).href);
  type Shown = { messages: UIMessage[]; sendMessage(message: { text: string }): Promise<void> };
  let shown: Shown | undefined;
  const Page = () => {
    shown = guide.useGuide(chatId, []);
    return createElement('p');
  };
  const root = createRoot(page.document.createElement('main') as never);
  root.render(createElement(Page));
  await until(() => shown !== undefined);
  const answer = () => (shown!.messages.at(-1)?.parts ?? []).flatMap(part => (part.type === 'text' ? [part.text] : [])).join('');
  await shown!.sendMessage({ text: 'Berlin' });
  await until(() => answer() === 'w-key Berlin', answer);
  await guide.stopChat(chatId);
  root.unmount();

  const read = async (stream: ReadableStream<{ type: string; delta?: string }>) => {
    let text = '';
    for await (const chunk of stream) if (chunk.type === 'text-delta') text += chunk.delta;
    return text;
  };
  const message = (text: string): UIMessage => ({ id: randomUUID(), role: 'user', parts: [{ type: 'text', text }] });
  const request = (messages: UIMessage[]) =>
    ({ trigger: 'submit-message', chatId: randomUUID(), messageId: undefined, abortSignal: undefined, messages }) as const;
  assert.equal(await read(await guide.clientTransport().sendMessages(request([message('Rome')]))), 'w-key Rome');
  const sent: string[] = [];
  const transport = guide.lastTwo(`${address['http://127.0.0.1:8000']}/ui/chat`) as DefaultChatTransport<UIMessage>;
  Object.assign(transport, {
    fetch: (input: string, init: RequestInit) => {
      sent.push(String(init.body));
      return fetch(input, init);
    },
  });
  const long = [message('one'), message('two'), message('three')];
  await read(await transport.sendMessages({ ...request(long), body: { agent: 'weather' } }));
  assert.deepEqual(
    JSON.parse(sent[0]!).messages.map(({ parts }: UIMessage) => (parts[0] as { text: string }).text),
    ['two', 'three'],
  );
  AI_SDK.assertAllTaken();
});

test('observing: spans arrive at the collector, and the commands in the text explain the task', TIMEOUT, async () => {
  await until(() => spans.spans.some(({ attributes }) => attributes['a2a.task.id'] === taskId));
  const trace = await succeeds(`hopline trace ${taskId}`);
  assert.match(trace, /slowest: .* of the .* of the turn \(\d+ %\)/);
  assert.match(await succeeds(`hopline trace ${taskId} --all`), /ms/);
  assert.match(await succeeds(`hopline why ${taskId} ${asked[4]!.id}`), /\w/);
  assert.match(await succeeds('hopline logs relay'), /turn/);
});

test('console: a task file becomes a page, and a file of its own', TIMEOUT, async () => {
  await succeeds(`hopline export ${taskId} --output task.hopline.jsonl`);
  await succeeds(CONSOLE.command('hopline view task.hopline.jsonl --output'));
  assert.match(readFileSync(join(folder, 'task.html'), 'utf8'), /id="task-file"/);
  // `--no-open` of the guide: the machine of a test has no browser to open.
  const shown = await start(
    `${CONSOLE.command('hopline view task.hopline.jsonl')} --no-open`,
    /(http:\/\/127\.0\.0\.1:\d+\/\S+)/,
  );
  assert.match(await (await fetch(shown.matched[1]!)).text(), /id="task-file"/);
  await shown.stop();
  CONSOLE.assertAllTaken();
});

test('the loop in the guide sends a large file in chunks that add up to its bytes', async t => {
  const project = emptyProject();
  t.after(() => rmSync(project, { recursive: true, force: true }));
  const path = join(project, 'report.mjs');
  const loop = FIRST_AGENT.block("name: 'report.pdf'");
  writeFileSync(path, `import { artifact } from '@hopline/agent';\nexport function* chunksOf(bytes) {\n${loop}}\n`);
  type Chunk = { artifact: { parts: [{ raw: string }] }; append: boolean; lastChunk: boolean };
  const { chunksOf }: { chunksOf(bytes: Buffer): Iterable<Chunk> } = await import(pathToFileURL(path).href);
  const bytes = Buffer.alloc(2_500_000, 'report');
  const chunks = [...chunksOf(bytes)];
  assert.deepEqual(
    chunks.map(({ append, lastChunk }) => [append, lastChunk]),
    [
      [false, false],
      [true, false],
      [true, true],
    ],
  );
  assert.deepEqual(Buffer.concat(chunks.map(({ artifact: { parts } }) => Buffer.from(parts[0].raw, 'base64'))), bytes);
});

test(
  'authentication, and a model that plans, at one cluster: tokens, API keys, a signed card, and the cost of the model',
  TIMEOUT,
  async () => {
    const login = settingsIn(AUTHENTICATION.command('HOPLINE_AUTH_ISSUER'));
    issuer = await startIssuer(login.HOPLINE_AUTH_ISSUER);
    const printed = await succeeds(`${AUTHENTICATION.command('KEY=')}\n${AUTHENTICATION.command('printf')}\nprintf %s "$KEY"`);
    const [, hex, key] = /^([0-9a-f]{64}) .*\n([0-9a-f]{64})$/.exec(printed) ?? assert.fail(printed);
    apiKey = key!;
    writeFileSync(join(folder, 'keys.json'), AUTHENTICATION.block('key_sha256').replace('<hex>', hex!));
    const { env: keys } = AUTHENTICATION.npmStart('HOPLINE_AUTH_API_KEYS_FILE');
    await succeeds(AUTHENTICATION.command('openssl genpkey'));
    writeFileSync(join(folder, 'prices.json'), OBSERVING.block('"gpt-5-mini"'));
    const { env: planner } = FIRST_AGENT.npmStart('HOPLINE_PLANNER');
    const [greeter] = FIRST_AGENT.agents() as [Entry[]];
    const [, [withToken]] = IN_FRONT.agents() as [Entry[], Entry[]];
    guarded = await Cluster.start({
      agents: [greeter![0]!, entryHere(withToken!)],
      agentsFolder: folder,
      env: {
        ...login,
        HOPLINE_AUTH_JWKS_URL: issuer.env.HOPLINE_AUTH_JWKS_URL!,
        ...planner,
        HOPLINE_AUTH_API_KEYS_FILE: join(folder, keys.HOPLINE_AUTH_API_KEYS_FILE!),
        HOPLINE_CARD_KEY_FILE: join(folder, 'card.pem'),
        HOPLINE_MODEL_PRICES_FILE: join(folder, 'prices.json'),
        OPENAI_BASE_URL: model.url,
        // Where the key goes, the guide has a character that no header can contain.
        OPENAI_API_KEY: 'key',
        ARGOCD_TOKEN: 'argocd-token',
      },
    });
    model.reply = ({ messages }) =>
      messages.some(({ role }) => role === 'tool') ? [{ text: 'Greeted.' }, { finish: 'stop' }] : [call('greeter', 'Ada')];
    const annToken = await issuer.token({ sub: 'ann' });
    const bearer = { authorization: `Bearer ${annToken}` };
    for (const [variable, credential] of [
      ['HOPLINE_TOKEN', annToken],
      ['HOPLINE_API_KEY', apiKey],
    ] as const) {
      const command = AUTHENTICATION.command(`${variable}=`).replace('…', credential);
      assert.match(await succeeds(`HOPLINE_URL=${guarded.url} ${command}`), /Greeted\./, variable);
    }
    const list = await collect(guarded.url, { text: 'greet Ada', headers: bearer });
    assert.match(textIn(list), /Hello, Ada!/, JSON.stringify(list.at(-1)!.result));
    const byKey = await collect(guarded.url, {
      params: messageParams('state?', agent('argocd')),
      headers: { 'x-api-key': apiKey },
    });
    assert.match(JSON.stringify(byKey.at(-1)!.result), /"completed"/);
    assert.equal(token, 'Bearer argocd-token');
    await assert.rejects(collect(guarded.url, { text: 'hello' }), /401/);
    const jwks = (await (await fetch(`${guarded.url}/.well-known/jwks.json`)).json()) as { keys: { crv: string }[] };
    assert.deepEqual(
      jwks.keys.map(({ crv }) => crv),
      ['P-256'],
    );
    const metrics = await (await fetch(`${guarded.supervisors[0]!.url}/metrics`)).text();
    assert.match(metrics, /hopline_tenant_model_cost_total\{[^}]*gpt-5-mini/);
    for (const guide of [AUTHENTICATION, FIRST_AGENT, OBSERVING]) guide.assertAllTaken();
  },
);
