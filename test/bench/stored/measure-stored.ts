import { setTimeout as delay } from 'node:timers/promises';
import { connect } from '@nats-io/transport-node';
import type { Cluster } from '../../support/cluster/cluster.ts';
import type { ServiceProcess } from '../../support/cluster/service-process.ts';
import { startWebhook } from '../../support/webhooks/webhook.ts';
import { cpuSecondsOf, residentKibOf } from '../measure/process-usage.ts';
import { latencyOf } from '../measure/spread.ts';
import type { Caller, Page } from './caller.ts';
import { CONTEXT_TASKS, callerTask, callerTasks } from './stored-population.ts';

/** The operations of users and operators on a cluster that stores many tasks. */

/** `firstSeq`: log sequence of the first record of its oldest task. `records`: number of records of each task. */
export type Population = { total: number; untilMs: number; firstSeq: number; records: number };
export type Times = { p50: number; p99: number; max: number };

const PAGE = 50;
/** A service that has read what it needs uses no CPU any more. */
const SETTLED_MS = 2_000;
const TAKEOVER_QUESTIONS = 16;

/** Asks a process that has answered before for each list of the caller, `times` times. */
export async function measureLists(
  url: string,
  caller: Caller,
  { total, untilMs }: Population,
  times: number,
): Promise<Record<string, Times>> {
  const count = callerTasks(total);
  const contexts = Array.from(
    { length: count / CONTEXT_TASKS },
    (_, n) => callerTask(n * CONTEXT_TASKS, total, untilMs).contextId,
  );
  const taskOf = (n: number) => callerTask(n % count, total, untilMs);
  const before = (n: number) => {
    const { endedAt, taskId } = taskOf(n);
    return Buffer.from(`${endedAt}.${taskId}`).toString('base64url');
  };
  const failed = { status: 'TASK_STATE_FAILED' };
  const cases: Record<string, (n: number) => Promise<[page: Page, tasks: number, total: number | undefined]>> = {
    'first page': async () => [await caller.list(url), PAGE, count],
    'a context': async n => [
      await caller.list(url, { contextId: contexts[(n * 37) % contexts.length] }),
      CONTEXT_TASKS,
      CONTEXT_TASKS,
    ],
    'a state': async () => [await caller.list(url, failed), Math.min(PAGE, count / 10), count / 10],
    'a text': async () => [await caller.list(url, { text: 'a text of no task' }), 0, undefined],
    'a page in the middle': async n => [
      await caller.list(url, { pageToken: before(100 + ((n * 61) % (count - 100))) }),
      PAGE,
      count,
    ],
    'the deepest page': async () => [await caller.list(url, { pageToken: before(PAGE) }), PAGE, count],
  };
  const found: Record<string, Times> = {};
  for (const [name, ask] of Object.entries(cases)) {
    const ms: number[] = [];
    for (let n = 0; n < times; n += 1) {
      const fromMs = performance.now();
      const [page, tasks, whole] = await ask(n);
      ms.push(performance.now() - fromMs);
      if (page.tasks.length !== tasks || page.totalSize !== whole)
        throw new Error(`${name}: ${page.tasks.length} tasks of ${page.totalSize}, not ${tasks} of ${whole}`);
    }
    found[name] = timesOf(ms);
  }
  return found;
}

/** Reads every page. Throws unless each task occurs once, newest first, and the total is true on each page. */
export async function checkPages(url: string, caller: Caller, { total, untilMs }: Population): Promise<void> {
  const count = callerTasks(total);
  let [pageToken, next] = ['', count - 1];
  do {
    const page = await caller.list(url, { pageSize: 100, pageToken });
    if (page.totalSize !== count) throw new Error(`a page has a total of ${page.totalSize} tasks, not ${count}`);
    for (const { id } of page.tasks) {
      if (id !== callerTask(next, total, untilMs).taskId) throw new Error(`task ${next} of the caller is missing in its pages`);
      next -= 1;
    }
    pageToken = page.nextPageToken;
  } while (pageToken !== '');
  if (next !== -1) throw new Error(`${next + 1} tasks of the caller are missing in its pages`);
}

