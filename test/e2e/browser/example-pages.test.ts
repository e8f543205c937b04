import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { createClient } from '@hopline/client';
import { freePort } from '@hopline/local-cluster';
import { until } from '../../kit/until.ts';
import { type RemoteAgent, startRemoteAgent } from '../../support/agents/remote-agent.ts';
import { Cluster } from '../../support/cluster/cluster.ts';
import { Chromium, chromiumPath, NO_CHROMIUM, type Page } from './chromium.ts';
import { COPILOTKIT_EXAMPLE, copilotKitPackages, NO_COPILOTKIT } from './copilotkit-packages.ts';

/** The pages of infra/examples, each started by its program, in Chromium; and CopilotKit's runtime without a page. */

const AI_SDK_EXAMPLE = fileURLToPath(new URL('../../../infra/examples/ai-sdk/', import.meta.url));
const TOKENS = Array.from({ length: 160 }, (_, index) => `${index} 🎯\n`);
const ANSWER = TOKENS.join('');
/** The agent writes the first half, and waits until ingress and a relay were killed. */
const HALF = TOKENS.length / 2;
const SHOWN_MS_MAX = 90_000;
const TEST_MS_MAX = 600_000;

const path = chromiumPath();

let remote: RemoteAgent;
let parrot: RemoteAgent;
let cluster: Cluster;
let browser: Chromium;
let ports: { aiSdk: number; copilotKit: number };
/** Lets the agent write the second half. */
let killed = Promise.withResolvers<void>();

before(async () => {
  ports = { aiSdk: await freePort(), copilotKit: await freePort() };
  remote = await startRemoteAgent({
    dialect: '1.0',
    script: async function* ({ text, turn }) {
      if (text.includes('fail')) return yield { fail: true, text: 'no ink' };
      if (text.includes('ask back') && turn === 1) return yield { inputRequired: 'Which color?' };
      if (!text.includes('count')) {
        yield { token: `You wrote: ${text}` };
        return yield { complete: true };
      }
      for (const [index, token] of TOKENS.entries()) {
        if (index === HALF) await killed.promise;
        yield { token };
        yield { pause: 5 };
      }
      yield { complete: true };
    },
  });
  parrot = await startRemoteAgent({
    dialect: '1.0',
    script: async function* ({ text }) {
      yield { token: `parrot: ${text}` };
      yield { complete: true };
    },
  });
  cluster = await Cluster.start({
    relays: 2,
    agents: [
      { name: 'counter', adapter: 'a2a', url: remote.url, default: true },
      { name: 'parrot', adapter: 'a2a', url: parrot.url },
      {
        name: 'refunds',
        adapter: 'module',
        path: fileURLToPath(new URL('../../support/agents/approving-agent.ts', import.meta.url)),
      },
    ],
    env: { HOPLINE_CORS_ORIGINS: `http://127.0.0.1:${ports.aiSdk}` },
  });
  if (path !== undefined) browser = await Chromium.start(path);
});

after(async () => {
  await browser?.[Symbol.asyncDispose]();
  await cluster?.[Symbol.asyncDispose]();
  await Promise.all([remote?.close(), parrot?.close()]);
});

type Example = AsyncDisposable & { url: string };

/** Runs the program of an example, as its command does where the cluster exists. */
async function startExample(folder: string, port: number): Promise<Example> {
  const env = { ...process.env, HOPLINE_URL: cluster.url, PORT: String(port), COPILOTKIT_TELEMETRY_DISABLED: 'true' };
  const child = spawn(process.execPath, ['main.mjs'], { cwd: folder, env, stdio: 'pipe' });
  const exited = once(child, 'exit');
  const stop = async () => {
    child.kill('SIGKILL');
    await exited;
  };
  child.stdout.setEncoding('utf8');
  let printed = '';
  // CopilotKit's runtime prints every broken connection with its stack.
  child.stderr.setEncoding('utf8').on('data', text => {
    printed += text;
  });
  for await (const text of child.stdout) {
    printed += text;
    const [, url] = /Open (\S+)\//.exec(printed) ?? [];
    if (url === undefined) continue;
    child.stdout.resume();
    return { url, [Symbol.asyncDispose]: stop };
  }
  await exited;
  throw new Error(`${folder}main.mjs has ended: ${printed}`);
}

