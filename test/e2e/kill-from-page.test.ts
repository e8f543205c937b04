import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { decodeSse, Fold, type StreamResponse } from '@hopline/a2a';
import { BEGINNING, createClient } from '@hopline/client';
import { until } from '../kit/until.ts';
import { HoplineCommand } from '../support/cluster/hopline-command.ts';
import { spawnLauncher } from '../support/cluster/launcher-process.ts';
import { Chromium, chromiumPath, NO_CHROMIUM, type Page } from './browser/chromium.ts';

/** The words that the guide of the demo has recorded for this question. */
const QUESTION = 'explain hopline';
/** A restarting ingress refuses connections for longer than the client's own patience on a slow machine. */
const PATIENT = { triesMax: 100, unreachedTriesMax: 100 };
const JSON_TYPE = { 'content-type': 'application/json', 'a2a-version': '1.0' };

let folder: string;
let launcher: ReturnType<typeof spawnLauncher>;
/** The addresses of the page and of ingress. */
let page: string;
let url: string;
let token: string;
/** The task of the last answer. */
let lastTask: string;

before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'hopline-kill-'));
  launcher = spawnLauncher(folder, ['--no-demo']);
  let output = '';
  for await (const text of launcher.stdout.setEncoding('utf8').iterator({ destroyOnReturn: false })) {
    output += text;
    if (/agent guide ✓.*Ctrl-C drains/s.test(output)) break;
  }
  launcher.stdout.resume();
  const [, opened, ingress] = /^Open (\S+)\/\nHopline is up: (\S+) /m.exec(output) ?? assert.fail(output);
  [page, url] = [opened!, ingress!];
  ({ killToken: token } = (await (await fetch(`${page}/console.json`)).json()) as { killToken: string });
});

after(async () => {
  if (launcher !== undefined) {
    launcher.kill('SIGTERM');
    if (launcher.exitCode === null) await once(launcher, 'exit');
  }
  if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
});

type Process = { service: string; instance: string; pid: number | null; restarts: number };

async function processes(): Promise<Process[]> {
  const response = await fetch(`${page}/processes.json`, { headers: { 'x-hopline-launcher-token': token } });
  return ((await response.json()) as { processes: Process[] }).processes;
}

/** Asks as the page does. */
async function ask(): Promise<string> {
  const message = {
    messageId: crypto.randomUUID(),
    role: 'ROLE_USER',
    parts: [{ text: QUESTION }],
    metadata: { agent: 'guide' },
  };
  const body = JSON.stringify({ message, configuration: { returnImmediately: true } });
  const response = await fetch(`${page}/api/message:send`, { method: 'POST', headers: JSON_TYPE, body });
  assert.equal(response.status, 200, await response.clone().text());
  return ((await response.json()) as { task: { id: string } }).task.id;
}

/** The streamed answer, of a task in which nothing was killed if `kill` is undefined. */
async function answer(kill?: string): Promise<string> {
  const id = await ask();
  lastTask = id;
  const headers = { ...JSON_TYPE, 'last-event-id': BEGINNING, accept: 'text/event-stream' };
  const fold = new Fold();
  let killed: Promise<Response> | undefined;
  if (kill !== undefined) {
    // The stream of the page ends when its ingress dies. The page then continues like the client below.
    const { body } = await fetch(`${page}/api/tasks/${id}:subscribe`, { headers });
    for await (const { data } of decodeSse(body!)) {
      fold.add(JSON.parse(data) as StreamResponse);
      if ((fold.textOf('streaming_result') ?? '').length < 200) continue;
      const headersOfKill = { ...JSON_TYPE, 'x-hopline-launcher-token': token };
      killed = fetch(`${page}/processes/${kill}/kill`, { method: 'POST', headers: headersOfKill, body: '{}' });
      break;
    }
    assert.equal((await killed)?.status, 204);
    assert.notEqual(fold.task?.status.state, 'TASK_STATE_COMPLETED');
  }
  const whole = new Fold();
  for await (const item of createClient({ url, retry: PATIENT }).subscribe(id, { cursor: BEGINNING })) {
    assert.ok('event' in item);
    whole.add(item.event);
  }
  assert.deepEqual(whole.violations, []);
  assert.equal(whole.task?.status.state, 'TASK_STATE_COMPLETED');
  return whole.textOf('streaming_result') ?? '';
}

test('the page of `npm start` asks, kills each kind of process in mid-answer, and the answer is whole', {
  timeout: 300_000,
}, async () => {
  const expected = await answer();
  assert.ok(expected.length > 1_000);
  const before = await processes();
  for (const kill of ['relay-1', 'ingress-1', 'supervisor-1', 'nats-1']) {
    assert.equal(await answer(kill), expected, kill);
    await restarted(before, kill);
  }
  // The agent answers again from the beginning, and clients see the text of only one run.
  assert.equal(await answer('sub-agent-guide'), expected);
  await restarted(before, 'sub-agent-guide');
});

/** Resolves once the process runs again, which may be after the end of the answer. */
async function restarted(before: readonly Process[], name: string): Promise<void> {
  const { pid, restarts } = before.find(({ instance }) => instance === name)!;
  await until(async () => {
    const again = (await processes()).find(({ instance }) => instance === name)!;
    return again.pid !== null && again.pid !== pid && again.restarts === restarts + 1;
  }, `the restart of ${name}`);
}

