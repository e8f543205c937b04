import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { fillCompileCache } from './compile-cache.ts';
import { Coverage } from './coverage.ts';
import { FileTimes } from './file-times.ts';
import { isWaiting } from './long-files.ts';
import { parseArguments } from './parse-arguments.ts';
import { bundleServices } from './service-bundle.ts';
import { runStaticChecks } from './static-checks.ts';
import { findQuickFiles, findTestFiles, NO_FILES } from './test-files.ts';
import { TestReport } from './test-report.ts';
import { leaveClustersAlone, ON_CLUSTER, runTestFiles, WAITING_FILES_AT_ONCE } from './test-run.ts';
import { add, closingLine, NOTHING, type Totals } from './totals.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '');
const SLOWEST_SHOWN = 20;

// The test processes, and the processes that they started, end with this one.
const stop = new AbortController();
for (const event of ['SIGINT', 'SIGTERM', 'SIGHUP', 'disconnect'] as const) process.once(event, () => stop.abort());

async function runChecks(): Promise<Totals> {
  const { paths, isQuick, isCovered } = parseArguments(process.argv.slice(2));
  const found = isQuick
    ? { ...NO_FILES, unit: findQuickFiles(ROOT) }
    : findTestFiles(ROOT, paths, process.env.INIT_CWD ?? process.cwd());
  const isFull = paths.length === 0 && !isQuick;
  if (isFull || isQuick) leaveClustersAlone(process.env);
  const coverage = isFull || isCovered ? new Coverage() : undefined;
  // Caches compiled modules for this run and later ones, which saves a third of the CPU time of a short test.
  process.env.NODE_COMPILE_CACHE ??= join(ROOT, 'node_modules', '.cache', 'hopline-compiled');
  const times = new FileTimes();
  const report = new TestReport(process.stdout);
  // A single file is printed as it goes. Several are printed one by one, because they would mix.
  const isLive = Object.values(found).flat().length === 1;
  const run = { root: ROOT, report, signal: stop.signal, times, isLive };
  const checked = isFull || isQuick ? await runStaticChecks(ROOT, console.log) : NOTHING;
  if (found.withBroker.length > 1) {
    // A bundle has no coverage of the sources.
    if (!isCovered) process.env.TEST_SERVICES = await bundleServices(ROOT);
    await fillCompileCache();
  }
  // Services of tests with a broker would write coverage when they stop, so it is collected only on request.
  const brokerCoverage = isCovered ? coverage : undefined;
  // Concurrent runs would mix their coverage.
  const waiting = brokerCoverage === undefined ? found.withBroker.filter(file => isWaiting(relative(ROOT, file))) : [];
  const busy = found.withBroker.filter(file => !waiting.includes(file));
  // Starts them at once: the longest of them takes longer than the tests without a broker, and leaves the cores to those.
  const waited = runTestFiles({ ...run, files: waiting, filesAtOnce: WAITING_FILES_AT_ONCE });
  const runBusy = async () =>
    add(
      await runTestFiles({ ...run, files: found.unit, coverage }),
      await runTestFiles({ ...run, files: busy, coverage: brokerCoverage }),
    );
  const [busyTotals, waitingTotals] = await Promise.all([runBusy(), waited]);
  const clusterTotals = await runTestFiles({ ...run, ...ON_CLUSTER, files: found.onCluster });
  await report.end();
  const slowest = times.slowest(SLOWEST_SHOWN);
  if (slowest.length > 1) console.log(['The slowest files:', ...slowest].join('\n'));
  if (coverage !== undefined) console.log(coverage.summary(isCovered ? 'all tests of this run' : 'tests without a broker'));
  return [busyTotals, waitingTotals, clusterTotals].reduce(add, checked);
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