/** The example of CopilotKit, in a folder below its packages. */
async function startCopilotKit(packages: string): Promise<Example> {
  const folder = await mkdtemp(join(packages, 'example-'));
  cpSync(COPILOTKIT_EXAMPLE, folder, { recursive: true, filter: source => !source.includes('node_modules') });
  const example = await startExample(folder, ports.copilotKit);
  const stop = async () => {
    await example[Symbol.asyncDispose]();
    await rm(folder, { recursive: true });
  };
  return { url: example.url, [Symbol.asyncDispose]: stop };
}

const shownText = `([...document.querySelectorAll('[data-role=assistant]')].at(-1)?.textContent ?? '')`;
const ask = (page: Page, text: string) =>
  page.evaluate(`{
    const input = document.querySelector('input');
    input.value = ${JSON.stringify(text)};
    input.form.requestSubmit();
  }`);

async function answersAfterReloadAndKills(url: string): Promise<void> {
  killed = Promise.withResolvers();
  const page = await browser.open(`${url}/`);
  await page.until(`document.querySelector('button')?.disabled === false`, SHOWN_MS_MAX);
  const chat = (await page.evaluate<string>('location.hash')).slice(1);
  await ask(page, 'count');
  await page.until(`${shownText}.length > 20`, SHOWN_MS_MAX);
  await page.evaluate('document.isBefore = true; location.reload()');
  // The page that was loaded again receives the whole first half while the agent waits.
  await page.until(`!document.isBefore && ${shownText} === ${JSON.stringify(TOKENS.slice(0, HALF).join(''))}`, SHOWN_MS_MAX);
  const [ingress] = cluster.ingresses;
  await Promise.all([ingress!.kill('SIGKILL'), cluster.relays[0]!.kill('SIGKILL')]);
  killed.resolve();
  await Promise.all([ingress!.start(), cluster.relays[0]!.start()]);
  await page.until(`${shownText} === ${JSON.stringify(ANSWER)}`, SHOWN_MS_MAX);
  await page.until(`document.querySelector('output').textContent === 'ready'`, SHOWN_MS_MAX);
  const roles = `[...document.querySelectorAll('[data-role]')].map(e => e.dataset.role)`;
  assert.deepEqual(await page.evaluate(roles), ['user', 'assistant']);
  const client = createClient({ url: cluster.url });
  const { tasks } = await client.list({ contextId: chat });
  assert.equal(tasks.length, 1);
  let stored = '';
  for await (const view of client.watch(tasks[0]!.id)) stored = view.answer;
  assert.equal(stored, ANSWER);
  // A reload after the end shows the same chat.
  await page.evaluate('document.isBefore = true; location.reload()');
  await page.until(`!document.isBefore && ${shownText} === ${JSON.stringify(ANSWER)}`, SHOWN_MS_MAX);
  await ask(page, 'hello');
  await page.until(`${shownText} === 'You wrote: hello'`, SHOWN_MS_MAX);
}

const skip = path === undefined && NO_CHROMIUM;

test('the page made with the AI SDK survives a reload, a killed ingress and a killed relay', {
  skip,
  timeout: TEST_MS_MAX,
}, async () => {
  await using example = await startExample(AI_SDK_EXAMPLE, ports.aiSdk);
  await answersAfterReloadAndKills(example.url);
});

const isReady = `document.querySelector('output')?.textContent === 'ready'`;
const rolesOf = (page: Page) => page.evaluate<string[]>(`[...document.querySelectorAll('[data-role]')].map(e => e.dataset.role)`);

