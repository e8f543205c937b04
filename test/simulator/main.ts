import { parseArgs } from 'node:util';
import { type Scenario, scenarioOf, THEME_NAMES } from './scenario.ts';
import { shrink } from './shrink.ts';
import { type Run, simulate } from './simulate.ts';

const USAGE = `Runs the services in virtual time over the log in memory, with faults, and verifies what they promise.

  npm run simulate -- [--seeds N] [--from N]     N seeds (default 200) from a first one (default 1)
  npm run simulate -- --seed N [--trace]         one seed again; --trace prints every event
  npm run simulate -- --seed N --shrink          the smallest scenario found that fails in the same way

--theme NAME: only faults of this kind, e.g. "rolling update" or none; by default the seed decides.

See test/simulator/README.md.
`;

const print = (text: string) => process.stdout.write(`${text}\n`);

try {
  process.exitCode = await main(process.argv.slice(2).filter(arg => arg !== '--'));
} catch (error) {
  process.stderr.write(`simulate: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 2;
}

async function main(args: string[]): Promise<number> {
  const { values } = parseArgs({
    args,
    options: {
      seed: { type: 'string' },
      seeds: { type: 'string', default: '200' },
      from: { type: 'string', default: '1' },
      theme: { type: 'string' },
      trace: { type: 'boolean', default: false },
      shrink: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) {
    print(USAGE);
    return 0;
  }
  const { theme } = values;
  if (theme !== undefined && !THEME_NAMES.includes(theme)) throw new Error(`--theme must be one of: ${THEME_NAMES.join(', ')}`);
  if (values.seed === undefined) return runSeeds(count('--from', values.from), count('--seeds', values.seeds), theme);
  const scenario = scenarioOf(count('--seed', values.seed), theme);
  if (values.shrink) return shrinkAndPrint(scenario);
  const run = await simulate(scenario, { trace: values.trace });
  for (const line of run.lines) print(line);
  printRun(scenario, run);
  return run.violations.length > 0 ? 1 : 0;
}

function count(option: string, value: string): number {
  const number = Number(value);
  if (!Number.isSafeInteger(number) || number < 0) throw new Error(`${option} must be a whole number, not ${value}`);
  return number;
}

async function runSeeds(from: number, seeds: number, theme: string | undefined): Promise<number> {
  let failed = 0;
  let virtualMs = 0;
  const startedAt = process.cpuUsage();
  for (let seed = from; seed < from + seeds; seed++) {
    const scenario = scenarioOf(seed, theme);
    const run = await simulate(scenario);
    virtualMs += run.endedAt;
    if (run.violations.length === 0) continue;
    failed += 1;
    printRun(scenario, run);
    print(`  again: npm run simulate -- --seed ${seed}${theme === undefined ? '' : ` --theme "${theme}"`} --trace`);
  }
  const { user, system } = process.cpuUsage(startedAt);
  const cpuS = ((user + system) / 1e6).toFixed(1);
  print(`${seeds} seeds, ${failed} failed, ${(virtualMs / 60_000).toFixed(0)} virtual minutes, ${cpuS} s of CPU`);
  return failed > 0 ? 1 : 0;
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