/** Number of requests to NATS for one list by a server that has not listed before, not counting the periodic requests of servers. */
export async function coldRequests(
  natsUrl: string,
  ask: () => Promise<unknown>,
): Promise<{ requests: string[]; consumers: number }> {
  const nc = await connect({ servers: natsUrl });
  try {
    const seen: string[] = [];
    nc.subscribe('$JS.API.>', { callback: (_error, msg) => void seen.push(msg.subject.slice('$JS.API.'.length)) });
    await nc.flush();
    await ask();
    await nc.flush();
    const calls = (api: string) => seen.filter(call => new RegExp(`^${api}\\.(KV_hopline_task_lists|A2A_LOG)(\\.|$)`).test(call));
    return { requests: calls('DIRECT\\.GET'), consumers: calls('CONSUMER\\.CREATE').length };
  } finally {
    await nc.close();
  }
}

export type Restart = { ms: number; cpuSeconds: number; residentMib: number };

/** SIGKILL, and a start: until the service is ready, with the CPU that it has used two seconds later. */
export async function restarted(service: ServiceProcess, whenReady?: () => Promise<void>): Promise<Restart> {
  await service.kill();
  const fromMs = performance.now();
  await service.start();
  const ms = performance.now() - fromMs;
  await whenReady?.();
  await delay(SETTLED_MS);
  return {
    ms,
    cpuSeconds: cpuSecondsOf(service.pid) ?? Number.NaN,
    residentMib: (residentKibOf(service.pid) ?? Number.NaN) / 1024,
  };
}

/** Kills one of two relays, and asks at once: the slowest first text of questions in all shards. */
export async function takeover(cluster: Cluster, caller: Caller): Promise<number> {
  const [first] = cluster.relays;
  await first!.kill();
  const asked = await Promise.all(Array.from({ length: TAKEOVER_QUESTIONS }, () => caller.ask(cluster.url)));
  await first!.start();
  return Math.max(...asked.map(({ firstTextMs }) => firstTextMs));
}

export async function firstTexts(url: string, caller: Caller, times: number): Promise<Times> {
  const ms: number[] = [];
  for (let n = 0; n < times; n += 1) ms.push((await caller.ask(url)).firstTextMs);
  return timesOf(ms);
}

/** Old tasks, resumed after their first event. */
export async function resumes(
  url: string,
  caller: Caller,
  { total, untilMs, firstSeq, records }: Population,
  times: number,
): Promise<Times> {
  const ms: number[] = [];
  const count = callerTasks(total);
  for (let n = 0; n < times; n += 1) {
    const taskN = (n * 61 + 7) % count;
    const { taskId } = callerTask(taskN, total, untilMs);
    const resumed = await caller.resume(url, taskId, `1.${firstSeq + (taskN * total * records) / count}`);
    if (resumed.events === 0) throw new Error('a resumed task has no events');
    ms.push(resumed.ms);
  }
  return timesOf(ms);
}

/** From the end of a task at its client to the last notification of its webhook. */
export async function webhooks(url: string, caller: Caller, times: number): Promise<Times> {
  await using webhook = await startWebhook();
  const ms: number[] = [];
  for (let n = 0; n < times; n += 1) {
    const path = `/${n}`;
    const { endedAtMs } = await caller.ask(url, { webhook: `${webhook.url}${path}` });
    const isEnd = ({ path: at, text }: { path: string; text: string }) => at === path && /TASK_STATE_COMPLETED/.test(text);
    await webhook.until(() => webhook.notifications.some(isEnd));
    ms.push(Math.max(0, webhook.notifications.find(isEnd)!.atMs - endedAtMs));
  }
  return timesOf(ms);
}

function timesOf(ms: readonly number[]): Times {
  const { p50, p99, max } = latencyOf(Float64Array.from(ms));
  return { p50, p99, max };
}
