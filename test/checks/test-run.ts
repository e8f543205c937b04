import { relative, resolve as resolvePath } from 'node:path';
import { run } from 'node:test';
import { Coverage } from './coverage.ts';
import type { FileTimes } from './file-times.ts';
import { LONG_FILES } from './long-files.ts';
import type { ProcessorSlots } from './processor-slots.ts';
import { TestProcess } from './test-process.ts';
import type { TestEvent, TestReport } from './test-report.ts';
import { add, NOTHING, type Totals } from './totals.ts';
import { batchesOf } from './unit-batches.ts';

/** One run() collects coverage for all of its files and has this many processes, because its runner takes no other order. */
const COVERED_FILES_AT_ONCE = 3;
/** Number of slots for files of LONG_FILES that mostly wait. They run in addition to the others, because they leave the cores to them. */
export const WAITING_FILES = { always: 3, max: 6 };
/** Time limit of one process, so that a hung file fails and the others still run. The longest takes 5 minutes, most of which it waits. */
const FILE_MS_MAX = 30 * 60 * 1000;
/** For files that install releases and replace every pod under load. They run one at a time. */
export const ON_CLUSTER = { fileMsMax: 40 * 60 * 1000 };
/**
 * Hides a developer's KUBECONFIG, whose cluster may be in use. Only a run that selects the tests on a cluster may install releases there
 * and replace its pods.
 */
export function leaveClustersAlone(env: NodeJS.ProcessEnv): void {
  delete env.KUBECONFIG;
}

type Process = { files: string[]; atOnce: number; collectsCoverage?: boolean };

export type TestRunOptions = {
  root: string;
  files: string[];
  report: TestReport;
  signal: AbortSignal;
  /** Receives the time of each process. */
  times: FileTimes;
  /** Adds the covered lines of this run. Absent: coverage is not collected. Two runs at a time would mix theirs. */
  coverage?: Coverage | undefined;
  /** Prints while a file runs, instead of when it ends. Default false. */
  isLive?: boolean;
  /** Decides when the next process may start. Default: all start at once. */
  slots?: ProcessorSlots;
  fileMsMax?: number;
};

/** Runs test files, prints the results of each process when it ends, and counts them. */
export async function runTestFiles(options: TestRunOptions): Promise<Totals> {
  const { root, report, coverage, isLive = false, slots, signal } = options;
  const files = inOrder(root, options.files);
  if (files.length === 0) return NOTHING;
  using batches = batchesOf(root, files);
  if (coverage !== undefined) {
    const all = { files: batches.paths, atOnce: COVERED_FILES_AT_ONCE, collectsCoverage: true };
    return await runFiles(all, options, batches.nameOf, event => report.add(event));
  }
  const runFile = async (file: string): Promise<Totals> => {
    if (signal.aborted) return NOTHING;
    const kept: TestEvent[] = [];
    const take = (event: TestEvent) => (isLive ? report.add(event) : kept.push(event));
    const totals = await runFiles({ files: [file], atOnce: 1 }, options, batches.nameOf, take);
    for (const event of kept) report.add(event);
    return totals;
  };
  const ended = batches.paths.map(file => (slots === undefined ? runFile(file) : slots.run(() => runFile(file))));
  return (await Promise.all(ended)).reduce(add);
}

/** The long files first, so that none of them begins when the others have ended. */
function inOrder(root: string, files: readonly string[]): string[] {
  const rank = (file: string) => {
    const index = LONG_FILES.findIndex(({ path }) => `${relative(root, file)}/`.startsWith(`${path}/`));
    return index < 0 ? LONG_FILES.length : index;
  };
  return [...files].sort((left, right) => rank(left) - rank(right));
}

function runFiles(
  { files, atOnce, collectsCoverage = false }: Process,
  { signal, coverage, times, fileMsMax = FILE_MS_MAX }: TestRunOptions,
  nameOf: (path: string) => string,
  print: (event: TestEvent) => unknown,
): Promise<Totals> {
  if (files.length === 0) return Promise.resolve(NOTHING);
  // One run with coverage has a process for each file. Only the runner can end them.
  const child = collectsCoverage ? undefined : new TestProcess();
  const options = child?.runOptions ?? { coverage: true, timeout: fileMsMax, ...Coverage.globs };
  const stream = run({ files, concurrency: atOnce, signal, ...options });
  // Repeated at each interval, because a process that has just started is not known yet.
  const late = setInterval(() => {
    const [file = ''] = files;
    const message = `${nameOf(file)} was killed with its programs, because it ran for ${fileMsMax / 1000} s`;
    print({ type: 'test:diagnostic', data: { file, message, nesting: 0, level: 'error' } });
    child?.kill();
  }, fileMsMax);
  const ended = new Promise<Totals>((resolve, reject) => {
    let totals: Totals = { ...NOTHING, failed: 1 };
    let failedSuites = 0;
    stream.on('test:summary', ({ file, counts }) => {
      // Each file has a summary; the one without a file covers all of them.
      if (file !== undefined) return;
      const { passed, failed, cancelled, skipped, todo } = counts as Record<string, number>;
      totals = {
        passed: passed ?? 0,
        failed: (failed ?? 0) + (cancelled ?? 0) + failedSuites,
        skipped: (skipped ?? 0) + (todo ?? 0),
      };
    });
    stream.on('test:fail', ({ details }) => {
      // The counts include only tests. A suite fails by itself if its file does not load, or if one of its hooks fails.
      const { failureType } = details.error as Error & { failureType?: string };
      if (details.type === 'suite' && failureType !== 'subtestsFailed') failedSuites += 1;
    });
    stream.on('test:complete', ({ name, file, details }) => {
      // The process of a file is also a test, with the path as its name.
      if (file !== undefined && resolvePath(name) === file) times.add(nameOf(file), details.duration_ms, child?.cpuMs());
    });
    stream.on('test:coverage', ({ summary }) => coverage?.add(summary.files));
    // Leaves out the totals of a single run and the table of coverage, because this program prints sums.
    stream.on('data', (event: TestEvent) => {
      if (event.data.file !== undefined) print(event);
    });
    stream.once('error', reject).once('end', () => resolve(totals));
  });
  return ended.finally(() => clearInterval(late));
}
