import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { Fold } from '@hopline/a2a';
import { BEGINNING, createClient } from '@hopline/client';
import { freePort } from '@hopline/local-cluster';
import { listen } from '../../kit/listen.ts';
import { userMessage } from '../../kit/user-message.ts';
import { type RemoteAgent, startRemoteAgent } from '../../support/agents/remote-agent.ts';
import { Cluster } from '../../support/cluster/cluster.ts';
import { HoplineCommand } from '../../support/cluster/hopline-command.ts';
import { ServiceProcess } from '../../support/cluster/service-process.ts';
import { Chromium, chromiumPath, NO_CHROMIUM, type Page } from './chromium.ts';

const TEST_MS_MAX = 300_000;
const SHOWN_MS_MAX = 120_000;
/** Markup, a script address, and characters that reorder text. */
const HOSTILE = '<img src=x onerror="document.title=1"><script>document.title=2</script> javascript:alert(1) gnp\u202e.exe';
const TOKENS = Array.from({ length: 120 }, (_, index) => `${index} 🎯 ${index % 40 === 0 ? HOSTILE : ''}\n`);
const KEY = 'key-of-ann-12345678';
/** Webhooks of this machine are allowed. */
const WEBHOOKS = { HOPLINE_PUSH: 'true', HOPLINE_WEBHOOK_ALLOW: '127.0.0.1', HOPLINE_WEBHOOK_HTTP: 'true' };
const HOOK_SECRET = 'secret-of-the-receiver';

const path = chromiumPath();
const options = {
  timeout: TEST_MS_MAX,
  skip: path === undefined && NO_CHROMIUM,
};

let folder: string;
let remote: RemoteAgent;
let cluster: Cluster;
let web: ServiceProcess;
let browser: Chromium;
/** Lets the agent of the newest task continue. */
let killed = Promise.withResolvers<void>();

before(async () => {
  if (path === undefined) return;
  folder = await mkdtemp(join(tmpdir(), 'console-'));
  remote = await startRemoteAgent({
    dialect: '0.3',
    script: async function* ({ text, turn, params }) {
      const { promise: wasKilled } = killed;
      if ((turn === 1 && text.includes('refund order')) || (turn === 2 && text.includes('Too much'))) {
        const approval = { callId: `call-${turn}`, tool: 'refund', arguments: { order: '17', note: HOSTILE } };
        const parts = [
          { kind: 'text', text: 'May I refund it?' },
          { kind: 'data', data: { approvalRequest: approval } },
        ];
        yield { status: 'input-required', parts };
        return;
      }
      if (turn > 1 && text.includes('Approved')) {
        const { parts } = (params as { message: { parts: { data?: unknown }[] } }).message;
        yield { token: `decision ${JSON.stringify(parts.find(({ data }) => data !== undefined)?.data)}` };
        yield { complete: true };
        return;
      }
      if (text.includes('briefly') || turn > 1) {
        yield { token: `answer ${turn}` };
        yield { complete: true };
        return;
      }
      if (text.includes('ask me')) {
        yield { token: 'before the question ' };
        yield { inputRequired: 'Which cluster?' };
        return;
      }
      for (const [index, token] of TOKENS.entries()) {
        if (index === TOKENS.length / 2 && text.includes('be killed')) await wasKilled;
        yield { token };
        yield { pause: 5 };
      }
      yield { complete: true };
    },
  });
  cluster = await Cluster.start({
    relays: 2,
    notifiers: 1,
    env: WEBHOOKS,
    agents: [{ name: 'counter', adapter: 'a2a', url: remote.url }],
  });
  web = new ServiceProcess(
    {
      service: 'console',
      instance: 'console-1',
      env: { HOPLINE_CONSOLE_INGRESS_URL: cluster.url, HOPLINE_CONSOLE_WRITES: 'true' },
    },
    await freePort(),
  );
  await web.start();
  browser = await Chromium.start(path);
});

after(async () => {
  await browser?.[Symbol.asyncDispose]();
  await web?.kill();
  await cluster?.[Symbol.asyncDispose]();
  await remote?.close();
  if (folder !== undefined) await rm(folder, { recursive: true });
});

async function ask(text: string): Promise<string> {
  const sent = await createClient({ url: cluster.url }).send(text, { blocking: false });
  assert.ok('task' in sent);
  return sent.task.id;
}

/** Saves a screenshot for people to look at, if SCREENSHOTS names a folder. */
async function save(page: Page, name: string): Promise<void> {
  const to = process.env.SCREENSHOTS;
  if (to !== undefined) await writeFile(join(to, `${name}.png`), await page.screenshot());
}

const isCompleted = `document.querySelector('.task-head .pill')?.textContent === 'completed'`;
const press = (key: string) => `dispatchEvent(new KeyboardEvent('keydown', { key: '${key}', bubbles: true }))`;
const onBody = (key: string) => `document.body.${press(key)}`;
/** The text of agents as it was written, not as Markdown. */
const showSource = onBody('m');
/** Text of the artifacts of the counter, in the source view. */
const shownText = `[...document.querySelectorAll('article.block-artifact')].filter(e => e.querySelector('.block-head').textContent.includes('streaming_result'))
  .map(e => [...e.querySelectorAll('.segment')].map(s => s.textContent).join('\\n')).join('')`;

