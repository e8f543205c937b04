import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { createClient } from '@hopline/client';
import { freePort } from '@hopline/local-cluster';
import { type RemoteAgent, startRemoteAgent } from '../../support/agents/remote-agent.ts';
import { Cluster } from '../../support/cluster/cluster.ts';
import { ServiceProcess } from '../../support/cluster/service-process.ts';
import { Chromium, chromiumPath, NO_CHROMIUM, type Page } from './chromium.ts';

/**
 * Every page of the console in both color schemes: shown, and without a violation of axe, of any severity. `PICTURES=true` also writes what it shows
 * into the documents, from this real run.
 */
const PICTURES = fileURLToPath(new URL('../../../docs/pictures/console/', import.meta.url));
const GUIDE = new URL('../../../docs/guides/console.md', import.meta.url);
const PICTURE_BYTES_MAX = 150 * 1_024;
const AXE = readFileSync(fileURLToPath(import.meta.resolve('axe-core/axe.min.js')), 'utf8');
const TEST_MS_MAX = 300_000;
const SHOWN_MS_MAX = 120_000;
const SCHEMES = ['light', 'dark'] as const;

const ANSWER = `## Rolling back

The deployment **shop-web** of the cluster \`staging\` fails since 14:02: its image has no \`/healthz\`.

| revision | image | state |
|---|---|---|
| 41 | shop-web:1.8.2 | healthy |
| 42 | shop-web:1.9.0 | failing |

1. Roll back to revision 41: \`kubectl rollout undo deployment/shop-web --to-revision=41\`
2. Add the probe to the image, and deploy it again.

- [x] The database has no new migration
- [ ] The team of the shop knows
`;

const path = chromiumPath();
const options = { timeout: TEST_MS_MAX, skip: path === undefined && NO_CHROMIUM };

let remote: RemoteAgent;
let cluster: Cluster;
let web: ServiceProcess;
/** An ingress that asks for credentials, and its console. */
let guarded: ServiceProcess[] = [];
let folder: string;
let browser: Chromium;
let answered: string;
let again: string;

