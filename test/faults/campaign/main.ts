import { writeFileSync } from 'node:fs';
import { machine } from '../../bench/measure/machine.ts';
import { canMountDisk } from '../../support/small-disk.ts';
import { type CampaignOptions, type ClassResult, runCampaign } from './campaign.ts';
import { type CommandOptions, helpText, readOptions, TASKS_OF_ROUND } from './command-options.ts';
import { mixedClass } from './fault-classes.ts';
import { type CampaignReport, markdownOf } from './report.ts';

/** Violations of one rule that are printed; the evidence has all. */
const SHOWN_MAX = 5;

const print = (line: string) => process.stdout.write(`${line}\n`);

let options: CommandOptions | undefined;
try {
  options = readOptions(process.argv.slice(2).filter(arg => arg !== '--'));
} catch (error) {
  process.stderr.write(`faults: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 2;
}
try {
  if (options?.help) print(helpText());
  else if (options !== undefined) process.exitCode = await main(options);
} catch (error) {
  // The command line is right here, so this is a defect of the campaign and needs its stack.
  process.stderr.write(`faults: ${error instanceof Error ? error.stack : String(error)}\n`);
  process.exitCode = 2;
}
process.exit();

async function main({ isMixed, minutes, faultsMin, report, ...command }: Omit<CommandOptions, 'help'>): Promise<number> {
  const { seed, replicas, size, concurrency } = command;
  const startedAt = performance.now();
  const found = machine();
  const reportOf = (classes: readonly ClassResult[]): CampaignReport => ({
    date: new Date().toISOString().slice(0, 10),
    seed,
    replicas,
    size,
    concurrency,
    seconds: Math.round((performance.now() - startedAt) / 1_000),
    machine: found,
    classes,
  });
  const onResults = (results: readonly ClassResult[]) => {
    if (report === undefined) return;
    writeFileSync(`${report}.md`, markdownOf(reportOf(results)));
    writeFileSync(`${report}.json`, `${JSON.stringify(reportOf(results), undefined, 2)}\n`);
  };
  const options: CampaignOptions = { ...command, ...(faultsMin !== undefined && { faultsMin }), print };
  const results = isMixed
    ? await runMixed(options, minutes === undefined ? Number.POSITIVE_INFINITY : startedAt + minutes * 60_000, onResults)
    : await runCampaign({ ...options, onResults });
  print(`\n${markdownOf(reportOf(results))}`);
  for (const { name, violations } of results) {
    for (const [rule, list] of Map.groupBy(violations, violation => violation.rule)) {
      print(`${name}: ${rule}: ${list.length} times`);
      for (const { detail, task } of list.slice(0, SHOWN_MAX)) print(`  ${detail.slice(0, 500)} (task ${task})`);
    }
  }
  return results.some(({ violations }) => violations.length > 0) ? 1 : 0;
}

/**
 * Rounds of mixed faults until there are enough tasks. Each has a cluster and a seed of its own. `lastBeginAt`: time in milliseconds of
 * `performance.now()` after which no round begins.
 */
async function runMixed(
  options: Omit<CampaignOptions, 'classes' | 'onResults'>,
  lastBeginAt: number,
  onResults: (results: readonly ClassResult[]) => void,
): Promise<ClassResult[]> {
  const results: ClassResult[] = [];
  const { replicas, tasks, print } = options;
  for (let seed = options.seed, begun = 0; begun < tasks && performance.now() < lastBeginAt; seed += 1) {
    print(`mixed faults, seed ${seed}: the faults of each strike, as they are drawn`);
    const classes = [mixedClass(seed, { replicas, hasSmallDisks: canMountDisk })];
    const wanted = Math.min(TASKS_OF_ROUND, tasks - begun);
    const [result] = await runCampaign({ ...options, classes, seed, tasks: wanted });
    begun += result!.tasks;
    results.push(result!);
    onResults(results);
  }
  return results;
}
