import { appendFileSync, existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { wholeNumber } from '../support/whole-number.ts';
import { findMutant } from './find.ts';
import { FOLDERS, type Mutant, type PackageName } from './mutant.ts';
import { MUTANTS } from './mutants.ts';
import { rowOf, TABLE_HEAD } from './report.ts';
import { TreeCopy } from './tree-copy.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '');
const USAGE = `Plants realistic defects, one at a time, in a copy of the checkout, and prints what finds each of them, and how soon.

  npm run mutants [-- --package NAME] [--only NAME]… [--seeds N] [--jobs N] [--report FILE]
  npm run mutants -- --list

--package NAME   only the defects of a package: PACKAGES
--only NAME      only the defect of this name; may be repeated
--seeds N        seeds of the simulator (default 300; 0: it does not run)
--always-simulate  runs the simulator even if a test has found the defect
--campaign       runs a short campaign of faults for what nothing else has found
--jobs N         defects at one time (default 1)
--report FILE    appends the rows of the table to a file as they come
--list           prints the names

The unit tests of its package run first, those that should find it before the others; then tests with nats-server, the contract suite, the simulator and,
if asked for, the campaign. The exit code is 1 if something is not found. See test/mutants/README.md.
`;

type Listed = { of: PackageName; mutant: Mutant };

// The processes of a run end with this one.
for (const event of ['SIGINT', 'SIGTERM', 'SIGHUP', 'disconnect'] as const) process.once(event, () => process.exit(130));

try {
  process.exitCode = await main(process.argv.slice(2).filter(arg => arg !== '--'));
} catch (error) {
  process.stderr.write(`mutants: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 2;
}
// The bootstrap's open IPC channel would keep the process alive.
process.exit();

async function main(args: string[]): Promise<number> {
  const { values } = parseArgs({
    args,
    options: {
      package: { type: 'string' },
      only: { type: 'string', multiple: true, default: [] },
      seeds: { type: 'string', default: '300' },
      'always-simulate': { type: 'boolean', default: false },
      campaign: { type: 'boolean', default: false },
      jobs: { type: 'string', default: '1' },
      report: { type: 'string' },
      list: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  const print = (line: string) => process.stdout.write(`${line}\n`);
  if (values.help) {
    print(USAGE.replace('PACKAGES', Object.keys(FOLDERS).join(', ')));
    return 0;
  }
  const chosen = select(values.package, values.only);
  if (values.list) {
    for (const { of, mutant } of chosen) print(`${of}: ${mutant.name}`);
    return 0;
  }
  const report = values.report === undefined ? undefined : resolve(process.env.INIT_CWD ?? process.cwd(), values.report);
  if (report !== undefined && !existsSync(report)) appendFileSync(report, `${TABLE_HEAD}\n`);
  const options = {
    seeds: wholeNumber('--seeds', values.seeds),
    alwaysSimulates: values['always-simulate'],
    runsCampaign: values.campaign,
  };
  const waiting = [...chosen];
  let [missed, undecided] = [0, 0];
  const work = async () => {
    using copy = new TreeCopy(ROOT);
    // An interrupted run leaves no copy behind.
    process.once('exit', () => copy[Symbol.dispose]());
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const findings = await findMutant(copy, next.of, next.mutant, options).catch((error: Error) => {
        process.stderr.write(`mutants: ${error.message}\n`);
        return undefined;
      });
      if (findings === undefined) {
        undecided += 1;
        continue;
      }
      const row = rowOf(next.of, next.mutant, findings);
      print(row);
      if (report !== undefined) appendFileSync(report, `${row}\n`);
      if (findings.length === 0) missed += 1;
    }
  };
  // Compiles the modules of the copies once, although each copy has another path.
  process.env.NODE_COMPILE_CACHE ??= join(ROOT, 'node_modules', '.cache', 'hopline-compiled');
  print(TABLE_HEAD);
  await Promise.all(Array.from({ length: Math.max(1, wholeNumber('--jobs', values.jobs)) }, work));
  print(`${chosen.length} defects, ${missed} not found, ${undecided} undecided`);
  return undecided > 0 ? 2 : missed > 0 ? 1 : 0;
}

function select(of: string | undefined, names: readonly string[]): Listed[] {
  if (of !== undefined && !Object.hasOwn(FOLDERS, of))
    throw new Error(`--package must be one of: ${Object.keys(FOLDERS).join(', ')}`);
  const all = Object.entries(MUTANTS).flatMap(([name, mutants]) => mutants.map(mutant => ({ of: name as PackageName, mutant })));
  const unknown = names.find(name => !all.some(({ mutant }) => mutant.name === name));
  if (unknown !== undefined) throw new Error(`--only ${JSON.stringify(unknown)} is not the name of a defect; see --list`);
  return all.filter(one => (of === undefined || one.of === of) && (names.length === 0 || names.includes(one.mutant.name)));
}
