import { totalOf } from '../measure/process-usage.ts';
import { latencyOf } from '../measure/spread.ts';
import { figure } from '../measure/table.ts';
import { PER_SECOND, pacedRuns, type Run } from '../paced.ts';
import type { Finding, Question } from '../question.ts';
import { askStored, type Stored } from '../stored.ts';
import { CAPACITY_PLANS, type CapacityPlan } from './capacity-plan.ts';
import { costOf, errorOf, fitLine, type Line } from './fit.ts';
import { taskCost, type UnitCost, viewerCost, webhookCost } from './measure-units.ts';

/** Error of the model on a load that it was not fitted to. */
const ERROR_MAX = 0.2;
const MILLION = 1_000_000;
/** Load up to which a core is used, so that ages stay below half a second. */
const CORE_SHARE = 0.8;
/** Age at p99 up to which a load counts as sustained. */
const AGE_P99_MS_MAX = 500;
/** Processes of a run that are not Hopline's. */
const NOT_OURS = ['client', 'the agent'];

/** What does a unit of each kind of work cost each process, and how many cores, nodes and bytes does a larger load therefore need? */
export const CAPACITY_QUESTIONS: Question[] = [
  { name: 'paced', ask: async size => [await pacedModel(CAPACITY_PLANS[size])] },
  { name: 'work', ask: size => units(CAPACITY_PLANS[size]) },
  { name: 'stored', ask: async size => [await storedModel(CAPACITY_PLANS[size])] },
];

async function pacedModel({ streams, heldOut, seconds }: CapacityPlan): Promise<Finding> {
  // The load by which the lines are judged comes between the others, so that a machine that slows down does not favor either.
  const counts = [...streams, heldOut].sort((one, other) => one - other);
  const { ours: found } = await pacedRuns({
    replicas: 1,
    warmUp: { streams: heldOut, seconds: 2 * seconds },
    through: counts,
    directly: [],
    seconds,
  });
  const judged = found.find(run => run.streams === heldOut)!;
  const fitted = found.filter(run => run !== judged);
  const names = Object.keys(judged.cpu ?? {}).filter(name => !NOT_OURS.includes(name));
  if (names.length === 0) throw new Error('CPU times are unavailable on this platform');
  const lines = new Map(names.map(name => [name, lineOf(fitted, name)]));
  // A larger load would have cheaper tokens, and older ones.
  const sustained = found.findLast(({ agesMs }) => latencyOf(agesMs).p99 < AGE_P99_MS_MAX) ?? found[0]!;
  const perCoreOf = (name: string) => (CORE_SHARE * rateOf(sustained)) / costOf(lines.get(name)!, rateOf(sustained)) / PER_SECOND;
  const rows = names.map(name => {
    const line = lines.get(name)!;
    const perCore = perCoreOf(name);
    return [
      name,
      ...found.map(run => figure((1e6 * cpuOf(run, name)) / run.tokens)),
      figure(1e6 * line.each),
      figure(100 * line.fixed),
      figure(100 * errorOf(line, pointOf(judged, name))),
      figure(perCore),
      figure(MILLION / perCore),
    ];
  });
  const all = (run: Run) => names.reduce((sum, name) => sum + cpuOf(run, name), 0) / run.seconds;
  const predicted = names.reduce((sum, name) => sum + costOf(lines.get(name)!, rateOf(judged)), 0);
  const error = Math.abs(predicted - all(judged)) / all(judged);
  return {
    title: `capacity: streams of ${PER_SECOND} tokens/s, windows of ${seconds} s, one of each service; ${heldOut} streams are held out`,
    table: {
      columns: [
        'CPU µs a token',
        ...found.map(run => `${run.streams}${run === judged ? ' (held out)' : ''}`),
        'each, µs',
        'fixed, % of a core',
        'error, %',
        `streams a core at ${100 * CORE_SHARE} %`,
        'cores of a million streams',
      ],
      rows,
    },
    notes: [
      ...found.map(loadNote),
      `streams and cores by what a token costs at ${sustained.streams} streams, the most of these with a p99 of the age below ${AGE_P99_MS_MAX} ms`,
      ...names.map(name => {
        const perCore = perCoreOf(name);
        return `one core of ${name} sustains ${figure(perCore)} streams of ${PER_SECOND} tokens/s; a million streams need ${figure(MILLION / perCore)} cores of it`;
      }),
    ],
    targets: [
      {
        name: 'capacity: error of the model on the load that was held out, all processes',
        wanted: { atMost: ERROR_MAX },
        found: error,
      },
    ],
    data: { lines: Object.fromEntries(lines), runs: found.map(({ agesMs: _ages, ...run }) => run) },
  };
}

