import { missingTransitions, transitionLines } from './coverage.ts';
import { CLIENTS_SEED_MIN, type LogKind } from './scenario.ts';
import type { Run } from './simulate.ts';
import { type Met, missingSituations, type SeedCounts, situationLines } from './situations.ts';

/** The situations, transitions and violations of many seeds. Reports of different seeds can be merged. */
export type SeedsReport = {
  log: LogKind;
  /** Undefined: each seed chose its own. */
  theme?: string;
  /** The code that ran. */
  commits: string[];
  ranges: { from: number; seeds: number }[];
  virtualHours: number;
  cpuSeconds: number;
  failed: { seed: number; rules: string[] }[];
  situations: Met;
  transitions: Met;
};

type OfSeeds = { log: LogKind; theme: string | undefined; from: number; commit: string };

export function emptyReport({ log, theme, from, commit }: OfSeeds): SeedsReport {
  return {
    log,
    ...(theme !== undefined && { theme }),
    commits: [commit],
    ranges: [{ from, seeds: 0 }],
    virtualHours: 0,
    cpuSeconds: 0,
    failed: [],
    situations: {},
    transitions: {},
  };
}

/** Adds the run of the next seed. */
export function addRun(report: SeedsReport, run: Pick<Run, 'violations' | 'endedAt' | 'situations' | 'coverage'>): void {
  const range = report.ranges.at(-1)!;
  const seed = range.from + range.seeds;
  range.seeds += 1;
  report.virtualHours += run.endedAt / 3_600_000;
  if (run.violations.length > 0) report.failed.push({ seed, rules: [...new Set(run.violations.map(({ rule }) => rule))] });
  for (const name of run.situations) addMet(report.situations, name, { seeds: 1, first: seed });
  for (const name of run.coverage) addMet(report.transitions, name, { seeds: 1, first: seed });
}

function addMet(met: Met, name: string, { seeds, first }: Met[string]): void {
  const before = met[name];
  met[name] = before === undefined ? { seeds, first } : { seeds: before.seeds + seeds, first: Math.min(before.first, first) };
}

/** One report of all seeds. Throws an Error of one sentence if a seed would count twice, or if the runs are of different kinds. */
export function merge(reports: readonly SeedsReport[]): SeedsReport {
  const [{ log, theme }] = reports as [SeedsReport];
  const merged: SeedsReport = { ...emptyReport({ log, theme, from: 0, commit: '' }), commits: [], ranges: [] };
  for (const report of reports) {
    if (report.log !== log || report.theme !== theme) throw new Error('the reports differ in their log or their theme');
    merged.commits = [...new Set([...merged.commits, ...report.commits])];
    merged.ranges.push(...report.ranges);
    merged.virtualHours += report.virtualHours;
    merged.cpuSeconds += report.cpuSeconds;
    merged.failed.push(...report.failed);
    for (const kind of ['situations', 'transitions'] as const)
      for (const [name, met] of Object.entries(report[kind])) addMet(merged[kind], name, met);
  }
  merged.ranges.sort((a, b) => a.from - b.from);
  merged.ranges.reduce((before, range) => {
    if (range.from < before.from + before.seeds) throw new Error(`two reports have seed ${range.from}`);
    return range;
  });
  return merged;
}

/** Lines for the summary, with the seeds that met each situation and transition. */
export function linesOf(report: SeedsReport): string[] {
  const { log, ranges, failed, virtualHours, cpuSeconds, situations, transitions } = report;
  const times = `${virtualHours.toFixed(1)} virtual hours, ${cpuSeconds.toFixed(1)} s of CPU`;
  return [
    `${seedsOf(ranges)} seeds, ${failed.length} failed, ${times}`,
    'seeds that met each situation:',
    ...situationLines(situations, countsOf(report)),
    'seeds that met each transition:',
    ...transitionLines(transitions, log === 'nats'),
  ];
}

/** Situations and transitions that this many seeds should have met and never did. One theme cannot meet everything. */
export function missingOf(report: SeedsReport): string[] {
  const { log, theme, ranges, situations, transitions } = report;
  if (theme !== undefined) return [];
  return [
    ...missingSituations(situations, countsOf(report)),
    ...missingTransitions(transitions, seedsOf(ranges), log === 'nats'),
  ];
}

function countsOf({ log, ranges }: SeedsReport): SeedCounts {
  const seeds = seedsOf(ranges);
  const clients = ranges.reduce(
    (sum, { from, seeds: ofRange }) => sum + Math.max(0, from + ofRange - Math.max(from, CLIENTS_SEED_MIN)),
    0,
  );
  return { any: seeds, wire: log === 'nats' ? seeds : 0, clients };
}

function seedsOf(ranges: SeedsReport['ranges']): number {
  return ranges.reduce((sum, { seeds }) => sum + seeds, 0);
}
