import assert from 'node:assert/strict';
import { generateKeyPairSync, hash, randomUUID } from 'node:crypto';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, request as requestHttp } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Fold } from '@hopline/a2a';
import { BEGINNING, createClient, type StreamItem } from '@hopline/client';
import { freePort } from '@hopline/local-cluster';
import { build } from 'esbuild';
import { collect } from '../../kit/collect.ts';
import { listen } from '../../kit/listen.ts';
import { type RemoteAgent, startRemoteAgent } from '../../support/agents/remote-agent.ts';
import { Cluster } from '../../support/cluster/cluster.ts';
import { HoplineCommand } from '../../support/cluster/hopline-command.ts';
import { ServiceProcess } from '../../support/cluster/service-process.ts';
import { Chromium, chromiumPath, NO_CHROMIUM, type Page } from './chromium.ts';
import { startWebOrigin, type WebOrigin } from './web-origin.ts';

const EXAMPLE = new URL('../../../infra/examples/web-page/index.html', import.meta.url);
const TOKENS = Array.from({ length: 160 }, (_, index) => `${index} 🎯\n`);
const ANSWER = TOKENS.join('');
/** The page is disconnected within the first half; the second half is published while its ingress is down. */
const BEFORE_CUT = 10;
const HALF = TOKENS.length / 2;
const TEST_MS_MAX = 120_000;
const ANSWER_MS_MAX = 60_000;
const API_KEY = `key-${randomUUID()}`;

const path = chromiumPath();
const options = {
  timeout: TEST_MS_MAX,
  skip: path === undefined && NO_CHROMIUM,
};

let folder: string;
let remote: RemoteAgent;
let cluster: Cluster;
let listed: WebOrigin;
let other: WebOrigin;
let browser: Chromium;
/** Lets the agent of the newest task continue, after its stream was interrupted. */
let cut = Promise.withResolvers<void>();

before(async () => {
  if (path === undefined) return;
  [listed, other] = [await startWebOrigin(), await startWebOrigin()];
  folder = await mkdtemp(join(tmpdir(), 'browser-'));
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  await writeFile(join(folder, 'card.pem'), privateKey.export({ type: 'pkcs8', format: 'pem' }));
  await writeFile(join(folder, 'keys.json'), JSON.stringify([{ key_sha256: hash('sha256', API_KEY), subject: 'ann' }]));
  remote = await startRemoteAgent({
    dialect: '0.3',
    script: async function* ({ text }) {
      const { promise: wasCut } = cut;
      for (const [index, token] of TOKENS.entries()) {
        if (index === HALF && text.includes('be cut')) await wasCut;
        yield { token };
        yield { pause: 5 };
      }
      yield { complete: true };
    },
  });
  cluster = await Cluster.start({
    agents: [{ name: 'counter', adapter: 'a2a', url: remote.url }],
    env: { HOPLINE_CORS_ORIGINS: `https://app.example,${listed.origin}`, HOPLINE_CARD_KEY_FILE: join(folder, 'card.pem') },
  });
  const page = { type: 'text/html', body: await readFile(EXAMPLE) };
  for (const place of [listed, other]) place.documents.set('/', page);
  // The strictest policy for a page with one script and one server; in particular, no eval.
  const policy = `default-src 'none'; script-src 'self'; connect-src http://127.0.0.1:*`;
  const client = '<!doctype html><script type="module" src="/client.js"></script>';
  listed.documents.set('/client', { type: 'text/html', body: client, policy });
  listed.documents.set('/client.js', { type: 'text/javascript', body: await bundledClient() });
  browser = await Chromium.start(path);
});

after(async () => {
  await browser?.[Symbol.asyncDispose]();
  await cluster?.[Symbol.asyncDispose]();
  await remote?.close();
  await listed?.[Symbol.asyncDispose]();
  await other?.[Symbol.asyncDispose]();
  if (folder !== undefined) await rm(folder, { recursive: true });
});

/** Kills the ingress in mid-stream, and restarts it on its port after more text was published. */
async function restartIngress(): Promise<void> {
  const [ingress] = cluster.ingresses;
  await ingress!.kill('SIGKILL');
  cut.resolve();
  await ingress!.start();
}