test('a page that is open while the relay of its task is killed shows every event exactly once', options, async () => {
  killed = Promise.withResolvers();
  const id = await ask('be killed');
  const page = await browser.open(`${web.url}/tasks/${id}?view=frames`);
  await page.until(`document.querySelector('.task-head')`, SHOWN_MS_MAX);
  await page.evaluate(showSource);
  await page.until(`(${shownText}).split('\\n').length > 20`, SHOWN_MS_MAX);
  await save(page, 'task-live');
  // The test does not know which of the two relays owns the shard, so it replaces both, one after the other.
  for (const relay of cluster.relays) {
    await relay.kill('SIGKILL');
    await relay.start();
  }
  killed.resolve();
  await page.until(isCompleted, SHOWN_MS_MAX);
  const fold = new Fold();
  let events = 0;
  for await (const item of createClient({ url: cluster.url }).subscribe(id, { cursor: BEGINNING })) {
    assert.ok('event' in item);
    fold.add(item.event);
    events += 1;
  }
  assert.deepEqual(fold.violations, []);
  const shown = await page.evaluate<string>(shownText);
  const expected = fold.textOf('streaming_result');
  assert.equal(expected, TOKENS.join(''));
  assert.equal(shown.replace(/\n$/, ''), expected.replaceAll('\u202e', '⟪U+202E⟫').replace(/\n$/, ''));
  await page.until(`document.querySelector('.scrubber-count').textContent === '${events} / ${events}'`, SHOWN_MS_MAX);
  assert.deepEqual(page.faults, []);
});

test('an agent’s output is shown as text, whatever it contains', options, async () => {
  const id = await ask('count');
  const page = await browser.open(`${web.url}/tasks/${id}`);
  await page.until(isCompleted, SHOWN_MS_MAX);
  assert.equal(await page.evaluate(`document.querySelectorAll('.conversation :is(img, script, a, iframe)').length`), 0);
  assert.match(String(await page.evaluate('document.title')), /^count · Hopline$/);
  const shown = `document.querySelector('.conversation').textContent.includes('<img src=x onerror=')`;
  assert.ok(await page.evaluate<boolean>(`${shown} && document.querySelector('.markdown') !== null`));
  await page.evaluate(showSource);
  await page.until(`${shown} && document.querySelector('.conversation .markdown') === null`, SHOWN_MS_MAX);
  assert.equal(await page.evaluate(`document.querySelectorAll('.conversation :is(img, script, a, iframe)').length`), 0);
  const hosts = new Set(page.requests.map(({ url }) => new URL(url).origin));
  assert.deepEqual([...hosts], [web.url]);
  assert.deepEqual(page.faults, []);
});

test('keys move the playhead, and a link leads to the same event', options, async () => {
  const id = await ask('count');
  const page = await browser.open(`${web.url}/tasks/${id}`);
  await page.setSize(1440, 900);
  await page.until(isCompleted, SHOWN_MS_MAX);
  await page.until(`document.querySelector('.timeline')`, SHOWN_MS_MAX);
  await save(page, 'task-timeline');
  const position = `Number(document.querySelector('.scrubber-bar').getAttribute('aria-valuenow'))`;
  const length = await page.evaluate<number>(position);
  await page.evaluate(onBody('0'));
  await page.until(`${position} < ${length}`, SHOWN_MS_MAX);
  for (let step = 0; step < 5; step += 1) await page.evaluate(onBody('.'));
  await page.until(`${position} >= 6`, SHOWN_MS_MAX);
  const at = await page.evaluate<number>(position);
  await page.evaluate(onBody(','));
  await page.until(`${position} === ${at - 1}`, SHOWN_MS_MAX);
  // The address follows when the playhead rests.
  const named = `'cursor ' + new URLSearchParams(location.search).get('seq')`;
  await page.until(`document.querySelector('.scrubber-count').title === ${named}`, SHOWN_MS_MAX);
  const link = await page.evaluate<string>('location.href');
  assert.match(link, /\?seq=\d+\.\d+$/);
  await page.evaluate(onBody(' '));
  await page.until(`${position} === ${length}`, SHOWN_MS_MAX);
  for (const view of ['chunks', 'frames']) {
    await page.evaluate(`[...document.querySelectorAll('[role=tab]')].find(e => e.textContent === '${view}').click()`);
    await page.until(`document.querySelectorAll('.grid-row').length > 5`, SHOWN_MS_MAX);
    if (view === 'chunks') await page.until(`document.querySelector('.explanation .sentences')`, SHOWN_MS_MAX);
    else {
      const shown = await page.evaluate<string[]>(`[...document.querySelectorAll('.grid-frames .cut')].map(e => e.textContent)`);
      assert.ok(
        shown.some(text => text.startsWith('streaming_result "')) && !shown.some(text => text.startsWith('{')),
        shown.join('\n'),
      );
    }
    await save(page, `task-${view}`);
  }
  await page.evaluate(
    `[...document.querySelectorAll('.segments label')].find(e => e.textContent.includes('0.3')).querySelector('input').click()`,
  );
  await page.until(
    `document.querySelectorAll('.segments input')[1].checked && document.querySelectorAll('.grid-row').length > 5`,
    SHOWN_MS_MAX,
  );
  assert.ok(page.requests.some(({ url, headers }) => url.includes('/api/v1/') && headers['a2a-version'] === '0.3'));
  // This step is last, because a page behind another one gets no animation frames in which to play.
  const linked = await browser.open(link);
  await linked.until(`document.querySelector('.scrubber-bar')?.getAttribute('aria-valuenow') === '${at - 1}'`, SHOWN_MS_MAX);
  await linked.evaluate(showSource);
  await linked.until(`document.querySelector('.conversation .markdown') === null`, SHOWN_MS_MAX);
  assert.ok((await linked.evaluate<string>(shownText)).length < TOKENS.join('').length);
  assert.deepEqual([...page.faults, ...linked.faults], []);
});

