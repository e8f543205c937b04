import { freePort } from '@hopline/local-cluster';
import { Chromium, chromiumPath, NO_CHROMIUM, type Page } from '../e2e/browser/chromium.ts';
import { ServiceProcess } from '../support/cluster/service-process.ts';
import { type DirectCluster, startDirectCluster } from './bench-cluster.ts';
import { latencyOf, spreadOf } from './measure/spread.ts';
import { figure, SPREAD_COLUMNS, spreadCells } from './measure/table.ts';
import type { Finding, Question, Size } from './question.ts';
import { ANSWER, textOfTokens } from './tokens.ts';

/**
 * `streamed`: tokens of a task that streams under its open page. `stored`: tokens of a task that is opened when it is complete. `listed`: rows of the
 * list of tasks.
 */
type Plan = { rounds: number; streamed: number; stored: number; listed: number };
const PLANS: Record<Size, Plan> = {
  full: { rounds: 5, streamed: 20_000, stored: 100_000, listed: 500 },
  quick: { rounds: 3, streamed: 10_000, stored: 100_000, listed: 500 },
  tiny: { rounds: 1, streamed: 1_000, stored: 2_000, listed: 120 },
};
const STREAMED_PER_S = 2_000;
/** Tokens of each task of the list, and the tasks that stream at once. */
const LISTED_TOKENS = 4;
const LISTED_AT_ONCE = 50;
/** Time in which the list is scrolled to its end and back. */
const SCROLL_MS = 5_000;
/** A faster pace, because only the number of the task's events counts later. */
const STORED_PER_S = 5_000;
const SHOWN_MS_MAX = 60_000;
const OPEN_MS_WANTED = 1_000;
/** Minimum frames a second, of the 60 that a headless browser draws. */
const FRAMES_WANTED = 58;
const FRAME_MS = 1_000 / 60;
/** Maximum number of elements of the page, whatever the length of a task: parts out of view are plain text or left out. */
const ELEMENTS_MAX = 3_000;

/** `cpuShare`: CPU share of the main thread, which does not depend on other processes of the machine. */
type Frames = { perSecond: number; p99Ms: number; droppedShare: number; cpuShare: number; longestTaskMs: number };
type Opening = { ms: number; cpuMs: number; elements: number; events: number };

/** How fast does the console show a long task, and does it stay smooth while a task streams? In Chromium, through all services. */
export const consolePage: Question = {
  name: 'console',
  async ask(size) {
    const path = chromiumPath();
    if (path === undefined) return [{ title: `console: ${NO_CHROMIUM}`, table: { columns: ['not measured'], rows: [] } }];
    const plan = PLANS[size];
    await using bench = await startDirectCluster();
    await using stack = new AsyncDisposableStack();
    const web = new ServiceProcess(
      { service: 'console', instance: 'console', env: { HOPLINE_CONSOLE_INGRESS_URL: bench.cluster.url } },
      await freePort(),
    );
    stack.defer(() => web.kill());
    await web.start();
    const measured = { bench, web, path };
    const frames: Frames[] = [];
    for (let round = 0; round < plan.rounds; round++) frames.push(await stream(measured, plan));
    const taskId = await store(bench, plan);
    const openings: Opening[] = [];
    for (let round = 0; round < plan.rounds; round++) openings.push(await open(measured, taskId, plan));
    await fillList(bench, plan);
    const scrolls: Frames[] = [];
    for (let round = 0; round < plan.rounds; round++) scrolls.push(await scroll(measured, plan));
    const { rounds, streamed, listed } = plan;
    return [
      framesFinding(frames, {
        title: `console: frames of the page of a task while ${streamed} tokens stream at ${STREAMED_PER_S}/s, ${rounds} rounds`,
        target: `console, frames/s while ${STREAMED_PER_S} tokens/s stream`,
      }),
      openingFinding(plan, openings),
      framesFinding(scrolls, {
        title: `console: frames of the list of ${listed} tasks while it is scrolled to its end and back in ${SCROLL_MS / 1_000} s, ${rounds} rounds`,
        target: `console, frames/s while a list of ${listed} tasks is scrolled`,
      }),
    ];
  },
};

type Measured = { bench: DirectCluster; web: ServiceProcess; path: string };

async function begin({ client, cluster }: DirectCluster): Promise<string> {
  const [taskId] = await client.call('ask', { url: cluster.url, text: 'begin', artifact: ANSWER, count: 1 });
  return taskId!;
}

