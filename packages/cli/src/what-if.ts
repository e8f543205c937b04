import type { WhatIfRow } from '@hopline/replay';
import type { Output } from '@hopline/terminal';
import { EXIT, type ExitCode } from './exit-code.ts';
import { storedTasks, type TaskSources } from './stored-tasks.ts';
import { UsageError } from './usage-error.ts';

export type WhatIfCommand = TaskSources & {
  output: Output;
  json: boolean;
  /** Of HOPLINE_EVENT_COST_MS; none: a few over its range. */
  eventCosts: readonly number[];
  /** Of HOPLINE_HOLD_MS_MAX; none: the default. */
  holdMaxes: readonly number[];
  profile: string | undefined;
};

const EVENT_COSTS_MS = [0, 20, 40, 110, 250, 1_000] as const;
const BAR_CHARS = 24;
/** Column of the first bar. */
const BARS_FROM = 9;

/** `hopline what-if`: what clients would have received under other settings of the coalescer. */
export async function whatIf(command: WhatIfCommand): Promise<ExitCode> {
  const { output, json, eventCosts, holdMaxes, signal } = command;
  const { WhatIf } = await import('@hopline/replay');
  const costs = eventCosts.length > 0 ? eventCosts : EVENT_COSTS_MS;
  const settings = costs.flatMap(eventCostMs =>
    holdMaxes.length > 0 ? holdMaxes.map(holdMsMax => ({ eventCostMs, holdMsMax })) : [{ eventCostMs }],
  );
  const forwards = await isForwarding(command.profile);
  const replayed = replayedIn(() => new WhatIf({ settings, ...(forwards && { forwards }) }));
  let left = 0;
  for await (const { task, name } of storedTasks('what-if', command)) {
    if (!('unreadable' in task) && task.lacks !== 'inputs' && task.lacks !== 'beginning') replayed.add(task);
    else {
      left += 1;
      if (!command.all) output.warn(`${name}: ${'unreadable' in task ? task.unreadable : 'the file lacks inputs'}`);
    }
  }
  if (signal.aborted) return EXIT.interrupted;
  if (json) for (const row of replayed.rows) output.line(JSON.stringify({ tasks: replayed.tasks, ...row }));
  else for (const line of tableLines(replayed.rows, replayed.tasks)) output.line(line);
  if (left > 0) output.warn(`${left} tasks left out: they cannot be read as a whole`);
  return replayed.tasks > 0 ? EXIT.ok : EXIT.failed;
}

/** Settings out of bounds are a fault of the command line. */
function replayedIn<T>(make: () => T): T {
  try {
    return make();
  } catch (thrown) {
    if (thrown instanceof RangeError) throw new UsageError(`${thrown.message}; see hopline what-if --help`);
    throw thrown;
  }
}

/** Only what a profile adds can be left out of a recorded task; what another one would add was never recorded. */
async function isForwarding(name: string | undefined): Promise<boolean> {
  if (name === undefined) return false;
  const { PROFILES } = await import('@hopline/profiles');
  const forwarding = [...PROFILES.values()].filter(({ turn }) => turn === 'forward');
  if (forwarding.some(profile => profile.name === name)) return true;
  const names = forwarding.map(profile => profile.name).join(' or ');
  throw new UsageError(`--profile must be ${names}: what another profile adds was not recorded; see hopline what-if --help`);
}

/** A row for each setting, with a bar for its frames and one for the delay of its text. */
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
    `${tasks} ${tasks === 1 ? 'task' : 'tasks'}, ${tokens} tokens; frames of each client, and how long the oldest token of a chunk was held;`,
    'cost: event cost x chunks + delay of every token, ms a token; optimum: the lowest cost that any rule could reach, knowing all arrivals',
    line([...titles, 'frames', 'hold p99']),
    ...cells.map(line),
  ];
}

function bar(share: number): string {
  return '█'.repeat(Math.round(share * BAR_CHARS)) || (share > 0 ? '▏' : '');
}
