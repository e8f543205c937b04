import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { fillCompileCache } from './compile-cache.ts';
import { Coverage } from './coverage.ts';
import { FileTimes } from './file-times.ts';
import { waitsMostly } from './long-files.ts';
import { parseArguments } from './parse-arguments.ts';
import { ProcessorSlots } from './processor-slots.ts';
import { bundleServices } from './service-bundle.ts';
import { ALL_CHECKS, QUICK_CHECKS, runStaticChecks } from './static-checks.ts';
import { findQuickFiles, findTestFiles, NO_FILES, type TestFiles } from './test-files.ts';
import { TestReport } from './test-report.ts';
import { leaveClustersAlone, ON_CLUSTER, runTestFiles, type TestRunOptions, WAITING_FILES } from './test-run.ts';
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
  const coverage = isCovered ? new Coverage() : undefined;
  // Caches compiled modules for this run and later ones, which saves a third of the CPU time of a short test.
  process.env.NODE_COMPILE_CACHE ??= join(ROOT, 'node_modules', '.cache', 'hopline-compiled');
  // The same for Python: without its compiled modules, strands-agents takes 2.9 CPU seconds to import instead of 1.2.
  delete process.env.PYTHONDONTWRITEBYTECODE;
  const times = new FileTimes();
  const report = new TestReport(process.stdout);
  // A single file is printed as it goes. Several are printed one by one, because they would mix.
  const isLive = Object.values(found).flat().length === 1;
  const run = { root: ROOT, report, signal: stop.signal, times, isLive };
  const checks = isFull ? ALL_CHECKS : isQuick ? QUICK_CHECKS : [];
  // Side by side, because the last of the checks uses one core.
  const [checked] = await Promise.all([
    runStaticChecks(ROOT, console.log, checks),
    found.withBroker.length > 1 ? prepareServices(isCovered) : undefined,
  ]);
  const totals = [checked, ...(await runTests(found, run, coverage))];
  await report.end();
  const slowest = times.slowest(SLOWEST_SHOWN);
  if (slowest.length > 1) {
    console.log(['The slowest files:', ...slowest].join('\n'));
    console.log(`${(times.totalCpuMs() / 1000).toFixed(0)} s of CPU in all files`);
  }
  if (coverage !== undefined) console.log(coverage.summary());
  return totals.reduce(add);
}

async function prepareServices(isCovered: boolean): Promise<void> {
  // A bundle has no coverage of the sources.
  if (!isCovered) process.env.TEST_SERVICES = await bundleServices(ROOT);
  await fillCompileCache();
}

async function runTests(
  { unit, withBroker, onCluster }: TestFiles,
  run: Omit<TestRunOptions, 'files'>,
  coverage: Coverage | undefined,
): Promise<Totals[]> {
  const slots = new ProcessorSlots();
  const totals =
    coverage !== undefined
      ? [await runTestFiles({ ...run, files: unit, coverage }), await runTestFiles({ ...run, files: withBroker, coverage })]
      : await Promise.all([
          runTestFiles({ ...run, files: unit.filter(file => !isWaiting(file)), slots }),
          // They run next to the others during the whole run, because they leave the cores to them.
          runTestFiles({ ...run, files: [...unit, ...withBroker].filter(isWaiting), slots: new ProcessorSlots(WAITING_FILES) }),
          runTestFiles({ ...run, files: withBroker.filter(file => !isWaiting(file)), slots }),
        ]);
  return [...totals, await runTestFiles({ ...run, ...ON_CLUSTER, files: onCluster, slots: lanes(1) })];
}

/** A fixed number of slots, however busy the processors are. */
function lanes(count: number): ProcessorSlots {
  return new ProcessorSlots({ always: count, max: count });
}

function isWaiting(file: string): boolean {
  return waitsMostly(relative(ROOT, file));
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