const lineCount = `[...document.querySelectorAll('[title=streaming_result]')].map(e => e.textContent).join('').split('\\n').length`;
const ask = (page: Page, url: string, text: string) =>
  page.evaluate(`
    document.forms[0].url.value = '${url}/';
    document.forms[0].text.value = '${text}';
    document.forms[0].requestSubmit();`);

test(
  'the example page resumes an interrupted stream by its cursor, and shows the content of the log [S3-31]',
  options,
  async () => {
    cut = Promise.withResolvers();
    const page = await browser.open(`${listed.origin}/`);
    await ask(page, cluster.url, 'be cut');
    await page.until(`${lineCount} > ${BEFORE_CUT}`, ANSWER_MS_MAX);
    const asked = page.requests.length;
    await restartIngress();
    await page.until(`/COMPLETED/.test(document.querySelector('#state').textContent)`, ANSWER_MS_MAX);
    const { task, artifacts } = await foldOf(cluster.url, await taskIdOf(page));
    assert.equal(task?.status.state, 'TASK_STATE_COMPLETED');
    const shown = await page.evaluate<[string, string][]>(
      `[...document.querySelectorAll('#answer pre')].map(e => [e.id, e.textContent])`,
    );
    assert.deepEqual(
      shown,
      [...artifacts.values()].map(({ artifactId, text }) => [artifactId, text]),
    );
    assert.equal(textNamed(artifacts, 'streaming_result'), ANSWER);
    const resumed = page.requests.slice(asked).filter(({ method }) => method === 'POST');
    assert.ok(resumed.length > 0);
    for (const { headers, body } of resumed) {
      assert.match(body, /"SubscribeToTask"/);
      assert.match(headers['last-event-id'] ?? '', /^\d+\.\d+$/);
    }
  },
);

test(
  'the example page resends a message whose answer was lost, in the same context, and starts only one task [S3-31]',
  options,
  async t => {
    const page = await browser.open(`${listed.origin}/`);
    const broken = await startCuttingProxy(cluster.url);
    t.after(() => broken.close());
    const text = `count ${randomUUID()}`;
    await ask(page, broken.url, text);
    await page.until(`/COMPLETED/.test(document.querySelector('#state').textContent)`, ANSWER_MS_MAX);
    const sent = page.requests.filter(({ body }) => body.includes('"SendStreamingMessage"'));
    assert.equal(sent.length, 2, 'the answer to the first one was cut before its first frame');
    assert.equal(sent[0]!.body, sent[1]!.body);
    const { contextId } = (JSON.parse(sent[0]!.body) as { params: { message: { contextId: string } } }).params.message;
    const { tasks } = await createClient({ url: cluster.url }).list({ contextId });
    assert.equal(tasks.length, 1);
    assert.equal(remote.requests.filter(request => request.text.includes(text)).length, 1);
    const { artifacts } = await foldOf(cluster.url, tasks[0]!.id);
    assert.deepEqual(
      await page.evaluate<[string, string][]>(`[...document.querySelectorAll('#answer pre')].map(e => [e.id, e.textContent])`),
      [...artifacts.values()].map(({ artifactId, text }) => [artifactId, text]),
    );
  },
);

test(
  'the bundled client under a strict policy resumes an interrupted stream, with each event once [S3-31]',
  options,
  async () => {
    cut = Promise.withResolvers();
    const page = await browser.open(`${listed.origin}/client`);
    await page.evaluate(`
      globalThis.items = [];
      globalThis.running = (async () => {
        for await (const item of createClient({ url: '${cluster.url}' }).stream('be cut')) items.push(item);
      })();
      undefined`);
    await page.until(`items.filter(({ event }) => event?.artifactUpdate).length > ${BEFORE_CUT}`, ANSWER_MS_MAX);
    assert.equal(await page.evaluate(`items.some(({ event }) => /COMPLETED/.test(event?.statusUpdate?.status.state))`), false);
    await restartIngress();
    await page.evaluate('running');
    const items = await page.evaluate<StreamItem[]>('items');
    const taskId = await page.evaluate<string>('items[0].event.task.id');
    assert.deepEqual(items, await itemsOf(cluster.url, taskId));
    const { artifacts } = await foldOf(cluster.url, taskId);
    assert.equal(textNamed(artifacts, 'streaming_result'), ANSWER);
    assert.ok(page.requests.some(({ headers, body }) => 'last-event-id' in headers && /SubscribeToTask/.test(body)));
    assert.deepEqual(
      page.faults.filter(fault => /eval|Content Security Policy|CORS/i.test(fault)),
      [],
    );
  },
);