test('new tasks wait behind a button, filters are in the address, and a question can be asked', options, async () => {
  await ask('count');
  const page = await browser.open(`${web.url}/`);
  await page.until(`document.querySelectorAll('.task-row').length > 0`, SHOWN_MS_MAX);
  const rows = await page.evaluate<number>(`document.querySelectorAll('.task-row').length`);
  await ask('count again');
  await page.until(`document.querySelector('.news')?.textContent === '1 new'`, SHOWN_MS_MAX);
  assert.equal(await page.evaluate(`document.querySelectorAll('.task-row').length`), rows);
  await save(page, 'tasks');
  await page.evaluate(`document.querySelector('.news').click()`);
  await page.until(`document.querySelectorAll('.task-row').length === ${rows + 1}`, SHOWN_MS_MAX);
  await page.evaluate(`document.querySelectorAll('.segments input')[5].click()`);
  await page.until(`document.querySelector('.empty') && location.search === '?state=failed'`, SHOWN_MS_MAX);
  const typed = `const field = document.querySelector('.composer textarea'); field.value = 'from the page'; field.dispatchEvent(new Event('input', { bubbles: true }));`;
  await page.evaluate(`{ ${typed} }`);
  await page.until(`!document.querySelector('.composer .button-primary').disabled`, SHOWN_MS_MAX);
  await page.evaluate(`document.querySelector('.composer').requestSubmit()`);
  await page.until(`location.pathname.startsWith('/tasks/')`, SHOWN_MS_MAX);
  await page.until(isCompleted, SHOWN_MS_MAX);
  assert.ok(await page.evaluate<boolean>(`document.querySelector('.block-user').textContent.includes('from the page')`));
  assert.deepEqual(page.faults, []);
});

test(
  'the list shows what its address names, after a link and in the history, and a typed text waits for its reader',
  options,
  async () => {
    await ask('briefly');
    const page = await browser.open(`${web.url}/`);
    const row = `document.querySelector('.task-row')`;
    const field = `document.querySelector('.composer textarea')`;
    await page.until(row, SHOWN_MS_MAX);
    await page.evaluate(`{ ${field}.value = 'half a question'; ${field}.dispatchEvent(new Event('input', { bubbles: true })); }`);
    await page.until(`!document.querySelector('.composer .button-primary').disabled`, SHOWN_MS_MAX);
    await page.evaluate(`${row}.click()`);
    await page.until(`document.querySelector('.task-head')`, SHOWN_MS_MAX);
    await page.evaluate('history.back()');
    await page.until(`${row} && ${field}.value === 'half a question'`, SHOWN_MS_MAX);
    const state = `[...document.querySelectorAll('.toolbar .segments input')].findIndex(e => e.checked)`;
    await page.evaluate(`document.querySelectorAll('.toolbar .segments input')[5].click()`);
    await page.until(`location.search === '?state=failed'`, SHOWN_MS_MAX);
    await page.evaluate(`document.querySelector('.bar nav a').click()`);
    await page.until(`location.search === '' && ${state} === 0 && ${row}`, SHOWN_MS_MAX);
    await page.evaluate('history.back()');
    await page.until(`location.search === '?state=failed' && ${state} === 5`, SHOWN_MS_MAX);
    assert.equal(await page.evaluate(`${field}.value`), 'half a question');
    assert.deepEqual(page.faults, []);
  },
);

/** More tasks than the page reads at once. */
const MANY_TASKS = 130;

