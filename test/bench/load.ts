import { type BenchCluster, startCluster } from './bench-cluster.ts';
import type { AnswerReport } from './client/answer.ts';
import { epochOffsetMs } from './measure/clock.ts';
import { type CpuSeconds, withCpu } from './measure/process-usage.ts';
import { latencyOf } from './measure/spread.ts';
import { figure } from './measure/table.ts';
import type { Finding, Question, Size } from './question.ts';
import { RecordingFolder } from './recording-file.ts';
import { publishedAtMs } from './stored-records.ts';
import { STREAMED } from './tokens.ts';

const AGENT = 'reader';
/** More concurrent turns than one supervisor or agent takes by default. */
const SLOTS = { HOPLINE_SLOTS: '1024' };
/** Users do not send in the same millisecond. */
const STAGGER_MS = 10;

type Plan = { tasks: number; perSecond: number; seconds: number };
const PLANS: Record<Size, Plan> = {
  full: { tasks: 200, perSecond: 50, seconds: 60 },
  quick: { tasks: 200, perSecond: 50, seconds: 10 },
  tiny: { tasks: 5, perSecond: 50, seconds: 1 },
};

type Run = { reports: AnswerReport[]; cpu: CpuSeconds | undefined };

/** Many concurrent tasks through all services. Is any text lost, and how old is a token when its client receives it? */
export const load: Question = {
  name: 'load',
  async ask(size) {
    const plan = PLANS[size];
    const tokens = plan.perSecond * plan.seconds;
    await using stack = new AsyncDisposableStack();
    const folder = stack.use(new RecordingFolder());
    const agents = [{ name: AGENT, adapter: 'recording', path: folder.write(tokens), pace: plan.perSecond }];
    const bench = stack.use(await startCluster({ agents, env: SLOTS }));
    const run = await askAndRead(bench, plan.tasks, tokens);
    const taskIds = run.reports.map(({ taskId }) => taskId);
    const published = await publishedAtMs(bench.cluster.nats.url, { agent: AGENT, taskIds, tokens });
    return [found(plan, run, published)];
  },
};

async function askAndRead({ cluster, client, pids }: BenchCluster, tasks: number, tokens: number): Promise<Run> {
  const { result, cpu } = await withCpu({ ...pids, client: client.pid }, async () => {
    await client.call('ask', { url: cluster.url, text: 'begin', artifact: STREAMED, count: tasks, staggerMs: STAGGER_MS });
    return client.call('answers', { tokens });
  });
  return { reports: result, cpu };
}

/** Age of each token at its client: from its publication to the first frame that contains it. */
export function agesMs(reports: readonly AnswerReport[], published: Map<string, number[]>): Float64Array {
  const ages: number[] = [];
  const offsetMs = epochOffsetMs();
  for (const { taskId, arrivals } of reports) {
    const times = published.get(taskId) ?? [];
    let token = 0;
    for (let index = 0; index < arrivals.length; index += 2) {
      const [atMs, upTo] = [arrivals[index]!, Math.min(arrivals[index + 1]!, times.length)];
      for (; token < upTo; token++) ages.push(atMs + offsetMs - times[token]!);
    }
  }
  return Float64Array.from(ages);
}

function found({ tasks, perSecond, seconds }: Plan, { reports, cpu }: Run, published: Map<string, number[]>): Finding {
  const sum = (values: Iterable<number>) => [...values].reduce((total, value) => total + value, 0);
  const asked = tasks * perSecond * seconds;
  const publishedCount = sum([...published.values()].map(times => times.length));
  const folded = sum(reports.map(report => report.tokens));
  const whole = reports.filter(({ intact }) => intact).length;
  const frames = sum(reports.map(report => report.frames));
  const spanS =
    (Math.max(...reports.map(({ endedAtMs }) => endedAtMs)) - Math.min(...reports.map(({ askedAtMs }) => askedAtMs))) / 1000;
  const age = latencyOf(agesMs(reports, published));
  const first = latencyOf(Float64Array.from(reports, ({ askedAtMs, firstTextAtMs }) => firstTextAtMs - askedAtMs));
  const row = (name: string, value: number | string) => [name, typeof value === 'string' ? value : figure(value)];
  const rows = [
    row(
      'tokens recorded / published by the agents / folded by the clients',
      [asked, publishedCount, folded].map(count => count.toLocaleString('en-US')).join(' / '),
    ),
    row('texts whole, byte for byte', `${whole} of ${tasks}`),
    row('seconds from the first question to the last answer', spanS),
    row('frames per 1000 tokens', (1000 * frames) / Math.max(1, folded)),
    row('age of a token at its client: p50, ms', age.p50),
    row('age of a token at its client: p99, ms', age.p99),
    row('age of a token at its client: max, ms', age.max),
    row('question to first text: p50, ms', first.p50),
    row('question to first text: p99, ms', first.p99),
    ...Object.entries(cpu ?? {}).map(([service, used]) => row(`CPU of ${service}, share of one core`, used / spanS)),
  ];
  return {
    title: `load: ${tasks} tasks of ${perSecond} tokens/s for ${seconds} s, through all services`,
    table: { columns: ['', 'one run'], rows },
    notes: [
      'age: from the source time of the token (to the millisecond) to the receipt of its frame, with the intended delay of the coalescer',
    ],
    targets: [
      {
        name: 'tokens published and not folded under load',
        wanted: { atMost: 0 },
        found: Math.abs(publishedCount - folded) + (tasks - whole),
      },
    ],
  };
}