const rateOf = ({ tokens, seconds }: Run): number => tokens / seconds;
const cpuOf = ({ cpu }: Run, name: string): number => cpu?.[name] ?? 0;
const pointOf = (run: Run, name: string) => ({ load: rateOf(run), cost: cpuOf(run, name) / run.seconds });

function lineOf(runs: readonly Run[], name: string): Line {
  return fitLine(runs.map(run => pointOf(run, name)));
}

function loadNote(run: Run): string {
  const { streams, tokens, cpu, stored, agesMs, seconds } = run;
  const { p50, p99 } = latencyOf(agesMs);
  const appends = (stored.inputs + stored.facts) / tokens;
  return `${streams} streams: ${figure(totalOf(cpu ?? {}) / seconds)} cores with agent and client, age of a token p50 ${figure(p50)} ms, p99 ${figure(p99)}; ${figure(appends)} appends and ${figure(stored.bytes / tokens)} bytes a token`;
}

async function units({ tasks, viewers }: CapacityPlan): Promise<Finding[]> {
  const rows: [name: string, cost: UnitCost][] = [
    ['a task of one token', await taskCost(tasks)],
    ['a notification of a webhook', await webhookCost(tasks)],
    ['a client that begins to follow a task of its own', await viewerCost(viewers)],
  ];
  const names = [...new Set(rows.flatMap(([, cost]) => Object.keys(cost)))].filter(name => !NOT_OURS.includes(name));
  const ours = (cost: UnitCost) => names.reduce((sum, name) => sum + (cost[name] ?? 0), 0);
  return [
    {
      title: 'capacity: other work',
      table: {
        columns: ['CPU ms', ...names, 'all'],
        rows: rows.map(([name, cost]) => [name, ...names.map(process => figure(cost[process] ?? 0)), figure(ours(cost))]),
      },
      notes: rows.map(
        ([name, cost]) => `one core of all services and NATS together: ${figure((1000 * CORE_SHARE) / ours(cost))}/s of ${name}`,
      ),
      data: rows,
    },
  ];
}

async function storedModel({ stored: [few, many] }: CapacityPlan): Promise<Finding> {
  const [lists] = await askStored({ sizes: [few, many], times: 10 });
  const [first, last] = lists!.data as [Stored, Stored];
  const each = (of: (one: Stored) => number) => (of(last) - of(first)) / (many - few);
  const serviceMib = (one: Stored) => Object.values(one.restarts).reduce((sum, { residentMib }) => sum + residentMib, 0);
  const natsKib = 1024 * each(({ nats }) => nats.restart.residentMib);
  return {
    title: `capacity: a stored task, from logs of ${figure(few)} and ${figure(many)}`,
    table: {
      columns: ['', 'each task'],
      rows: [
        ['bytes on disk', figure(each(({ diskBytes }) => diskBytes))],
        ['KiB resident in nats-server after its restart', figure(natsKib)],
        ['CPU µs of nats-server to start', figure(1e6 * each(({ nats }) => nats.restart.cpuSeconds))],
        ['KiB resident in all services', figure(1024 * each(serviceMib))],
      ],
    },
    notes: [`a million stored tasks need ${figure((natsKib * MILLION) / 1024 ** 2)} GiB of memory in each nats-server`],
  };
}
