import { CoverageCounts } from './coverage.ts';
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
import { shrink } from './shrink.ts';
import { type Run, simulate } from './simulate.ts';
import { SituationCounts } from './situations.ts';

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
};

/** Runs many seeds and prints those that fail. Resolves with the exit code. */
export async function runSeeds({ from, seeds, theme, log, stopsAtFailure }: SeedsOptions): Promise<number> {
  requireTheme({ theme, log });
  let failed = 0;
  let virtualMs = 0;
  const situations = new SituationCounts(log === 'nats');
  const coverage = new CoverageCounts(log === 'nats');
  const startedAt = process.cpuUsage();
  for (let seed = from; seed < from + seeds; seed++) {
    const scenario = scenarioOf(seed, theme, log);
    const run = await simulate(scenario);
    virtualMs += run.endedAt;
    situations.add(run.situations);
    coverage.add(run.coverage);
    if (run.violations.length === 0) continue;
    failed += 1;
    printRun(scenario, run);
    const options = `${log === 'memory' ? '' : ` --log ${log}`}${theme === undefined ? '' : ` --theme "${theme}"`}`;
    print(`  again: npm run simulate -- --seed ${seed}${options} --trace`);
    if (stopsAtFailure) return 1;
  }
  const { user, system } = process.cpuUsage(startedAt);
  const cpuS = ((user + system) / 1e6).toFixed(1);
  print(`${seeds} seeds, ${failed} failed, ${(virtualMs / 60_000).toFixed(0)} virtual minutes, ${cpuS} s of CPU`);
  print('seeds that met each situation:');
  for (const line of situations.lines()) print(line);
  print('seeds that met each transition:');
  for (const line of coverage.lines()) print(line);
  // One theme cannot meet every situation.
  const missing = theme === undefined ? situations.missing() : [];
  for (const situation of missing) print(`no seed met: ${situation}`);
  return failed > 0 || missing.length > 0 ? 1 : 0;
}

/** Tries seeds of the themes that fit a mutation until one breaks what it is known to break. Resolves with the exit code. */
export async function findDefect(name: string, seedsMax: number): Promise<number> {
  const { themes, breaks, foundBy = 1 } = MUTATIONS[name]!;
  const seeds = Array.from({ length: seedsMax }, (_, index) => index + 1);
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
