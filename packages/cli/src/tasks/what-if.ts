import type { WhatIfRow } from '@hopline/replay';
import { plural } from '@hopline/task-audit/waterfall';
import { command } from '../command/command.ts';
import { EXIT } from '../command/exit-code.ts';
import { number, parsedAll, text } from '../command/options.ts';
import { UsageError } from '../command/usage-error.ts';
import { STORED_TASK_OPTIONS, STORED_TASKS, storedTasks } from './stored-tasks.ts';

/** The bounds of each setting are checked where it is used. */
const SETTING_MAX = 1_000_000;
const EVENT_COSTS_MS = [0, 20, 40, 110, 250, 1_000] as const;
const BAR_CHARS = 24;
/** Column of the first bar. */
const BARS_FROM = 9;

const setting = number({ min: 0, max: SETTING_MAX });

export const whatIf = command({
  name: 'what-if',
  subject: STORED_TASKS,
  summary: 'prints how many frames and how much delay recorded tasks would have had under other settings of the coalescer',
  details:
    'replays task files and tasks from NATS at the times when their inputs were stored; appends take no time. Without --event-cost ' +
    'it tries a few values over its range',
  asksNoServer: true,
  options: {
    eventCost: parsedAll('N', 'HOPLINE_EVENT_COST_MS; may be repeated', setting),
    holdMax: parsedAll('MS', 'HOPLINE_HOLD_MS_MAX; may be repeated', setting),
    profile: text('NAME', 'transparent: without what the supervisor adds (plan, notices, the complete answer again)'),
    ...STORED_TASK_OPTIONS,
  },
  async run({ subject: subjects, options }, { output, json, environment, signal }) {
    const { eventCost, holdMax, profile, ...chosen } = options;
    const { WhatIf } = await import('@hopline/replay');
    const costs = eventCost.length > 0 ? eventCost : EVENT_COSTS_MS;
    const settings = costs.flatMap(eventCostMs =>
      holdMax.length > 0 ? holdMax.map(holdMsMax => ({ eventCostMs, holdMsMax })) : [{ eventCostMs }],
    );
    const forwards = await isForwarding(profile);
    const replayed = replayedIn(() => new WhatIf({ settings, ...(forwards && { forwards }) }));
    let left = 0;
    for await (const { task, name } of storedTasks('what-if', { subjects, ...chosen, environment, signal })) {
      if (!('unreadable' in task) && task.lacks !== 'inputs' && task.lacks !== 'beginning') replayed.add(task);
      else {
        left += 1;
        if (!chosen.all) output.warn(`${name}: ${'unreadable' in task ? task.unreadable : 'the file lacks inputs'}`);
      }
    }
    if (signal.aborted) return EXIT.interrupted;
    if (json) for (const row of replayed.rows) output.line(JSON.stringify({ tasks: replayed.tasks, ...row }));
    else for (const line of tableLines(replayed.rows, replayed.tasks)) output.line(line);
    if (left > 0) output.warn(`${left} tasks left out: they cannot be read completely`);
    return replayed.tasks > 0 ? EXIT.ok : EXIT.failed;
  },
});

/** Runs `make`, and reports settings out of bounds as usage errors. */
function replayedIn<T>(make: () => T): T {
  try {
    return make();
  } catch (thrown) {
    if (thrown instanceof RangeError) throw new UsageError(`${thrown.message}; see hopline what-if --help`);
    throw thrown;
  }
}

/**
 * Whether the profile adds nothing to a task. Only such a profile can be tried on a recorded task, because the additions of another profile
 * were never recorded.
 */
async function isForwarding(name: string | undefined): Promise<boolean> {
  if (name === undefined) return false;
  const { PROFILES } = await import('@hopline/profiles');
  const forwarding = [...PROFILES.values()].filter(({ turn }) => turn === 'forward');
  if (forwarding.some(profile => profile.name === name)) return true;
  const names = forwarding.map(profile => profile.name).join(' or ');
  throw new UsageError(`--profile must be ${names}: what another profile adds was not recorded; see hopline what-if --help`);
}

/** A row for each setting, with one bar for its frames and one for the delay of its text. */
function tableLines(rows: readonly WhatIfRow[], tasks: number): string[] {
  const tokens = rows[0]?.tokens ?? 0;
  const framesMax = Math.max(1, ...rows.map(({ frames }) => frames));
  const heldMax = Math.max(1, ...rows.map(({ heldMs }) => heldMs.p99));
  const perToken = (ms: number | undefined, own: number) => (ms === undefined || own === 0 ? '' : (ms / own).toFixed(1));
  const cells = rows.map(({ coalesce, frames, chunks, tokens: own, heldMs, cost }) => [
    coalesce === undefined ? 'recorded' : String(coalesce.eventCostMs),
    coalesce === undefined ? '' : `${coalesce.holdMsMax} ms`,
    String(frames),
    chunks === 0 ? '' : (own / chunks).toFixed(1),
    ...[heldMs.p50, heldMs.p99, heldMs.max].map(ms => `${ms} ms`),
    perToken(cost?.ms, own),
    perToken(cost?.optimumMs, own),
    bar(frames / framesMax),
    bar(heldMs.p99 / heldMax),
  ]);
  const titles = ['event cost', 'hold max', 'frames', 'tokens/chunk', 'hold p50', 'p99', 'max', 'cost', 'optimum'];
  const widths = titles.map((title, column) => Math.max(title.length, ...cells.map(row => row[column]!.length)));
  const line = (row: readonly string[]) =>
    [
      ...row.slice(0, BARS_FROM).map((cell, column) => cell.padStart(widths[column]!)),
      row[BARS_FROM]!.padEnd(BAR_CHARS),
      row[BARS_FROM + 1]!,
    ]
      .join('  ')
      .trimEnd();
  return [
    `${plural(tasks, 'task')}, ${tokens} tokens; frames of each client, and how long the oldest token of a chunk was held;`,
    'cost: event cost x chunks + delay of every token, ms per token; optimum: the lowest cost that any rule could reach, knowing all arrivals',
    line([...titles, 'frames', 'hold p99']),
    ...cells.map(line),
  ];
}

function bar(share: number): string {
  return '█'.repeat(Math.round(share * BAR_CHARS)) || (share > 0 ? '▏' : '');
}
