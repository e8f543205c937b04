import { fileURLToPath } from 'node:url';
import { Coverage } from './coverage.ts';
import { runStaticChecks } from './static-checks.ts';
import { findTestFiles } from './test-files.ts';
import { leaveClustersAlone, ON_CLUSTER, runTestFiles } from './test-run.ts';
import { add, closingLine, NOTHING, type Totals } from './totals.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '');

// The test processes, and the processes they started, end with this one.
const stop = new AbortController();
for (const event of ['SIGINT', 'SIGTERM', 'SIGHUP', 'disconnect'] as const) process.once(event, () => stop.abort());

async function runChecks(): Promise<Totals> {
  const args = process.argv.slice(2);
  const paths = args.filter(arg => arg !== '--coverage');
  const unknown = paths.find(path => path.startsWith('-'));
  if (unknown !== undefined) throw new Error(`unknown option ${unknown}; see \`npm test -- --help\``);
  const { unit, withBroker, onCluster } = findTestFiles(ROOT, paths, process.env.INIT_CWD ?? process.cwd());
  const isFull = paths.length === 0;
  const isAsked = args.length > paths.length;
  if (isFull) leaveClustersAlone(process.env);
  const coverage = isFull || isAsked ? new Coverage() : undefined;
  const run = { output: process.stdout, signal: stop.signal };
  const checked = isFull ? await runStaticChecks(ROOT, console.log) : NOTHING;
  const unitTotals = await runTestFiles({ ...run, files: unit, coverage });
  // Services that run beside a broker would write their coverage when they stop, so it is collected only on request.
  const brokerTotals = await runTestFiles({ ...run, files: withBroker, coverage: isAsked ? coverage : undefined });
  const clusterTotals = await runTestFiles({ ...run, ...ON_CLUSTER, files: onCluster });
  if (coverage !== undefined) console.log(coverage.summary(isAsked ? 'all tests of this run' : 'tests without a broker'));
  return [unitTotals, brokerTotals, clusterTotals].reduce(add, checked);
}

try {
  const totals = await runChecks();
  console.log(closingLine(totals));
  process.exitCode = totals.failed > 0 ? 1 : 0;
} catch (error) {
  console.error(`hopline: ${error instanceof Error ? error.message : String(error)}`);
  console.log(closingLine({ ...NOTHING, failed: 1 }));
  process.exitCode = 1;
}
// The bootstrap's open IPC channel would keep the process alive.
process.exit();