before(async () => {
  if (path === undefined) return;
  remote = await startRemoteAgent({
    dialect: '0.3',
    card: {
      name: 'Shop operator',
      description: 'Explains what fails in the clusters of the shop, and repairs it.',
      skills: [
        {
          id: 'explain-failure',
          name: 'Explain a failure',
          description: 'Reads events, logs and revisions of a deployment, and names the cause.',
          tags: ['kubernetes', 'shop'],
          examples: ['Why does the shop fail on staging?'],
        },
        // A deviation that the page shows.
        {
          id: 'roll-back',
          name: 'Roll back',
          description: '',
          tags: ['kubernetes'],
          examples: ['Roll back the shop on staging'],
        },
      ],
    },
    script: async function* ({ text }) {
      if (text.startsWith('Roll back')) {
        const approval = {
          callId: 'call-1',
          tool: 'rollout_undo',
          arguments: { deployment: 'shop-web', cluster: 'staging', revision: 41 },
        };
        const parts = [
          { kind: 'text', text: 'The shop fails since 14:02. May I roll it back?' },
          { kind: 'data', data: { approvalRequest: approval } },
        ];
        yield { status: 'input-required', parts };
        return;
      }
      if (text.includes('Delete')) {
        yield { fail: true, text: 'The operator may not delete anything.' };
        return;
      }
      const words = (text.includes('briefly') ? 'Roll back to revision 41.' : ANSWER).match(/\s*\S+/g)!;
      for (const word of words) {
        yield { token: word };
        yield { pause: 12 };
      }
      yield { complete: true };
    },
  });
  cluster = await Cluster.start({
    env: { HOPLINE_PUSH: 'true' },
    notifiers: 1,
    agents: [{ name: 'operator', adapter: 'a2a', url: remote.url }],
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
  folder = mkdtempSync(join(tmpdir(), 'pages-'));
  const keys = join(folder, 'keys.json');
  writeFileSync(keys, JSON.stringify([{ key_sha256: hash('sha256', 'key-of-ann-12345678'), subject: 'ann' }]));
  const asking = { NATS_URL: cluster.nats.url, HOPLINE_AUTH_API_KEYS_FILE: keys };
  const ingress = new ServiceProcess({ service: 'ingress', instance: 'ingress-asking', env: asking }, await freePort());
  const env = { HOPLINE_CONSOLE_INGRESS_URL: ingress.url };
  guarded = [ingress, new ServiceProcess({ service: 'console', instance: 'console-2', env }, await freePort())];
  for (const service of guarded) await service.start();
  const client = createClient({ url: cluster.url });
  const ask = async (text: string) => {
    const sent = await client.send(text);
    assert.ok('task' in sent);
    return sent.task.id;
  };
  await ask('Delete the namespace of the shop');
  again = await ask('Why does the shop fail on staging? Answer briefly.');
  answered = await ask('Why does the shop fail on staging?');
  browser = await Chromium.start(path);
});

after(async () => {
  await browser?.[Symbol.asyncDispose]();
  await web?.kill();
  for (const service of guarded.toReversed()) await service.kill();
  if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
  await cluster?.[Symbol.asyncDispose]();
  await remote?.close();
});

/** The pages of the documents: the address of each, and an expression that is true when it is shown. */
const pages = (): Record<string, { at: string; shown: string; act?: (page: Page) => Promise<void> }> => ({
  tasks: {
    at: '/',
    shown: `document.querySelectorAll('.task-row').length === 3 && document.querySelector('.agent-card:nth-of-type(2)')`,
  },
  task: { at: `/tasks/${answered}`, shown: `document.querySelector('.timeline')?.textContent.includes('text operator')` },
  details: {
    at: `/tasks/${answered}`,
    shown: `document.querySelectorAll('.bar-button').length > 5`,
    act: async page => {
      await page.evaluate(
        `[...document.querySelectorAll('.bar-button')].find(e => e.ariaLabel.startsWith('text operator')).click()`,
      );
      await page.until(`document.querySelector('.bar-details .explanation .sentences')`, SHOWN_MS_MAX);
    },
  },
  chunks: { at: `/tasks/${answered}?view=chunks`, shown: `document.querySelector('.explanation .sentences')` },
  frames: { at: `/tasks/${answered}?view=frames`, shown: `document.querySelector('.frame-json')` },
  webhooks: {
    at: `/tasks/${answered}?view=webhooks`,
    shown: `document.querySelector('.task-detail > p')?.textContent.includes('no webhooks')`,
  },
  compare: {
    at: `/compare/${answered}/${again}`,
    shown: `document.querySelectorAll('.compare-part').length > 2 && document.querySelector('.times-b')`,
  },
  'sign-in': { at: guarded[1]?.url ?? '', shown: `document.querySelector('.sign-in')` },
  agent: { at: '/agents/operator', shown: `document.querySelector('.findings li') && document.querySelector('.skill')` },
  cluster: { at: '/cluster', shown: `document.querySelector('.table-card')` },
  file: {
    at: '/',
    shown: `document.querySelector('.task-row')`,
    act: async page => {
      const text = await (await fetch(`${cluster.url}/tasks/${answered}/export`)).text();
      await page.evaluate(`{
        const data = new DataTransfer();
        data.items.add(new File([${JSON.stringify(text)}], 'shop.hopline.jsonl'));
        document.body.dispatchEvent(new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true }));
      }`);
      await page.until(`document.querySelector('.timeline')?.textContent.includes('text operator')`, SHOWN_MS_MAX);
    },
  },
  // Begins a task of its own, which the pictures above do not have.
  approval: {
    at: '/',
    shown: `document.querySelector('.task-row')`,
    act: async page => {
      const sent = await createClient({ url: cluster.url }).send('Roll back the shop on staging');
      assert.ok('task' in sent);
      await page.evaluate(`location.assign('/tasks/${sent.task.id}')`);
      await page.until(
        `document.querySelector('.approval') && document.querySelector('.timeline')?.textContent.includes('operator')`,
        SHOWN_MS_MAX,
      );
    },
  },
});

/** The elements that make the page wider than its window. */
const tooWide = `document.documentElement.scrollWidth <= innerWidth ? [] : [...document.querySelectorAll('body *')].flatMap(element => {
  const { right } = element.getBoundingClientRect();
  return right > innerWidth ? [element.tagName + ' ' + element.className + ' ' + right] : [];
})`;

/** Violations of every rule and severity, with the elements. */
async function violationsOf(page: Page): Promise<string[]> {
  await page.evaluate(`${AXE}; undefined`);
  return page.evaluate<string[]>(`axe.run(document).then(({ violations }) => violations.flatMap(({ id, impact, nodes }) =>
    nodes.map(({ html, failureSummary }) => id + ' (' + impact + '): ' + html.slice(0, 160) + ' ' + failureSummary.replaceAll('\\n', ' ').slice(0, 200))))`);
}

for (const name of [
  'tasks',
  'task',
  'details',
  'chunks',
  'frames',
  'webhooks',
  'compare',
  'sign-in',
  'agent',
  'cluster',
  'file',
  'approval',
])
  test(`the page "${name}" is shown in both color schemes and on a phone, without a violation of axe`, options, async () => {
    const { at, shown, act } = pages()[name]!;
    const page = await browser.open(new URL(at, web.url).href);
    await page.setSize(1_280, 800);
    await page.until(shown, SHOWN_MS_MAX);
    await act?.(page);
    const found: string[] = [];
    for (const scheme of SCHEMES) {
      await page.setScheme(scheme);
      for (const violation of await violationsOf(page)) found.push(`${scheme}: ${violation}`);
      const seen = process.env.SCREENSHOTS;
      if (seen !== undefined) writeFileSync(join(seen, `page-${name}-${scheme}.png`), await page.screenshot());
      if (process.env.PICTURES !== undefined) {
        mkdirSync(PICTURES, { recursive: true });
        writeFileSync(join(PICTURES, `${name}-${scheme}.webp`), await page.screenshot('webp'));
      }
    }
    await page.setSize(390, 844);
    for (const violation of await violationsOf(page)) found.push(`phone: ${violation}`);
    assert.deepEqual(await page.evaluate(tooWide), [], 'no horizontal scroll');
    const lists = await page.evaluate<boolean[]>(`[...document.querySelectorAll('.menu')].map(menu => {
      menu.open = true;
      const { left, right } = menu.querySelector('.menu-list').getBoundingClientRect();
      menu.open = false;
      return left >= 0 && right <= innerWidth;
    })`);
    assert.ok(!lists.includes(false), 'every menu is on the screen');
    if (name === 'approval') {
      // On a phone the conversation, with the call, is a view of its own.
      await page.evaluate(`document.querySelector('.tabs .only-narrow').click()`);
      await page.until(
        `document.querySelector('.approval .button-primary').getBoundingClientRect().right <= innerWidth`,
        SHOWN_MS_MAX,
      );
      for (const violation of await violationsOf(page)) found.push(`phone, conversation: ${violation}`);
      assert.deepEqual(await page.evaluate(tooWide), [], 'no horizontal scroll');
    }
    assert.deepEqual(found, []);
    // A browser reports each refusal of credentials as a fault of the page.
    const refusals = name === 'sign-in' ? /status of 401/ : /^$/;
    assert.deepEqual(
      page.faults.filter(fault => !refusals.test(fault)),
      [],
    );
  });

test('the documents have a picture of each of these pages in both color schemes, and show them', () => {
  const expected = Object.keys(pages()).flatMap(name => SCHEMES.map(scheme => `${name}-${scheme}.webp`));
  assert.ok(existsSync(PICTURES), `write them: PICTURES=true npm test -- test/e2e/browser/pages.test.ts`);
  assert.deepEqual(readdirSync(PICTURES).toSorted(), expected.toSorted());
  const guide = readFileSync(GUIDE, 'utf8');
  for (const file of expected) {
    const { size } = statSync(join(PICTURES, file));
    assert.ok(size > 0 && size < PICTURE_BYTES_MAX, `${file} has ${size} bytes`);
    assert.ok(guide.includes(`../pictures/console/${file}`), `the guide does not show ${file}`);
  }
});