test('a search continues reading until it has found the task, and shows how much it has searched', options, async () => {
  const old = await ask('briefly: where is the needle?');
  for (let left = MANY_TASKS; left > 0; left -= 10) await Promise.all(Array.from({ length: 10 }, () => ask('briefly')));
  const page = await browser.open(`${web.url}/?q=${encodeURIComponent('NEEDLE')}`);
  await page.setSize(1440, 900);
  await page.until(`document.querySelector('.task-row')?.getAttribute('href') === '/tasks/${old}'`, SHOWN_MS_MAX);
  const foot = `document.querySelector('.list-foot').textContent`;
  // The server searches, so the page receives only the tasks that match.
  await page.until(`${foot} === '1 found in all your tasks'`, SHOWN_MS_MAX);
  assert.ok(page.requests.some(({ url }) => url.includes('text=NEEDLE')));
  await save(page, 'tasks-found');
  const type = (text: string) =>
    page.evaluate(
      `{ const field = document.querySelector('.toolbar [type=search]'); field.value = '${text}'; field.dispatchEvent(new Event('input', { bubbles: true })); }`,
    );
  await type('no such text');
  await page.until(`document.querySelector('.empty')?.textContent.includes('0 found in all your tasks')`, SHOWN_MS_MAX);
  await save(page, 'tasks-none-found');
  // The server also searches for an agent and a duration.
  const choose = (label: string, value: string) =>
    page.evaluate(
      `{ const field = document.querySelector('select[aria-label="${label}"]'); field.value = '${value}'; field.dispatchEvent(new Event('change', { bubbles: true })); }`,
    );
  await type('NEEDLE');
  await choose('Agent', 'counter');
  await page.until(`${foot} === '1 found in all your tasks'`, SHOWN_MS_MAX);
  assert.ok(page.requests.some(({ url }) => url.includes('text=NEEDLE&agent=counter')));
  await choose('Duration', '10m');
  await page.until(`document.querySelector('.empty')?.textContent.includes('0 found in all your tasks')`, SHOWN_MS_MAX);
  assert.ok(page.requests.some(({ url }) => url.includes('agent=counter&minDurationMs=600000')));
  await choose('Agent', '');
  await choose('Duration', '');
  // A part of an id is compared by the page, which reads all tasks for it.
  await type(old.slice(0, 30));
  await page.until(`document.querySelector('.task-row')?.getAttribute('href') === '/tasks/${old}'`, SHOWN_MS_MAX);
  await page.until(`/^\\d+ found in \\d{3} tasks$/.test(${foot})`, SHOWN_MS_MAX);
  // Keys lead to the search and from task to task.
  await type('');
  await page.until(`document.querySelectorAll('.task-row').length > 3`, SHOWN_MS_MAX);
  await page.evaluate(
    `{ document.querySelector('.brand').focus(); ${onBody('j')}; ${onBody('j')}; ${onBody('k')}; ${onBody('j')} }`,
  );
  assert.equal(await page.evaluate(`document.activeElement === document.querySelectorAll('.task-row')[1]`), true);
  await page.evaluate(onBody('/'));
  assert.equal(await page.evaluate(`document.activeElement === document.querySelector('.toolbar [type=search]')`), true);
  // Filters get a name, which a later visit of this browser still has.
  await type('NEEDLE');
  await page.until(`${foot} === '1 found in all your tasks'`, SHOWN_MS_MAX);
  await page.evaluate(
    `{ const form = document.querySelector('.view-form'); form.elements.namedItem('name').value = 'needles'; form.requestSubmit(); }`,
  );
  const view = (name: string) => `[...document.querySelectorAll('.view .menu-item')].find(e => e.textContent === '${name}')`;
  await page.until(view('needles'), SHOWN_MS_MAX);
  await page.evaluate(`(${view('All tasks')}).click()`);
  await page.until(`location.search === '' && document.querySelectorAll('.task-row').length > 3`, SHOWN_MS_MAX);
  await page.evaluate('location.reload()');
  await page.until(
    `location.search === '' && document.querySelectorAll('.task-row').length > 3 && ${view('needles')}`,
    SHOWN_MS_MAX,
  );
  await page.evaluate(`(${view('needles')}).click()`);
  await page.until(`location.search === '?q=NEEDLE' && ${foot} === '1 found in all your tasks'`, SHOWN_MS_MAX);
  await page.evaluate(`document.querySelector('[aria-label="Remove the view needles"]').click()`);
  await page.until(`!${view('needles')}`, SHOWN_MS_MAX);
  assert.deepEqual(page.faults, []);
});

test('the actions of a task follow its newest state, and a later turn has its own lane', options, async () => {
  const id = await ask('ask me');
  const page = await browser.open(`${web.url}/tasks/${id}`);
  await page.setSize(1440, 900);
  const pill = `document.querySelector('.task-head .pill')?.textContent`;
  const form = `document.querySelector('.composer')`;
  const button = `document.querySelector('.composer .button-primary')?.textContent`;
  const cancel = `document.querySelector('.button-danger')`;
  await page.until(`${pill} === 'input-required' && ${button} === 'Answer' && ${cancel}`, SHOWN_MS_MAX);
  // Both actions remain while an earlier moment is shown.
  await page.evaluate(onBody('0'));
  await page.until(`document.querySelector('.task-head').textContent.includes('at the playhead')`, SHOWN_MS_MAX);
  assert.ok(await page.evaluate<boolean>(`Boolean(${form} && ${cancel})`));
  const typed = `const field = document.querySelector('.composer textarea'); field.value = 'staging'; field.dispatchEvent(new Event('input', { bubbles: true }));`;
  await page.evaluate(`{ ${typed} }`);
  await page.until(`!document.querySelector('.composer .button-primary').disabled`, SHOWN_MS_MAX);
  await page.evaluate(`document.querySelector('.composer').requestSubmit()`);
  await page.until(isCompleted, SHOWN_MS_MAX);
  await page.until(`document.querySelector('.facts-list').textContent.includes('nothing lost')`, SHOWN_MS_MAX);
  // The page shows the moment of the question, but the task has ended: it can be neither answered nor canceled.
  await page.evaluate(onBody('l'));
  for (let step = 0; step < 20; step += 1) {
    await page.evaluate(onBody('['));
    if (await page.evaluate(`document.querySelector('.task-head').textContent.includes('at the playhead: input-required')`))
      break;
  }
  assert.match(
    await page.evaluate(`document.querySelector('.task-head-title').textContent`),
    /completedat the playhead: input-required$/,
  );
  assert.equal(await page.evaluate(`${cancel} === null && ${button}`), 'Send');
  await page.until(`document.querySelector('.timeline')?.textContent.includes('turn 2')`, SHOWN_MS_MAX);
  await save(page, 'task-question-ended');
  assert.deepEqual(page.faults, []);
});