async function finish({ client }: DirectCluster, tokens: number): Promise<void> {
  const [report] = await client.call('answers', { tokens });
  if (!report?.intact) throw new Error('a text did not arrive complete');
}

async function store(bench: DirectCluster, { stored }: Plan): Promise<string> {
  const taskId = await begin(bench);
  await bench.producer.call('answer', { taskIds: [taskId], tokens: stored, perSecond: STORED_PER_S });
  await finish(bench, stored);
  return taskId;
}

/** Text of the answer in the source view. Markdown shows it without its marks. */
const SHOWN_TEXT = `[...document.querySelectorAll('article.block-artifact .segment')].map(e => e.textContent).join('')`;
const IS_COMPLETED = `document.querySelector('.task-head .pill')?.textContent === 'completed'`;

async function requireText(page: Page, tokens: number): Promise<void> {
  await page.evaluate(`document.body.dispatchEvent(new KeyboardEvent('keydown', { key: 'm', bubbles: true }))`);
  await page.until(`document.querySelector('article.block-artifact .segment')`, SHOWN_MS_MAX);
  const shown = await page.evaluate<string>(SHOWN_TEXT);
  if (shown !== textOfTokens(tokens)) throw new Error(`the page shows ${shown.length} characters, and not the text of the task`);
  if (page.faults.length > 0) throw new Error(page.faults.join('; '));
}

/** Code that resolves with the times of the frames that the page draws. `isOver`: body of a function that is called in each frame; true ends it. */
const framesUntil = (isOver: string) => `new Promise(resolve => {
  const times = [];
  let longestTaskMs = 0;
  new PerformanceObserver(list => { for (const { duration } of list.getEntries()) longestTaskMs = Math.max(longestTaskMs, duration); })
    .observe({ type: 'longtask' });
  const isOver = () => { ${isOver} };
  requestAnimationFrame(function next(at) {
    times.push(at);
    if (isOver()) resolve({ times, longestTaskMs });
    else requestAnimationFrame(next);
  });
})`;

const COUNT_FRAMES = framesUntil(`return ${IS_COMPLETED};`);

async function stream({ bench, web, path }: Measured, { streamed }: Plan): Promise<Frames> {
  const taskId = await begin(bench);
  // A page that another page covers is not drawn, so each page gets a browser of its own.
  await using browser = await Chromium.start(path);
  const page = await browser.open(`${web.url}/tasks/${taskId}`);
  await page.setSize(1_440, 900);
  await page.until(`document.querySelector('.dot-on')`, SHOWN_MS_MAX);
  const counted = page.evaluate<{ times: number[]; longestTaskMs: number }>(COUNT_FRAMES);
  const before = await page.cpuSeconds();
  await bench.producer.call('answer', { taskIds: [taskId], tokens: streamed, perSecond: STREAMED_PER_S });
  const { times, longestTaskMs } = await counted;
  const after = await page.cpuSeconds();
  await finish(bench, streamed);
  await requireText(page, streamed);
  return framesOf(times, longestTaskMs, after.TaskDuration! - before.TaskDuration!);
}

/** `cpuS`: CPU seconds of the main thread in the meantime. */
function framesOf(times: readonly number[], longestTaskMs: number, cpuS: number): Frames {
  const intervals = Float64Array.from(times.slice(1), (at, index) => at - times[index]!);
  const spanMs = times.at(-1)! - times[0]!;
  const dropped = intervals.reduce((sum, ms) => sum + Math.max(0, Math.round(ms / FRAME_MS) - 1), 0);
  return {
    perSecond: (1_000 * intervals.length) / spanMs,
    p99Ms: latencyOf(intervals).p99,
    droppedShare: dropped / (spanMs / FRAME_MS),
    cpuShare: (1_000 * cpuS) / spanMs,
    longestTaskMs,
  };
}

async function fillList({ client, cluster, producer }: DirectCluster, { listed }: Plan): Promise<void> {
  for (let left = listed; left > 0; left -= LISTED_AT_ONCE) {
    const count = Math.min(left, LISTED_AT_ONCE);
    const taskIds = await client.call('ask', { url: cluster.url, text: 'list me', artifact: ANSWER, count });
    await producer.call('answer', { taskIds, tokens: LISTED_TOKENS, perSecond: STORED_PER_S });
    const reports = await client.call('answers', { tokens: LISTED_TOKENS });
    if (reports.some(({ intact }) => !intact)) throw new Error('a text did not arrive complete');
  }
}