test('a page verifies the card with the key that the server publishes, and reads its ETag [S4-5]', options, async () => {
  const page = await browser.open(`${listed.origin}/client`);
  const { agent, signature, forged, etag, tag } = await page.evaluate<Record<string, string>>(`(async () => {
      const published = await fetch('${cluster.url}/.well-known/jwks.json');
      const { keys } = await published.json();
      const keyOf = async kid => keys.find(key => key.kid === kid);
      const card = await createClient({ url: '${cluster.url}' }).card({ keyOf });
      const known = { headers: { 'if-none-match': published.headers.get('etag') }, cache: 'no-store' };
      const again = await fetch('${cluster.url}/.well-known/jwks.json', known);
      const forging = async (...asked) => new Response((await (await fetch(...asked)).text()).replace('Hopline', 'Hopl1ne'));
      const forged = createClient({ url: '${cluster.url}', fetch: forging }).card({ keyOf });
      const result = { forged: await forged.catch(({ code }) => code), etag: again.status, tag: published.headers.get('etag') };
      return { agent: card.agent.name, signature: card.signature.whole, ...result };
    })()`);
  assert.deepEqual([agent, signature, forged, etag], ['Hopline', true, 'INVALID_AGENT_RESPONSE', 304]);
  assert.match(tag!, /^"[0-9a-f]{32}"$/);
});

test("a page calls a sub-agent at the agent's own endpoint [S0-46]", options, async () => {
  const page = await browser.open(`${listed.origin}/`);
  await ask(page, cluster.agents[0]!.url, 'count');
  await page.until(`/COMPLETED/.test(document.querySelector('#state').textContent)`, ANSWER_MS_MAX);
  const shown = await page.evaluate<string>(`document.querySelector('#answer').textContent`);
  assert.ok(shown.includes(ANSWER));
});

test('a page of an unlisted origin is rejected at its preflight, and starts no task', options, async () => {
  const asked = remote.requests.length;
  const page = await browser.open(`${other.origin}/`);
  const result = `fetch('${cluster.url}/.well-known/agent-card.json').then(() => 'read', error => error.name)`;
  assert.equal(await page.evaluate(result), 'TypeError');
  await ask(page, cluster.url, 'count');
  await page.until(`document.querySelector('#state').textContent.startsWith('unreachable')`, ANSWER_MS_MAX);
  assert.equal(await page.evaluate(`document.querySelector('#answer').textContent`), '');
  assert.ok(page.faults.some(fault => fault.includes('CORS')));
  assert.equal(remote.requests.length, asked);
});

test('a page without a key gets an error that asks for one; with a key in a header it is served [S4-4]', options, async t => {
  const env = {
    NATS_URL: cluster.nats.url,
    HOPLINE_CORS_ORIGINS: listed.origin,
    HOPLINE_AUTH_API_KEYS_FILE: join(folder, 'keys.json'),
  };
  const asking = new ServiceProcess({ service: 'ingress', instance: 'ingress-asking', env }, await freePort());
  t.after(() => asking.kill());
  await asking.start();
  const page = await browser.open(`${listed.origin}/client`);
  const listedBy = (headers: object) =>
    page.evaluate(
      `createClient({ url: '${asking.url}', headers: ${JSON.stringify(headers)} }).list().then(({ tasks }) => tasks.length, ({ code }) => code)`,
    );
  assert.equal(await listedBy({}), 'UNAUTHENTICATED');
  assert.equal(await listedBy({ 'x-api-key': API_KEY }), 0);
  const challenge = `fetch('${asking.url}/tasks', { headers: { 'a2a-version': '1.0' } }).then(({ headers }) => headers.get('www-authenticate'))`;
  assert.match(await page.evaluate<string>(challenge), /^ApiKey /);
});