test('a call that waits for an approval is shown with its arguments, refused with a reason, and approved', options, async () => {
  const id = await ask('refund order 17');
  const page = await browser.open(`${web.url}/tasks/${id}`);
  await page.setSize(1440, 900);
  const values = `document.querySelector('.approval-arguments')?.textContent`;
  await page.until(values, SHOWN_MS_MAX);
  // Markup is text, and characters that reorder text are shown by their codes.
  const shown = JSON.stringify({ order: '17', note: HOSTILE }, null, 2).replace('\u202e', '⟪U+202E⟫');
  assert.equal(await page.evaluate(values), shown);
  assert.equal(await page.evaluate(`document.querySelector('.approval-head').textContent`), 'Run refund with these arguments?');
  assert.equal(await page.evaluate(`document.querySelector('.composer textarea')`), null);
  await save(page, 'task-approval');
  // Enter in the field of the reason refuses, and the agent asks again.
  await page.evaluate(`{
    const field = document.querySelector('.approval-reason');
    field.value = 'Too much';
    field.dispatchEvent(new Event('input', { bubbles: true }));
  }`);
  await page.evaluate(`document.querySelector('.approval').requestSubmit()`);
  const users = `[...document.querySelectorAll('.block-user .text')].map(e => e.textContent).join(' | ')`;
  await page.until(
    `${users} === 'refund order 17 | Too much' && ${values} && !document.querySelector('.approval button').disabled`,
    SHOWN_MS_MAX,
  );
  assert.equal(await page.evaluate(`document.querySelector('.approval-reason').value`), '');
  await page.evaluate(`document.querySelector('.approval .button-primary').click()`);
  await page.until(isCompleted, SHOWN_MS_MAX);
  assert.equal(await page.evaluate(users), 'refund order 17 | Too much | Approved');
  await page.evaluate(showSource);
  await page.until(`(${shownText}) === 'decision {"approvalResponse":{"callId":"call-2","approved":true}}'`, SHOWN_MS_MAX);
  assert.equal(await page.evaluate(`document.querySelector('.approval')`), null);
  assert.deepEqual(page.faults, []);
});

test('an ended conversation continues, forks at the playhead, and runs again with a chosen agent', options, async () => {
  const page = await browser.open(`${web.url}/`);
  await page.setSize(1440, 900);
  const type = (text: string) => `{ const field = document.querySelector('.composer textarea'); field.value = '${text}';
    field.dispatchEvent(new Event('input', { bubbles: true })); }`;
  const isReady = `document.querySelector('.composer .button-primary')?.disabled === false`;
  const submit = `document.querySelector('.composer').requestSubmit()`;
  const at = 'location.pathname.slice(7)';
  const title = `document.querySelector('.task-head h1')?.textContent`;
  await page.until(`document.querySelectorAll('.agent-card').length === 2`, SHOWN_MS_MAX);
  await page.evaluate(`document.querySelectorAll('.agent-card input')[1].click()`);
  await page.until(`document.querySelector('.skills a')`, SHOWN_MS_MAX);
  await page.evaluate(`document.querySelector('.skills a').click()`);
  await page.until(`location.pathname.startsWith('/agents/') && document.querySelector('.fields')`, SHOWN_MS_MAX);
  await page.evaluate('history.back()');
  await page.until(`document.querySelectorAll('.agent-card').length === 2`, SHOWN_MS_MAX);
  await page.evaluate(`document.querySelectorAll('.agent-card input')[1].click()`);
  await page.evaluate(type('briefly: first'));
  await page.until(isReady, SHOWN_MS_MAX);
  await save(page, 'ask');
  await page.evaluate(submit);
  await page.until(`${isCompleted} && ${title} === 'briefly: first'`, SHOWN_MS_MAX);
  const first = await page.evaluate<string>(at);

  await page.evaluate(type('briefly: second'));
  await page.until(isReady, SHOWN_MS_MAX);
  await page.evaluate(submit);
  await page.until(`${isCompleted} && ${title} === 'briefly: second'`, SHOWN_MS_MAX);
  await page.until(`document.querySelectorAll('.thread a').length === 2`, SHOWN_MS_MAX);
  const second = await page.evaluate<string>(at);
  await save(page, 'task-continued');

  // Back at the first event, the same field can begin another branch.
  await page.until(`document.querySelector('.scrubber-count').textContent !== '1 / 1'`, SHOWN_MS_MAX);
  await page.evaluate(onBody('0'));
  await page.until(`document.querySelector('.composer-fork input')`, SHOWN_MS_MAX);
  await page.evaluate(`document.querySelector('.composer-fork input').click()`);
  await page.until(`document.querySelector('.composer .button-primary').textContent === 'Fork'`, SHOWN_MS_MAX);
  await page.evaluate(type('briefly: otherwise'));
  await page.until(isReady, SHOWN_MS_MAX);
  await save(page, 'task-fork');
  await page.evaluate(submit);
  await page.until(`${isCompleted} && ${title} === 'briefly: otherwise'`, SHOWN_MS_MAX);
  const forked = await page.evaluate<string>(at);

  const choices = `[...document.querySelectorAll('.menu')].find(e => e.textContent.startsWith('Run again')).querySelectorAll('.menu-item')`;
  await page.until(`(${choices}).length === 2`, SHOWN_MS_MAX);
  await page.evaluate(`(${choices})[1].click()`);
  await page.until(`${at} !== '${forked}' && ${isCompleted} && ${title} === 'briefly: otherwise'`, SHOWN_MS_MAX);
  const again = await page.evaluate<string>(at);

  const client = createClient({ url: cluster.url });
  const [one, two, three, four] = await Promise.all([first, second, forked, again].map(id => client.get(id)));
  assert.equal(two!.contextId, one!.contextId);
  assert.equal(one!.history?.[0]?.metadata?.agent, 'counter');
  assert.notEqual(three!.contextId, one!.contextId);
  assert.deepEqual(three!.history?.[0]?.referenceTaskIds, [second]);
  assert.deepEqual([four!.history?.[0]?.referenceTaskIds, four!.history?.[0]?.metadata?.agent], [[forked], 'counter']);
  assert.deepEqual(page.faults, []);
});

