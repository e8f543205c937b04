import { readFileSync, writeFileSync } from 'node:fs';
import { commit } from '../bench/measure/machine.ts';
import { MUTATIONS } from './mutations.ts';
import {
  GATHERED_THEME_NAMES,
  type LogKind,
  NATS_THEME_NAMES,
  type Scenario,
  STEP_THEME_NAMES,
  scenarioOf,
  THEME_NAMES,
} from './scenario.ts';
import { addRun, emptyReport, linesOf, merge, missingOf, type SeedsReport } from './seeds-report.ts';
import { shrink } from './shrink.ts';
import { type Run, simulate } from './simulate.ts';

const print = (text: string) => process.stdout.write(`${text}\n`);

type SeedOptions = { theme: string | undefined; log: LogKind; trace: boolean; shrink: boolean };

/** Runs one seed and prints what happened. Resolves with the exit code. */
export async function runSeed(seed: number, options: SeedOptions): Promise<number> {
  requireTheme(options);
  const scenario = scenarioOf(seed, options.theme, options.log);
  if (options.shrink) return shrinkAndPrint(scenario);
  const run = await simulate(scenario, { trace: options.trace });
  for (const line of run.lines) print(line);
  printRun(scenario, run);
  return run.violations.length > 0 ? 1 : 0;
}

function requireTheme({ theme, log }: { theme: string | undefined; log: LogKind }): void {
  const names = [...(log === 'nats' ? NATS_THEME_NAMES : THEME_NAMES), ...STEP_THEME_NAMES, ...GATHERED_THEME_NAMES];
  if (theme !== undefined && !names.includes(theme)) throw new Error(`--theme must be one of: ${names.join(', ')}`);
}

type SeedsOptions = {
  from: number;
  seeds: number;
  theme: string | undefined;
  log: LogKind;
  /** Ends with the first seed that fails. */
  stopsAtFailure: boolean;
  /** A file for the report, which is written after each seed. */
  report: string | undefined;
};

/** Runs many seeds and prints those that fail. Resolves with the exit code. */
export async function runSeeds({ from, seeds, theme, log, stopsAtFailure, report: path }: SeedsOptions): Promise<number> {
  requireTheme({ theme, log });
  const report = emptyReport({ log, theme, from, commit: path === undefined ? '' : commit() });
  const startedAt = process.cpuUsage();
  for (let seed = from; seed < from + seeds; seed++) {
    const scenario = scenarioOf(seed, theme, log);
    const run = await simulate(scenario);
    addRun(report, run);
    const { user, system } = process.cpuUsage(startedAt);
    report.cpuSeconds = (user + system) / 1e6;
    if (path !== undefined) writeReport(path, report);
    if (run.violations.length === 0) continue;
    printRun(scenario, run);
    const options = `${log === 'memory' ? '' : ` --log ${log}`}${theme === undefined ? '' : ` --theme "${theme}"`}`;
    print(`  again: npm run simulate -- --seed ${seed}${options} --trace`);
    if (stopsAtFailure) return 1;
  }
  return judge(report);
}

/** Judges the seeds of several reports as those of one run. Resolves with the exit code. */
export function mergeReports(paths: readonly string[], mergedPath: string | undefined): number {
  if (paths.length === 0) throw new Error('--merge needs the files of reports');
  const merged = merge(paths.map(path => JSON.parse(readFileSync(path, 'utf8')) as SeedsReport));
  if (mergedPath !== undefined) writeReport(mergedPath, merged);
  for (const { from, seeds } of merged.ranges) print(`seeds ${from} to ${from + seeds - 1}`);
  print(`commits: ${merged.commits.join('; ')}`);
  for (const { seed, rules } of merged.failed) print(`seed ${seed}: ${rules.join('; ')}`);
  return judge(merged);
}

function writeReport(path: string, report: SeedsReport): void {
  writeFileSync(path, `${JSON.stringify(report, undefined, 2)}\n`);
}

function judge(report: SeedsReport): number {
  for (const line of linesOf(report)) print(line);
  const missing = missingOf(report);
  for (const name of missing) print(`no seed met: ${name}`);
  return report.failed.length > 0 || missing.length > 0 ? 1 : 0;
}

/** Tries seeds of the themes that fit a mutation until one breaks what it is known to break. Resolves with the exit code. */
export async function findDefect(name: string, seedsMax: number): Promise<number> {
  const { themes, breaks, seedsFrom = 1, foundBy = seedsFrom } = MUTATIONS[name]!;
  const seeds = Array.from({ length: seedsMax }, (_, index) => seedsFrom + index);
  for (const seed of new Set([foundBy, ...seeds])) {
    const run = await simulate(scenarioOf(seed, themes[seed % themes.length]));
    const found = run.violations.find(({ rule }) => breaks.test(rule));
    if (found === undefined) continue;
    print(`found by seed ${seed} with theme "${themes[seed % themes.length]}": ${found.rule}: ${found.detail}`);
    return 0;
  }
  print(`not found in ${seedsMax} seeds`);
  return 1;
}

function printRun({ seed, faults }: Scenario, { violations, digest, endedAt }: Run): void {
  print(`seed ${seed}: ${violations.length} violations, ended at ${(endedAt / 1_000).toFixed(1)} s, digest ${digest}`);
  for (const fault of faults) print(`  fault ${JSON.stringify(fault)}`);
  for (const { rule, detail } of violations) print(`  ${rule}: ${detail}`);
}

async function shrinkAndPrint(scenario: Scenario): Promise<number> {
  const rules = new Set((await simulate(scenario)).violations.map(({ rule }) => rule));
  if (rules.size === 0) throw new Error(`seed ${scenario.seed} does not fail`);
  const smallest = await shrink(scenario, async smaller =>
    (await simulate(smaller)).violations.some(({ rule }) => rules.has(rule)),
  );
  print(JSON.stringify(smallest, undefined, 2));
  printRun(smallest, await simulate(smallest));
  return 1;
}