/** Passes everything on to `url`, but cuts the first stream when its first frame arrives, before the client gets it. */
async function startCuttingProxy(url: string): Promise<{ url: string; close(): void }> {
  let isCut = false;
  const server = createServer((request, response) => {
    const { method, headers } = request;
    const upstream = requestHttp(url, { method, headers, path: request.url, agent: false }, answer => {
      response.writeHead(answer.statusCode!, answer.headers);
      response.flushHeaders();
      if (isCut || !answer.headers['content-type']?.startsWith('text/event-stream')) return answer.pipe(response);
      isCut = true;
      answer.once('data', () => response.destroy());
    });
    response.once('close', () => upstream.destroy());
    upstream.on('error', () => response.destroy());
    request.pipe(upstream);
  });
  const origin = await listen(server);
  const close = () => {
    server.closeAllConnections();
    server.close();
  };
  return { url: origin, close };
}

/** The client package, bundled as an application does. */
async function bundledClient(): Promise<Uint8Array> {
  const { outputFiles } = await build({
    stdin: {
      contents: `import { createClient } from '@hopline/client'; Object.assign(globalThis, { createClient });`,
      resolveDir: fileURLToPath(new URL('../..', import.meta.url)),
    },
    bundle: true,
    format: 'esm',
    platform: 'browser',
    write: false,
  });
  return outputFiles[0]!.contents;
}

/** All events of a task in the log. */
async function itemsOf(url: string, taskId: string): Promise<StreamItem[]> {
  const items = await collect(createClient({ url }).subscribe(taskId, { cursor: BEGINNING }));
  return items;
}

async function foldOf(url: string, taskId: string): Promise<Fold> {
  const fold = new Fold();
  for (const item of await itemsOf(url, taskId)) {
    assert.ok('event' in item, 'a gap');
    fold.add(item.event);
  }
  assert.deepEqual(fold.violations, []);
  return fold;
}

function textNamed(artifacts: Fold['artifacts'], name: string): string {
  return [...artifacts.values()]
    .filter(one => one.name === name)
    .map(({ text }) => text)
    .join('');
}

/** Events of the task that a page resumed. */
async function taskIdOf({ requests }: Page): Promise<string> {
  const { body } = requests.find(one => one.body.includes('SubscribeToTask'))!;
  return (JSON.parse(body) as { params: { id: string } }).params.id;
}

test('the page of hopline trace --html shows every row of a real task, and makes no request [S2-41]', options, async () => {
  cut = Promise.withResolvers();
  cut.resolve();
  const items = await collect(createClient({ url: cluster.url }).stream('count'));
  const [first] = items;
  assert.ok(first !== undefined && 'event' in first && 'task' in first.event);
  const file = join(folder, 'trace.html');
  const finished = await new HoplineCommand(cluster.url, ['trace', first.event.task.id, '--html', file]).finished;
  assert.deepEqual([finished.code, finished.out], [0, '']);
  listed.documents.set('/trace', { type: 'text/html', body: await readFile(file) });
  const page = await browser.open(`${listed.origin}/trace`);
  const rows = await page.evaluate<string[]>(
    `[...document.querySelectorAll('.waterfall tbody tr')].map(e => e.cells[1].textContent)`,
  );
  for (const row of ['accept', 'plan counter', 'agent counter', 'text counter'])
    assert.ok(rows.includes(row), `${row} in ${rows}`);
  // Bars are drawn with the sheet that the policy allows, and both schemes differ.
  const bar = `getComputedStyle(document.querySelector('.waterfall rect')).fill`;
  const back = `getComputedStyle(document.body).backgroundColor`;
  const light = await page.evaluate<string[]>(`[${bar}, ${back}]`);
  await page.setScheme('dark');
  const dark = await page.evaluate<string[]>(`[${bar}, ${back}]`);
  assert.ok(light[0] !== 'rgb(0, 0, 0)' && light[0] !== dark[0] && light[1] !== dark[1], `${light} ${dark}`);
  assert.equal(await page.evaluate(`document.documentElement.scrollWidth <= innerWidth`), true);
  assert.deepEqual(page.faults, []);
  assert.deepEqual(
    page.requests.map(({ url }) => new URL(url).pathname).filter(path => path !== '/favicon.ico'),
    ['/trace'],
  );
});