test('the page of a task that does not exist offers no actions', options, async () => {
  const page = await browser.open(`${web.url}/tasks/01a201b8-74dc-707d-aaa5-afac77abea8c`);
  await page.until(`document.querySelector('.empty')?.textContent.startsWith('Task not found')`, SHOWN_MS_MAX);
  assert.equal(await page.evaluate(`document.querySelectorAll('.scrubber, .task-head, .tabs, main button').length`), 0);
  await save(page, 'task-not-found');
});

test('two tasks are shown side by side, and their differences are marked, as text', options, async () => {
  const [a, b] = [await ask('count'), await ask('count, but otherwise')];
  const page = await browser.open(`${web.url}/tasks/${a}`);
  await page.setSize(1440, 900);
  await page.until(isCompleted, SHOWN_MS_MAX);
  await page.evaluate(`[...document.querySelectorAll('.task-head a')].find(e => e.textContent === 'Compare').click()`);
  await page.until(`location.pathname === '/compare/${a}'`, SHOWN_MS_MAX);
  // Found by its words, and shown by its question.
  const typed = `const field = document.querySelectorAll('.compare-form input')[1]; field.focus(); field.value = 'otherwise'; field.dispatchEvent(new Event('input', { bubbles: true }));`;
  await page.evaluate(`{ ${typed} }`);
  const offered = `[...document.querySelectorAll('[role=option]')].find(e => e.textContent.startsWith('count, but otherwise'))`;
  await page.until(offered, SHOWN_MS_MAX);
  await page.evaluate(`(${offered}).click()`);
  await page.until(`!document.querySelector('.compare-form button').disabled`, SHOWN_MS_MAX);
  await page.evaluate(`document.querySelector('.compare-form').requestSubmit()`);
  await page.until(`location.pathname === '/compare/${a}/${b}' && document.querySelector('.compare-verdict')`, SHOWN_MS_MAX);
  assert.match(await page.evaluate(`document.querySelector('.compare-verdict').textContent`), /^1 part differs/);
  const marks = await page.evaluate(`[...document.querySelectorAll('.compare-part mark')].map(e => e.textContent)`);
  assert.deepEqual(marks, ['', ', but otherwise']);
  // Both tasks are on one axis of time.
  await page.until(
    `document.querySelectorAll('.times .times-a').length > 3 && document.querySelector('.times .times-b')`,
    SHOWN_MS_MAX,
  );
  await save(page, 'compare');
  const rows = await page.evaluate<string[][]>(
    `[...document.querySelectorAll('.compare table tbody tr')].map(e => [...e.children].map(cell => cell.textContent))`,
  );
  const tokens = rows.find(([name]) => name === 'tokens');
  assert.deepEqual(tokens?.slice(1), [tokens?.[1], tokens?.[1], 'same']);
  // The answers are the same, and are shown on request.
  const answer = `[...document.querySelectorAll('details.compare-part')].find(e => e.textContent.includes('streaming result'))`;
  await page.evaluate(`{ (${answer}).open = true }`);
  await page.until(`(${answer}).querySelector('.segment')`, SHOWN_MS_MAX);
  const shown = `[...(${answer}).querySelectorAll('.segment')].map(e => e.textContent).join('\\n')`;
  assert.ok((await page.evaluate<string>(shown)).includes('<img src=x onerror='));
  assert.equal(await page.evaluate(`document.querySelectorAll('.compare-result :is(img, script, iframe)').length`), 0);
  const unknown = await browser.open(`${web.url}/compare/${a}/unknown`);
  await unknown.until(`document.querySelector('.notice-error')?.textContent.startsWith('unknown: ')`, SHOWN_MS_MAX);
  assert.deepEqual(page.faults, []);
});

/** Drops a file onto the page. */
const drop = (name: string, text: string) => `{
  const data = new DataTransfer();
  data.items.add(new File([${JSON.stringify(text)}], '${name}'));
  document.body.dispatchEvent(new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true }));
}`;

