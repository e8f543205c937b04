import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { machine } from '../../bench/measure/machine.ts';
import { type ClassResult, runCampaign } from './campaign.ts';
import { FAULT_CLASSES } from './fault-classes.ts';
import { type CampaignReport, markdownOf } from './report.ts';

const USAGE = `Runs tasks on real processes and a real NATS while faults happen, and verifies every promise for every task.

  npm run faults [-- --tasks N] [--replicas 1|3] [--seed S] [--class NAME]… [--report FILE]

--tasks N        of all classes together, at least (default 5000)
--replicas N     1: one nats-server (default); 3: three of them, streams with three replicas
--seed S         decides tasks and faults (default 1); their timing depends on the machine
--class NAME     only this class; may be repeated. Classes with their number of replicas:
CLASSES
--concurrency N  tasks at one time (default 30)
--report FILE    writes FILE.md and FILE.json

The exit code is 1 when a promise was broken; a folder with the evidence is kept then.
`;

/** Violations of one rule that are printed; the evidence has all. */
const SHOWN_MAX = 5;

try {
  process.exitCode = await main(process.argv.slice(2).filter(arg => arg !== '--'));
} catch (error) {
  process.stderr.write(`faults: ${error instanceof Error ? error.stack : String(error)}\n`);
  process.exitCode = 2;
}
process.exit();

async function main(args: string[]): Promise<number> {
  const { values } = parseArgs({
    args,
    options: {
      tasks: { type: 'string', default: '5000' },
      replicas: { type: 'string', default: '1' },
      seed: { type: 'string', default: '1' },
      concurrency: { type: 'string', default: '30' },
      class: { type: 'string', multiple: true, default: [] },
      report: { type: 'string' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  const print = (line: string) => process.stdout.write(`${line}\n`);
  if (values.help) {
    const names = FAULT_CLASSES.map(({ name, replicas }) => `                   ${name} (${replicas.join(', ')})`);
    print(USAGE.replace('CLASSES', names.join('\n')));
    return 0;
  }
  const replicas = count('--replicas', values.replicas);
  if (replicas !== 1 && replicas !== 3) throw new Error('--replicas must be 1 or 3');
  const known = FAULT_CLASSES.filter(faultClass => faultClass.replicas.includes(replicas));
  const missing = values.class.find(name => !known.some(faultClass => faultClass.name === name));
  if (missing !== undefined) throw new Error(`there is no class "${missing}" with ${replicas} replicas; see --help`);
  const classes = known.filter(({ name }) => values.class.length === 0 || values.class.includes(name));
  const [tasks, seed, concurrency] = [
    count('--tasks', values.tasks),
    count('--seed', values.seed),
    count('--concurrency', values.concurrency),
  ];
  const startedAt = performance.now();
  const found = machine();
  const reportOf = (classes: readonly ClassResult[]): CampaignReport => ({
    date: new Date().toISOString().slice(0, 10),
    seed,
    replicas,
    concurrency,
    seconds: Math.round((performance.now() - startedAt) / 1_000),
    machine: found,
    classes,
  });
  const onResults = (results: readonly ClassResult[]) => {
    if (values.report === undefined) return;
    writeFileSync(`${values.report}.md`, markdownOf(reportOf(results)));
    writeFileSync(`${values.report}.json`, `${JSON.stringify(reportOf(results), undefined, 2)}\n`);
  };
  const results = await runCampaign({ tasks, classes, replicas, seed, concurrency, print, onResults });
  print(`\n${markdownOf(reportOf(results))}`);
  for (const { name, violations } of results) {
    for (const [rule, list] of Map.groupBy(violations, violation => violation.rule)) {
      print(`${name}: ${rule}: ${list.length} times`);
      for (const { detail, task } of list.slice(0, SHOWN_MAX)) print(`  ${detail.slice(0, 500)} (task ${task})`);
    }
  }
  return results.some(({ violations }) => violations.length > 0) ? 1 : 0;
}

function count(option: string, value: string): number {
  const number = Number(value);
  if (!Number.isSafeInteger(number) || number < 0) throw new Error(`${option} must be a whole number, not ${value}`);
  return number;
}