test('the page made with the AI SDK stops an answer after a reload, at its agent, and a second tab shows the same answer', {
  skip,
  timeout: TEST_MS_MAX,
}, async () => {
  killed = Promise.withResolvers();
  await using example = await startExample(AI_SDK_EXAMPLE, ports.aiSdk);
  const page = await browser.open(`${example.url}/`);
  await page.until(isReady, SHOWN_MS_MAX);
  const chat = (await page.evaluate<string>('location.hash')).slice(1);
  const half = `${shownText} === ${JSON.stringify(TOKENS.slice(0, HALF).join(''))}`;
  await ask(page, 'count');
  await page.until(half, SHOWN_MS_MAX);
  const second = await browser.open(`${example.url}/#${chat}`);
  await second.until(half, SHOWN_MS_MAX);
  assert.deepEqual(await rolesOf(second), ['user', 'assistant']);
  await page.evaluate('document.isBefore = true; location.reload()');
  await page.until(`!document.isBefore && ${half} && !(${isReady})`, SHOWN_MS_MAX);
  const client = createClient({ url: cluster.url });
  const newest = async () => (await client.list({ contextId: chat })).tasks[0]!;
  // A reload and a second tab have stopped nothing.
  assert.equal((await newest()).status.state, 'TASK_STATE_WORKING');
  await page.evaluate(`[...document.querySelectorAll('button')].find(e => e.textContent === 'Stop').click()`);
  await until(async () => (await newest()).status.state === 'TASK_STATE_CANCELED');
  await until(() => remote.requests.some(({ method }) => method === 'cancel'));
  // Both tabs show the end, and everything that the agent wrote until then.
  for (const one of [page, second]) await one.until(`${isReady} && ${half}`, SHOWN_MS_MAX);
  // The chat goes on in the second tab.
  await ask(second, 'hello');
  await second.until(`${shownText} === 'You wrote: hello'`, SHOWN_MS_MAX);
  assert.equal((await client.list({ contextId: chat })).tasks.length, 2);
});

test('the page made with the AI SDK answers a question of the agent, and chooses between two agents', {
  skip,
  timeout: TEST_MS_MAX,
}, async () => {
  await using example = await startExample(AI_SDK_EXAMPLE, ports.aiSdk);
  const page = await browser.open(`${example.url}/#${crypto.randomUUID()}`);
  await page.until(isReady, SHOWN_MS_MAX);
  const chat = (await page.evaluate<string>('location.hash')).slice(1);
  const client = createClient({ url: cluster.url });
  const count = async () => (await client.list({ contextId: chat })).tasks.length;
  await ask(page, 'ask back');
  await page.until(`${isReady} && ${shownText} === 'Which color?'`, SHOWN_MS_MAX);
  await ask(page, 'blue');
  await page.until(`${isReady} && ${shownText} === 'You wrote: blue'`, SHOWN_MS_MAX);
  assert.deepEqual([await rolesOf(page), await count()], [['user', 'assistant', 'user', 'assistant'], 1]);
  const agents = `[...document.querySelectorAll('select option')].map(e => e.value)`;
  assert.deepEqual(await page.evaluate(agents), ['', 'counter', 'parrot', 'refunds']);
  for (const [agent, answer] of [
    ['parrot', 'parrot: hello'],
    ['counter', 'You wrote: hello'],
  ]) {
    await page.evaluate(`document.querySelector('select').value = '${agent}'`);
    await ask(page, 'hello');
    await page.until(`${isReady} && ${shownText} === '${answer}'`, SHOWN_MS_MAX);
  }
  assert.equal(await count(), 3);
});