test('a task file is shown without a request, both dropped onto the console and as a page of its own', options, async () => {
  const id = await ask('count');
  const live = await browser.open(`${web.url}/tasks/${id}`);
  await live.until(isCompleted, SHOWN_MS_MAX);
  await live.until(`document.querySelector('.timeline')`, SHOWN_MS_MAX);
  await live.evaluate(showSource);
  await live.until(`document.querySelector('.conversation .markdown') === null`, SHOWN_MS_MAX);
  const count = `document.querySelector('.scrubber-count').textContent`;
  const [text, events] = [await live.evaluate<string>(shownText), await live.evaluate<string>(count)];
  const exported = await (await fetch(`${cluster.url}/tasks/${id}/export`)).text();

  const dropped = await browser.open(`${web.url}/`);
  await dropped.setSize(1440, 900);
  await dropped.until(`document.querySelector('.task-row')`, SHOWN_MS_MAX);
  for (const [name, bad, sentence] of [
    ['notes.txt', 'hello\n', 'notes.txt: not a task file: its first line must be a header of the format hopline.task'],
    ['edited.jsonl', exported.replace('7 🎯', '8 🎯'), 'edited.jsonl: line '],
  ] as const) {
    await dropped.evaluate(drop(name, bad));
    await dropped.until(`document.querySelector('.notice-error')?.textContent.startsWith('${sentence}')`, SHOWN_MS_MAX);
  }
  await save(dropped, 'file-refused');
  await dropped.evaluate(drop('count.hopline.jsonl', exported));
  await dropped.until(`location.hash === '#/tasks/${id}' && ${isCompleted}`, SHOWN_MS_MAX);

  const [file, html] = [join(folder, 'count.hopline.jsonl'), join(folder, 'count.html')];
  await writeFile(file, exported);
  const { code, err } = await new HoplineCommand(cluster.url, ['view', file, '--output', html]).finished;
  assert.equal(code, 0, err);
  const alone = await browser.open(`file://${html}`);
  await alone.setSize(1440, 900);
  await alone.until(isCompleted, SHOWN_MS_MAX);

  for (const page of [dropped, alone]) {
    await page.until(`${count} === '${events}' && document.querySelector('.timeline')`, SHOWN_MS_MAX);
    const asked = page.requests.length;
    await page.evaluate(showSource);
    await page.until(`document.querySelector('.conversation .markdown') === null`, SHOWN_MS_MAX);
    assert.equal(await page.evaluate(shownText), text);
    assert.ok(await page.evaluate(`document.querySelector('.facts-list').textContent.includes('nothing lost')`));
    // The playhead moves, and the address names its event.
    await page.evaluate(onBody('0'));
    await page.until(`document.querySelector('.scrubber-bar').getAttribute('aria-valuenow') === '1'`, SHOWN_MS_MAX);
    await page.until(`/^#\\/tasks\\/[^?]+\\?seq=1\\.\\d+$/.test(location.hash)`, SHOWN_MS_MAX);
    await page.evaluate(`[...document.querySelectorAll('[role=tab]')].find(e => e.textContent === 'chunks').click()`);
    await page.until(`document.querySelector('.explanation')?.textContent.includes('task')`, SHOWN_MS_MAX);
    const tabs = await page.evaluate(`[...document.querySelectorAll('[role=tab]')].map(e => e.textContent)`);
    assert.deepEqual(tabs, ['conversation', 'timeline', 'chunks', 'frames']);
    await save(page, page === alone ? 'file-page' : 'file-dropped');
    await page.evaluate(`document.querySelector('.brand').click()`);
    await page.until(`document.querySelectorAll('.task-row').length === 1 && location.hash === '#/'`, SHOWN_MS_MAX);
    await page.evaluate(`document.querySelector('.task-row').click()`);
    await page.until(`location.hash === '#/tasks/${id}'`, SHOWN_MS_MAX);
    assert.deepEqual(page.requests.slice(asked), []);
    assert.deepEqual(page.faults, []);
  }
  assert.deepEqual(
    alone.requests.filter(({ url }) => !url.startsWith('data:')).map(({ url }) => url),
    [`file://${html}`],
  );
  // The console shows its own tasks again.
  await dropped.evaluate(`[...document.querySelectorAll('.bar button')].find(e => e.textContent === 'Close').click()`);
  await dropped.until(
    `location.pathname === '/' && location.hash === '' && document.querySelectorAll('.task-row').length > 1`,
    SHOWN_MS_MAX,
  );
});

test('the webhooks of a task are listed with their deliveries, without their secrets', options, async t => {
  const received: string[] = [];
  const receiver = createServer((request, response) => {
    received.push(String(request.headers['x-a2a-notification-token']));
    request.resume();
    response.end();
  });
  await listen(receiver);
  t.after(() => {
    receiver.closeAllConnections();
    receiver.close();
  });
  const { port } = receiver.address() as AddressInfo;
  const webhook = { url: `http://127.0.0.1:${port}/hook?key=${HOOK_SECRET}`, token: HOOK_SECRET };
  const message = userMessage('count');
  const sent = await fetch(`${cluster.url}/message:send`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'a2a-version': '1.0' },
    body: JSON.stringify({ message, configuration: { returnImmediately: true, taskPushNotificationConfig: webhook } }),
  });
  const { task } = (await sent.json()) as { task: { id: string } };
  const page = await browser.open(`${web.url}/tasks/${task.id}?view=webhooks`);
  await page.until(`document.querySelector('.webhooks')?.textContent.includes('delivered')`, SHOWN_MS_MAX);
  const [events] = await page.evaluate<string[]>(`[...document.querySelectorAll('.webhooks td.number')].map(e => e.textContent)`);
  const [, got, of] = /^(\d+) \/ (\d+)$/.exec(events!)!;
  assert.equal(got, of);
  assert.ok(received.length > 0 && received.every(token => token === HOOK_SECRET));
  await save(page, 'task-webhooks');
  assert.ok(!(await page.evaluate<string>('document.documentElement.outerHTML')).includes(HOOK_SECRET));
  assert.deepEqual(page.faults, []);
});

