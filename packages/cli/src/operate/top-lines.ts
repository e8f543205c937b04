import type { TopAgent, TopCluster, TopProcess, TopSnapshot } from '@hopline/local-cluster';
import { wrap } from '@hopline/terminal';
import { agentState } from '../ask/agent-state.ts';

/** Live tasks that are listed; the counts above them include all. */
const TASK_LINES_MAX = 20;

/** Formats a snapshot as lines of at most `columns`; tables drop their last columns if they do not fit. */
export function topLines({ at, url, tasks, live, agents, cluster, processes, missing }: TopSnapshot, columns: number): string[] {
  const fit = (line: string) => line.slice(0, columns).trimEnd();
  const shown = live.slice(0, TASK_LINES_MAX);
  const sections = [
    [fit(`Hopline ${url}  ${at}`), ...wrap(`your tasks: ${countsOf(tasks)}`, columns)],
    cluster === undefined ? [] : clusterLines(cluster, columns),
    table(['AGENT', 'STATE', 'ACTIVE', 'TOKENS/S', 'FIRST TOKEN', 'TURNS', 'FAILED'], agents.map(agentRow), columns),
    table(['INSTANCE', 'STATE', 'CPU', 'MEMORY', 'LOOP P99', 'RESTARTS'], (processes ?? []).map(processRow), columns),
    table(
      ['TASK', 'STATE', 'SINCE', 'CONTEXT'],
      shown.map(({ id, state, since, contextId }) => [id, state, ageOf(since, Date.parse(at)), contextId]),
      columns,
    ),
    live.length > shown.length ? [fit(`and ${live.length - shown.length} more: hopline tasks --state working`)] : [],
    missing.flatMap(line => wrap(`missing: ${line}`, columns)),
  ];
  return sections.filter(lines => lines.length > 0).flatMap((lines, index) => (index === 0 ? lines : ['', ...lines]));
}

function countsOf(counts: Readonly<Record<string, number>>): string {
  // A list that could not be read has no states.
  if (Object.keys(counts).length === 0) return 'unknown';
  const words = Object.entries(counts).flatMap(([state, count]) => (count > 0 ? [`${count} ${state}`] : []));
  return words.length === 0 ? 'none open' : words.join(', ');
}

function clusterLines({ openTasks, lag, openStreams, rates, totals, hops }: TopCluster, columns: number): string[] {
  const { requests, requestErrors, tasksCreated, tasksEnded, tokens, chunks, events } = rates;
  const { takeovers, redeliveries, requeues, deadLetters, viewersCut, gaps } = totals;
  return [
    ...wrap(`all tasks: ${countsOf(openTasks)}; open streams ${openStreams}; lag ${lag} records`, columns),
    ...wrap(
      `a second: requests ${rate(requests)} (errors ${rate(requestErrors)}), tasks ${rate(tasksCreated)} created ${rate(tasksEnded)} ended, ` +
        `tokens ${rate(tokens)}, chunks ${rate(chunks)}, events ${rate(events)}`,
      columns,
    ),
    ...(hops.length === 0 ? [] : wrap(`critical paths: ${hops.slice(0, HOPS_MAX).map(shareOf).join(', ')}`, columns)),
    ...wrap(
      `since the start: takeovers ${takeovers}, redeliveries ${redeliveries}, requeues ${requeues}, dead letters ${deadLetters}, ` +
        `viewers cut ${viewersCut}, gaps ${gaps}`,
      columns,
    ),
  ];
}

/** Hops of turns that are listed, the most costly first. */
const HOPS_MAX = 4;
const shareOf = ({ hop, share }: TopCluster['hops'][number]) => `${hop} ${Math.round(share * 100)} %`;

const UNKNOWN = '-';
const rate = (perSecond: number) => (perSecond >= 10 ? perSecond.toFixed(0) : perSecond.toFixed(1));
const known = (value: number | undefined, show: (value: number) => string = String) =>
  value === undefined ? UNKNOWN : show(value);

function agentRow({ name, activeTasks, tokensPerS, firstTokenS, turnsEnded, turnsFailed, ...condition }: TopAgent): string[] {
  return [
    name,
    agentState(condition),
    known(activeTasks),
    known(tokensPerS, rate),
    known(firstTokenS, shortTime),
    known(turnsEnded),
    known(turnsFailed),
  ];
}

function processRow({ instance, state, cpu, memoryBytes, loopDelayS, restarts }: TopProcess): string[] {
  const percent = known(cpu, share => `${Math.round(share * 100)} %`);
  const memory = known(memoryBytes, bytes => `${Math.round(bytes / 1024 / 1024)} MiB`);
  return [instance, state, percent, memory, known(loopDelayS, shortTime), `${restarts}`];
}

const shortTime = (seconds: number) => (seconds < 1 ? `${Math.round(seconds * 1_000)} ms` : `${seconds.toFixed(1)} s`);

function ageOf(since: string | undefined, nowMs: number): string {
  const seconds = Math.max(0, Math.round((nowMs - Date.parse(since ?? '')) / 1_000));
  if (Number.isNaN(seconds)) return UNKNOWN;
  if (seconds < 120) return `${seconds} s`;
  return seconds < 7_200 ? `${Math.round(seconds / 60)} m` : `${Math.round(seconds / 3_600)} h`;
}

function table(heads: readonly string[], rows: readonly string[][], columns: number): string[] {
  if (rows.length === 0) return [];
  const all = [heads, ...rows];
  const widths = heads.map((_, column) => all.reduce((widest, row) => Math.max(widest, row[column]!.length), 0));
  let kept = heads.length;
  const widthOf = (count: number) => widths.slice(0, count).reduce((sum, width) => sum + width + 2, -2);
  while (kept > 2 && widthOf(kept) > columns) kept -= 1;
  return all.map(row => {
    const cells = row.slice(0, kept).map((cell, column) => cell.padEnd(widths[column]!));
    return cells.join('  ').slice(0, columns).trimEnd();
  });
}
