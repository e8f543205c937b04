import { relative, resolve as resolvePath } from 'node:path';
import { PassThrough } from 'node:stream';
import { run } from 'node:test';
import { spec } from 'node:test/reporters';
import { Coverage } from './coverage.ts';
import type { FileTimes } from './file-times.ts';
import { isWaiting, LONG_FILES } from './long-files.ts';
import { add, NOTHING, type Totals } from './totals.ts';

/** Two brokers and their clients fill two cores: with more files at once, tests with time limits fail. */
const FILES_AT_ONCE = 2;
/**
 * Files of LONG_FILES that mostly wait run in addition, because they leave the cores to the others. The longest one takes a slot for
 * itself.
 */
const WAITING_FILES_AT_ONCE = 2;
/** Bound for one file: a hung file fails and the others still run. The longest file takes 8 minutes, most of which it waits. */
const FILE_MS_MAX = 15 * 60 * 1000;
/** For files that install releases and replace every pod under load: they run one at a time. */
export const ON_CLUSTER = { filesAtOnce: 1, fileMsMax: 40 * 60 * 1000 };

/**
 * Hides a developer's KUBECONFIG, whose cluster may be in use. Only a run that selects the tests on a cluster may install releases there
 * and replace its pods.
 */
export function leaveClustersAlone(env: NodeJS.ProcessEnv): void {
  delete env.KUBECONFIG;
}

type TestEvent = { type: string; data: { file?: string; details?: { duration_ms?: number } } };
type Run = { files: string[]; atOnce: number; collectsCoverage?: boolean };

export type TestRunOptions = {
  root: string;
  files: string[];
  output: NodeJS.WritableStream;
  signal: AbortSignal;
  /** Receives the time of each file. */
  times: FileTimes;
  /** Adds the covered lines of this run. Absent: coverage is not collected. */
  coverage?: Coverage | undefined;
  filesAtOnce?: number;
  fileMsMax?: number;
};

/** Runs test files, each in its own process, prints the results of each file when it ends, and counts them. */
export async function runTestFiles(options: TestRunOptions): Promise<Totals> {
  const { root, output, coverage, filesAtOnce = FILES_AT_ONCE } = options;
  const files = inOrder(root, options.files);
  if (files.length === 0) return NOTHING;
  const events = new PassThrough({ objectMode: true });
  const report = events.compose(new spec());
  report.on('data', (text: Buffer) => output.write(text));
  const printed = new Promise<void>((resolve, reject) => report.once('error', reject).once('end', resolve));
  // A single file is printed as it goes. Several are printed one by one, because they would mix.
  const isLive = files.length === 1;
  const lane = async (queue: string[]): Promise<Totals> => {
    let totals = NOTHING;
    for (let file = queue.shift(); file !== undefined && !options.signal.aborted; file = queue.shift()) {
      const kept: TestEvent[] = [];
      const take = (event: TestEvent) => (isLive ? events.write(event) : kept.push(event));
      totals = add(totals, await runFiles({ files: [file], atOnce: 1 }, options, take));
      for (const event of kept) events.write(event);
    }
    return totals;
  };
  // Concurrent runs would mix their coverage.
  const waiting = coverage === undefined ? files.filter(file => isWaiting(relative(root, file))) : [];
  const busy = files.filter(file => !waiting.includes(file));
  const ended = await Promise.all([
    ...Array.from({ length: WAITING_FILES_AT_ONCE }, () => lane(waiting)),
    ...(coverage === undefined
      ? Array.from({ length: filesAtOnce }, () => lane(busy))
      : [runFiles({ files: busy, atOnce: filesAtOnce, collectsCoverage: true }, options, event => events.write(event))]),
  ]);
  events.end();
  await printed;
  return ended.reduce(add);
}

/** The long files first, so that none of them begins when the others have ended. */
function inOrder(root: string, files: readonly string[]): string[] {
  const paths = LONG_FILES.map(({ path }) => path);
  const rank = (file: string) => (paths.indexOf(relative(root, file)) + 1 || paths.length + 1) - 1;
  return [...files].sort((left, right) => rank(left) - rank(right));
}

function runFiles(
  { files, atOnce, collectsCoverage = false }: Run,
  { signal, coverage, times, fileMsMax = FILE_MS_MAX }: TestRunOptions,
  print: (event: TestEvent) => unknown,
): Promise<Totals> {
  if (files.length === 0) return Promise.resolve(NOTHING);
  const collect = collectsCoverage ? { coverage: true, ...Coverage.globs } : {};
  const stream = run({ files, concurrency: atOnce, timeout: fileMsMax, signal, ...collect });
  return new Promise((resolve, reject) => {
    let totals: Totals = { ...NOTHING, failed: 1 };
    stream.on('test:summary', ({ file, counts }) => {
      // Each file has a summary; the one without a file covers all of them.
      if (file !== undefined) return;
      const { passed, failed, cancelled, skipped, todo } = counts as Record<string, number>;
      totals = { passed: passed ?? 0, failed: (failed ?? 0) + (cancelled ?? 0), skipped: (skipped ?? 0) + (todo ?? 0) };
    });
    stream.on('test:complete', ({ name, file, details }) => {
      // The process of a file is a test, too, with the path as its name.
      if (file !== undefined && resolvePath(name) === file) times.add(file, details.duration_ms);
    });
    stream.on('test:coverage', ({ summary }) => coverage?.add(summary.files));
    // Leaves out the totals of a single run and the table of coverage, because this program prints sums.
    stream.on('data', (event: TestEvent) => {
      if (event.data.file !== undefined) print(event);
    });
    stream.once('error', reject).once('end', () => resolve(totals));
  });
}