test('both color schemes and a narrow screen show every page without a horizontal scroll', options, async () => {
  const id = await ask('count');
  const page = await browser.open(`${web.url}/cluster`);
  await page.until(`document.querySelector('.table-card')`, SHOWN_MS_MAX);
  await save(page, 'cluster');
  const other = await ask('count once more');
  for (const [name, to, shown] of [
    ['tasks', '/', '.task-row'],
    ['task', `/tasks/${id}`, '.timeline'],
    ['chunks', `/tasks/${id}?view=chunks`, '.grid-row'],
    ['frames', `/tasks/${id}?view=frames`, '.grid-row'],
    ['webhooks', `/tasks/${id}?view=webhooks`, '.task-detail > p'],
    ['compare', `/compare/${id}/${other}`, '.table-card'],
    ['cluster', '/cluster', '.table-card'],
  ] as const) {
    const narrow = await browser.open(web.url + to);
    await narrow.setSize(390, 844);
    await narrow.setScheme('dark');
    await narrow.until(`document.querySelector('${shown}')`, SHOWN_MS_MAX);
    assert.equal(await narrow.evaluate(`document.documentElement.scrollWidth <= innerWidth`), true, to);
    const back = `getComputedStyle(document.documentElement).backgroundColor`;
    const dark = await narrow.evaluate<string>(back);
    await save(narrow, `narrow-${name}`);
    await narrow.setScheme('light');
    assert.notEqual(await narrow.evaluate<string>(back), dark);
    await narrow.setSize(1440, 900);
    await save(narrow, `light-${name}`);
    await narrow.setScheme('dark');
    await save(narrow, `dark-${name}`);
    assert.deepEqual(narrow.faults, []);
  }
});

test('while an ingress is down every page shows one sentence, which disappears when it answers again', options, async t => {
  const env = { NATS_URL: cluster.nats.url };
  const behind = new ServiceProcess({ service: 'ingress', instance: 'ingress-behind', env }, await freePort());
  t.after(() => behind.kill());
  await behind.start();
  const own = new ServiceProcess(
    { service: 'console', instance: 'console-3', env: { HOPLINE_CONSOLE_INGRESS_URL: behind.url } },
    await freePort(),
  );
  t.after(() => own.kill());
  await own.start();
  const [id, other] = [await ask('briefly'), await ask('briefly')];
  await behind.kill();
  const outage = `document.querySelector('.outage')?.textContent`;
  const paths = [
    ['list', '/', '.task-row'],
    ['task', `/tasks/${id}`, '.timeline'],
    ['compare', `/compare/${id}/${other}`, '.compare-verdict'],
    ['cluster', '/cluster', '.table-card'],
  ] as const;
  const pages: [Page, string][] = [];
  for (const [name, to, shown] of paths) {
    const page = await browser.open(own.url + to);
    await page.setSize(1440, 900);
    await page.until(`${outage} === 'Ingress does not answer. This page continues when it does.'`, SHOWN_MS_MAX);
    const text = await page.evaluate<string>('document.body.textContent');
    assert.equal(text.split('does not answer').length - 1, 1, `${name}: ${text}`);
    assert.doesNotMatch(text, /ECONNREFUSED|No task/, name);
    await save(page, `outage-${name}`);
    pages.push([page, shown]);
  }
  await behind.start();
  for (const [page, shown] of pages) {
    // The list sends no requests while it is hidden.
    await page.bringToFront();
    await page.until(`document.querySelector('${shown}') && ${outage} === undefined`, SHOWN_MS_MAX);
  }
});

test(
  'a user without credentials is asked for a key, which is sent to the ingress and never part of an address',
  options,
  async t => {
    const file = join(folder, 'keys.json');
    await writeFile(file, JSON.stringify([{ key_sha256: hash('sha256', KEY), subject: 'ann' }]));
    const env = { NATS_URL: cluster.nats.url, HOPLINE_AUTH_API_KEYS_FILE: file };
    const asking = new ServiceProcess({ service: 'ingress', instance: 'ingress-asking', env }, await freePort());
    t.after(() => asking.kill());
    await asking.start();
    const own = new ServiceProcess(
      { service: 'console', instance: 'console-2', env: { HOPLINE_CONSOLE_INGRESS_URL: asking.url } },
      await freePort(),
    );
    t.after(() => own.kill());
    await own.start();
    const page = await browser.open(`${own.url}/`);
    await page.until(`document.querySelector('.sign-in')`, SHOWN_MS_MAX);
    await save(page, 'sign-in');
    await page.evaluate(`document.querySelectorAll('.sign-in input[type=radio]')[1].click()`);
    const enter = async (key: string) => {
      const field = `document.querySelector('.sign-in input[type=password]')`;
      await page.evaluate(`{ ${field}.value = '${key}'; ${field}.dispatchEvent(new Event('input', { bubbles: true })); }`);
      // Rendered once the field has the key.
      await page.evaluate(`new Promise(resolve => requestAnimationFrame(() => requestAnimationFrame(resolve)))`);
      await page.evaluate(`document.querySelector('.sign-in form').requestSubmit()`);
    };
    await enter('key-of-no-user-1234');
    // Another key can be entered at once, without choosing the kind again.
    await page.until(`document.querySelector('.sign-in')?.textContent.includes('Ingress refused this API key.')`, SHOWN_MS_MAX);
    assert.equal(await page.evaluate(`document.querySelectorAll('.sign-in input[type=radio]')[1].checked`), true);
    await enter(KEY);
    await page.until(`document.querySelector('.list .empty')`, SHOWN_MS_MAX);
    assert.ok(page.requests.some(({ headers }) => headers['x-api-key'] === KEY));
    assert.ok(page.requests.every(({ url }) => !url.includes(KEY)));
  },
);