/** Scrolls the list to its end and back. */
const SCROLL = framesUntil(`
    const rows = document.querySelector('.rows');
    const share = (times.at(-1) - times[0]) / ${SCROLL_MS};
    rows.scrollTop = (1 - Math.abs(1 - 2 * share)) * (rows.scrollHeight - rows.clientHeight);
    return share >= 1;`);

async function scroll({ web, path }: Measured, { listed }: Plan): Promise<Frames> {
  await using browser = await Chromium.start(path);
  const page = await browser.open(`${web.url}/`);
  await page.setSize(1_440, 900);
  await page.until(`document.querySelector('.task-row')`, SHOWN_MS_MAX);
  // More rows are read at the end of the list.
  const shown = `Number.parseInt(document.querySelector('.list-foot').textContent)`;
  await page.until(`(document.querySelector('.rows').scrollTop = 1e9, ${shown} >= ${listed})`, SHOWN_MS_MAX);
  const before = await page.cpuSeconds();
  const { times, longestTaskMs } = await page.evaluate<{ times: number[]; longestTaskMs: number }>(SCROLL);
  const after = await page.cpuSeconds();
  const elements = await page.evaluate<number>(`document.querySelectorAll('*').length`);
  if (elements > ELEMENTS_MAX) throw new Error(`the page of a long list has ${elements} elements`);
  if (page.faults.length > 0) throw new Error(page.faults.join('; '));
  return framesOf(times, longestTaskMs, after.TaskDuration! - before.TaskDuration!);
}

async function open({ web, path }: Measured, taskId: string, { stored }: Plan): Promise<Opening> {
  await using browser = await Chromium.start(path);
  // The connection and the cache of the script are warm, as they are for a click in the list.
  const page = await browser.open(`${web.url}/cluster`);
  await page.setSize(1_440, 900);
  const before = await page.cpuSeconds();
  const ms = await page.evaluate<number>(`new Promise(resolve => {
    const from = performance.now();
    history.pushState(null, '', '/tasks/${taskId}');
    dispatchEvent(new PopStateEvent('popstate'));
    requestAnimationFrame(function next() {
      // Two frames later the text is painted.
      if (${IS_COMPLETED}) requestAnimationFrame(() => requestAnimationFrame(() => resolve(performance.now() - from)));
      else requestAnimationFrame(next);
    });
  })`);
  const after = await page.cpuSeconds();
  await requireText(page, stored);
  const elements = await page.evaluate<number>(`document.querySelectorAll('*').length`);
  if (elements > ELEMENTS_MAX) throw new Error(`the page of a long task has ${elements} elements`);
  const events = await page.evaluate<number>(`Number(document.querySelector('.scrubber-bar').getAttribute('aria-valuemax'))`);
  return { ms, cpuMs: 1_000 * (after.TaskDuration! - before.TaskDuration!), elements, events };
}

function framesFinding(frames: readonly Frames[], { title, target }: { title: string; target: string }): Finding {
  const row = (name: string, of: (one: Frames) => number) => [name, ...spreadCells(spreadOf(frames.map(of)))];
  return {
    title,
    table: {
      columns: ['', ...SPREAD_COLUMNS],
      rows: [
        row('frames/s', one => one.perSecond),
        row('time between two frames, ms: p99', one => one.p99Ms),
        row('frames dropped, %', one => 100 * one.droppedShare),
        row('CPU of the main thread, %', one => 100 * one.cpuShare),
        row('longest task of the main thread, ms', one => one.longestTaskMs),
      ],
    },
    notes: ['the page shares the machine with the services and the browser paints without a GPU'],
    targets: [
      {
        name: target,
        wanted: { atLeast: FRAMES_WANTED },
        found: spreadOf(frames.map(one => one.perSecond)),
      },
    ],
  };
}

function openingFinding({ stored, rounds }: Plan, openings: readonly Opening[]): Finding {
  const row = (name: string, of: (one: Opening) => number) => [name, ...spreadCells(spreadOf(openings.map(of)))];
  return {
    title: `console: opening a task of ${stored} tokens in ${figure(openings[0]!.events)} events, ${rounds} rounds`,
    table: {
      columns: ['', ...SPREAD_COLUMNS],
      rows: [
        row('from the click to the whole text, ms', one => one.ms),
        row('CPU of the main thread, ms', one => one.cpuMs),
        row('elements of the page', one => one.elements),
      ],
    },
    targets: [
      {
        name: `console, opening a task of ${stored} tokens, ms`,
        wanted: { atMost: OPEN_MS_WANTED },
        found: spreadOf(openings.map(({ ms }) => ms)),
      },
    ],
  };
}