test('a process is not killed without the token of this start, and an unknown process name is refused', async () => {
  const before = await processes();
  const kill = (instance: string, given: string) =>
    fetch(`${page}/processes/${instance}/kill`, {
      method: 'POST',
      headers: { ...JSON_TYPE, 'x-hopline-launcher-token': given },
      body: '{}',
    });
  const wrong = await kill('relay-1', 'a token of another start');
  assert.equal(wrong.status, 400);
  assert.match(await wrong.text(), /belongs to an earlier start of the cluster/);
  assert.match(await (await kill('relay-9', token)).text(), /no process of this cluster is named relay-9/);
  assert.match(await (await kill('console-1', token)).text(), /the console does not kill itself/);
  assert.deepEqual(await processes(), before);
});

const path = chromiumPath();
const SHOWN_MS_MAX = 120_000;

test('a person asks in the page, presses "Kill the relay", and reads that nothing was lost', {
  timeout: 300_000,
  skip: path === undefined && NO_CHROMIUM,
}, async () => {
  const expected = await answer();
  await using browser = await Chromium.start(path!);
  const shown = await browser.open(`${page}/`);
  await shown.setSize(1440, 900);
  const card = `[...document.querySelectorAll('.agent-card')].find(e => e.textContent.startsWith('guide'))`;
  await shown.until(card, SHOWN_MS_MAX);
  await shown.evaluate(`${card}.querySelector('input').click()`);
  const example = `document.querySelector('.examples button')`;
  await shown.until(`${example}?.textContent === '${QUESTION}'`, SHOWN_MS_MAX);
  await shown.evaluate(`${example}.click()`);
  await shown.until(`!document.querySelector('.composer .button-primary').disabled`, SHOWN_MS_MAX);
  await shown.evaluate(`document.querySelector('.composer').requestSubmit()`);
  const text = `[...document.querySelectorAll('article.block-artifact')].filter(e => e.textContent.includes('streaming_result'))
    .map(e => [...e.querySelectorAll('.segment')].map(s => s.textContent).join('\\n')).join('')`;
  await shown.until(`document.querySelector('.button-kill')?.disabled === false`, SHOWN_MS_MAX);
  await shown.evaluate(`document.body.dispatchEvent(new KeyboardEvent('keydown', { key: 'm', bubbles: true }))`);
  await shown.until(`(${text}).length > 200`, SHOWN_MS_MAX);
  await shown.evaluate(`document.querySelector('.button-kill').click()`);
  const notes = `document.querySelector('.kill-notes')?.textContent ?? ''`;
  await shown.until(
    `/^kill -9 relay-1 \\(process \\d+\\) at .*Running again as process \\d+ after/.test(${notes})`,
    SHOWN_MS_MAX,
  );
  await shown.until(`(${notes}).endsWith('no character was lost.')`, SHOWN_MS_MAX);
  assert.equal((await shown.evaluate<string>(text)).trimEnd(), expected.trimEnd());
  await shown.until(`document.querySelector('.span-kill') && document.querySelector('.takeover')`, SHOWN_MS_MAX);
  assert.deepEqual(shown.faults, []);
});

/** Pictures of the documents, from this real run: `PICTURES=true` writes them. */
const PICTURES = fileURLToPath(new URL('../../docs/pictures/', import.meta.url));

async function takePictures(shown: Page, name: string): Promise<void> {
  // A picture has no scroll bar.
  await shown.evaluate(`document.documentElement.style.overflow = 'hidden'`);
  for (const scheme of ['light', 'dark'] as const) {
    await shown.setScheme(scheme);
    const file = join(PICTURES, `${name}-${scheme}.webp`);
    if (process.env.PICTURES !== undefined) writeFileSync(file, await shown.screenshot('webp'));
    assert.ok(existsSync(file), 'PICTURES=true npm test -- test/e2e/kill-from-page.test.ts');
  }
}

test('the trace of a task whose relay died, and a cluster at work, as the documents show them', {
  timeout: 300_000,
  skip: path === undefined && NO_CHROMIUM,
}, async () => {
  await answer('relay-1');
  const traced = join(folder, 'trace.html');
  assert.equal((await new HoplineCommand(url, ['trace', lastTask, '--html', traced]).finished).code, 0);
  await using browser = await Chromium.start(path!);
  const trace = await browser.open(`file://${traced}`);
  await trace.setSize(1_180, 760);
  assert.equal(await trace.evaluate(`document.querySelector('.takeover') !== null`), true);
  await takePictures(trace, 'trace');

  const top = () => new HoplineCommand(url, ['top'], '', { HOPLINE_HOME: join(folder, 'home') }).finished;
  const asked = [await ask(), await ask()];
  let printed = '';
  // The figures are rates, so an answer has to run for as long as one snapshot takes.
  await until(
    async () => {
      asked.push(await ask());
      ({ out: printed } = await top());
      return /[1-9]\d* working/.test(printed) && !/tokens 0\.0,/.test(printed);
    },
    () => printed,
  );
  for (const part of [/relay-1 +ready/, /guide +live/, /a second: requests/]) assert.match(printed, part);
  const terminal = join(folder, 'top.html');
  const text = printed.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
  const style = 'margin: 0; padding: 18px 22px; font: 14px/1.45 ui-monospace, "DejaVu Sans Mono", monospace';
  const head = '<!doctype html><meta charset="utf-8"><meta name="color-scheme" content="light dark"><title>top</title>';
  writeFileSync(terminal, `${head}<pre style='${style}'>$ hopline top\n${text}</pre>`);
  const shown = await browser.open(`file://${terminal}`);
  await shown.setSize(1_180, 400);
  const height = await shown.evaluate<number>('Math.ceil(document.querySelector("pre").getBoundingClientRect().height)');
  await shown.setSize(1_180, height);
  await takePictures(shown, 'top');
  await Promise.all(
    asked.map(id => until(async () => (await createClient({ url }).get(id)).status.state === 'TASK_STATE_COMPLETED', id)),
  );
});