test('the page made with the AI SDK asks for the approval of a call, which runs if approved and not if denied', {
  skip,
  timeout: TEST_MS_MAX,
}, async () => {
  await using example = await startExample(AI_SDK_EXAMPLE, ports.aiSdk);
  const page = await browser.open(`${example.url}/#${crypto.randomUUID()}`);
  await page.until(isReady, SHOWN_MS_MAX);
  const chat = (await page.evaluate<string>('location.hash')).slice(1);
  const shownCall = `[...document.querySelectorAll('fieldset > :not(button)')].map(e => e.textContent).join(' ')`;
  const isDecided = `${isReady} && document.querySelector('fieldset') === null`;
  const numbers = Array.from({ length: 100 }, (_, line) => `${line} `).join('');
  for (const { order, button, end } of [
    { order: '17', button: 'Approve', end: `${numbers}paid 17` },
    { order: '18', button: 'Deny', end: 'Not paid: no reason' },
  ]) {
    const question = `Let me see. Pay order ${order} back?`;
    // React resets the form when it is sent.
    await page.evaluate(`document.querySelector('select').value = 'refunds'`);
    await ask(page, order);
    await page.until(`${isReady} && ${shownText} === ${JSON.stringify(question)}`, SHOWN_MS_MAX);
    assert.equal(await page.evaluate(shownCall), `refund {"order":"${order}"}`);
    await page.evaluate(`[...document.querySelectorAll('button')].find(e => e.textContent === '${button}').click()`);
    await page.until(`${isDecided} && ${shownText} === ${JSON.stringify(question + end)}`, SHOWN_MS_MAX);
  }
  // The decisions have continued the messages that asked.
  assert.deepEqual(await rolesOf(page), ['user', 'assistant', 'user', 'assistant']);
  const parts = `JSON.parse(localStorage.getItem('${chat}')).flatMap(({ parts }) => parts)`;
  const refunds = await page.evaluate(`${parts}.filter(e => e.toolName === 'refund').map(e => [e.state, e.output ?? null])`);
  assert.deepEqual(refunds, [
    ['output-available', 'paid 17'],
    ['output-denied', null],
  ]);
  const { tasks } = await createClient({ url: cluster.url }).list({ contextId: chat });
  assert.equal(tasks.length, 2);
});

test('the page made with CopilotKit survives a reload, a killed ingress and a killed relay, and answers a question', {
  skip,
  timeout: TEST_MS_MAX,
}, async t => {
  const packages = await copilotKitPackages();
  if (packages === undefined) return t.skip(NO_COPILOTKIT);
  await using example = await startCopilotKit(packages);
  await answersAfterReloadAndKills(example.url);
  const page = await browser.open(`${example.url}/#chat-${crypto.randomUUID()}`);
  await page.until(`document.querySelector('button')?.disabled === false`, SHOWN_MS_MAX);
  await ask(page, 'ask back');
  await page.until(
    `/Which color/.test(document.body.textContent) && document.querySelector('output').textContent === 'ready'`,
    SHOWN_MS_MAX,
  );
  await ask(page, 'blue');
  await page.until(`${shownText} === 'You wrote: blue'`, SHOWN_MS_MAX);
});

type Event = { type: string; delta?: string; message?: string; name?: string };

test("CopilotKit's runtime runs an agent of Hopline with HttpAgent, unchanged", { timeout: TEST_MS_MAX }, async t => {
  const packages = await copilotKitPackages();
  if (packages === undefined) return t.skip(NO_COPILOTKIT);
  await using example = await startCopilotKit(packages);
  const api = `${example.url}/api/copilotkit`;
  const info = (await (await fetch(`${api}/info`)).json()) as { agents: Record<string, unknown> };
  assert.deepEqual(Object.keys(info.agents), ['hopline']);
  const run = async (content: string, threadId = crypto.randomUUID()) => {
    const input = { threadId, runId: crypto.randomUUID(), state: {}, tools: [], context: [], forwardedProps: {} };
    const response = await fetch(`${api}/agent/hopline/run`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'text/event-stream' },
      body: JSON.stringify({ ...input, messages: [{ id: crypto.randomUUID(), role: 'user', content }] }),
    });
    assert.equal(response.status, 200);
    return (await response.text())
      .split('\n')
      .filter(line => line.startsWith('data: '))
      .map(line => JSON.parse(line.slice(6)) as Event);
  };
  const events = await run('hello');
  assert.deepEqual([events[0]!.type, events.at(-1)!.type], ['RUN_STARTED', 'RUN_FINISHED']);
  const text = events.map(({ type, delta }) => (type === 'TEXT_MESSAGE_CONTENT' ? delta : '')).join('');
  assert.equal(text, 'You wrote: hello');
  for (const type of ['STEP_STARTED', 'STEP_FINISHED', 'STATE_SNAPSHOT', 'STATE_DELTA'])
    assert.ok(
      events.some(event => event.type === type),
      type,
    );
  const failed = await run('fail');
  assert.equal(failed.at(-1)!.type, 'RUN_ERROR');
  assert.match(failed.at(-1)!.message!, /no ink/);
});
