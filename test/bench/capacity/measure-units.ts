import { startWebhook } from '../../support/webhooks/webhook.ts';
import { startCluster, startDirectCluster } from '../bench-cluster.ts';
import { LoadProcess } from '../measure/load-process.ts';
import { type CpuSeconds, withCpu } from '../measure/process-usage.ts';
import { REMOTE_A2A, runs, startPeers } from '../peers.ts';
import type { RemoteServerMethods } from '../remote-server/main.ts';
import { ANSWER, STREAMED } from '../tokens.ts';

/** CPU milliseconds of each process for one unit of work. */
export type UnitCost = Record<string, number>;

const AT_ONCE = 16;
const VIEWERS_AT_ONCE = 50;
const WARM_UP_TASKS = 100;

function perUnit(cpu: CpuSeconds | undefined, units: number): UnitCost {
  if (cpu === undefined) throw new Error('CPU times are unavailable on this platform');
  return Object.fromEntries(Object.entries(cpu).map(([name, seconds]) => [name, (1000 * seconds) / units]));
}

/** A task of one token, AT_ONCE at a time. */
export async function taskCost(tasks: number): Promise<UnitCost> {
  await using started = await startPeers([REMOTE_A2A]);
  const { bench, peers } = started;
  const { through } = peers[0]!;
  const ask = (count: number) => runs(bench.client, through, '1 0', { count, atOnce: AT_ONCE, tokens: 1 });
  await ask(Math.min(WARM_UP_TASKS, tasks));
  const { cpu } = await withCpu(through.pids, () => ask(tasks));
  return perUnit(cpu, tasks);
}

/** Cost of a notification: tasks with a webhook, minus the same tasks without one. */
export async function webhookCost(tasks: number): Promise<UnitCost> {
  await using stack = new AsyncDisposableStack();
  const webhook = stack.use(await startWebhook());
  const agent = stack.use(new LoadProcess<RemoteServerMethods>(new URL('../remote-server/main.ts', import.meta.url)));
  const url = await agent.call('listen', { wire: 'a2a-1.0' });
  const env = {
    HOPLINE_PUSH: 'true',
    HOPLINE_WEBHOOK_ALLOW: '127.0.0.1',
    HOPLINE_WEBHOOK_HTTP: 'true',
    HOPLINE_SECRETS_KEY: SECRETS_KEY,
  };
  const bench = stack.use(
    await startCluster({ agents: [{ name: 'remote', adapter: 'a2a', url: `${url}/` }], notifiers: 1, env }),
  );
  const ask = async (count: number, more: { webhook?: string } = {}) => {
    const reports = await bench.client.call('runs', {
      url: bench.cluster.url,
      artifact: STREAMED,
      text: '1 0',
      count,
      atOnce: AT_ONCE,
      tokens: 1,
      ...more,
    });
    if (reports.some(({ intact }) => !intact)) throw new Error('a text did not arrive complete');
  };
  const ended = () => webhook.notifications.filter(({ text }) => /"(TASK_STATE_COMPLETED|completed)"/.test(text)).length;
  const withWebhook = async (count: number) => {
    const before = ended();
    await ask(count, { webhook: webhook.url });
    await webhook.until(() => ended() - before >= count, WEBHOOKS_MS_MAX);
  };
  await withWebhook(Math.min(WARM_UP_TASKS, tasks));
  const without = await withCpu(bench.pids, () => ask(tasks));
  const received = webhook.notifications.length;
  const notified = await withCpu(bench.pids, () => withWebhook(tasks));
  const count = webhook.notifications.length - received;
  const [less, more] = [perUnit(without.cpu, count), perUnit(notified.cpu, count)];
  return Object.fromEntries(Object.entries(more).map(([name, ms]) => [name, Math.max(0, ms - less[name]!)]));
}

const WEBHOOKS_MS_MAX = 60_000;
/** Only for a cluster of this bench. */
const SECRETS_KEY = Buffer.alloc(32, 1).toString('base64');

/** A client that begins to follow a running task of its own. */
export async function viewerCost(viewers: number): Promise<UnitCost> {
  await using bench = await startDirectCluster();
  const { client, cluster } = bench;
  const taskIds: string[] = [];
  while (taskIds.length < viewers) {
    const count = Math.min(VIEWERS_AT_ONCE, viewers - taskIds.length);
    taskIds.push(...(await client.call('ask', { url: cluster.url, text: 'begin', artifact: ANSWER, count })));
    await client.call('leave');
  }
  const [ingress] = cluster.ingresses;
  await ingress!.kill();
  await ingress!.start();
  const watch = (from: number, to: number) =>
    Promise.all(taskIds.slice(from, to).map(taskId => client.call('watch', { url: cluster.url, count: 1, taskId })));
  const warmUps = Math.min(VIEWERS_AT_ONCE, Math.floor(viewers / 2));
  await watch(0, warmUps);
  const { cpu } = await withCpu({ ...bench.pids, ingress: ingress!.pid }, () => watch(warmUps, viewers));
  return perUnit(cpu, viewers - warmUps);
}
