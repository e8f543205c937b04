import { run } from 'node:test';
import { spec } from 'node:test/reporters';
import { Coverage } from './coverage.ts';
import { NOTHING, type Totals } from './totals.ts';

/** Two brokers and their clients fill two cores: with more files at once, tests with time limits fail. */
const FILES_AT_ONCE = 2;
/** Bound for one file: a hung file fails and the others still run. The longest take 90 s, and 6 minutes with a fifth of a core. */
const FILE_MS_MAX = 10 * 60 * 1000;
/** A file that installs releases and replaces every pod under load, one at a time. */
export const ON_CLUSTER = { filesAtOnce: 1, fileMsMax: 40 * 60 * 1000 };

/**
 * The cluster in a developer's KUBECONFIG may be in use, so only a run that names the Kubernetes tests installs releases there and
 * replaces its pods.
 */
export function leaveClustersAlone(env: NodeJS.ProcessEnv): void {
  delete env.KUBECONFIG;
}

export type TestRunOptions = {
  files: string[];
  output: NodeJS.WritableStream;
  signal: AbortSignal;
  /** Adds the covered lines of this run. Absent: coverage is not collected. */
  coverage?: Coverage | undefined;
  filesAtOnce?: number;
  fileMsMax?: number;
};

/** Runs test files, each in its own process, prints results as they arrive and counts them. */
export function runTestFiles(options: TestRunOptions): Promise<Totals> {
  const { files, output, signal, coverage, filesAtOnce = FILES_AT_ONCE, fileMsMax = FILE_MS_MAX } = options;
  if (files.length === 0) return Promise.resolve(NOTHING);
  const collect = coverage === undefined ? {} : { coverage: true, ...Coverage.globs };
  const stream = run({ files, concurrency: filesAtOnce, timeout: fileMsMax, signal, ...collect });
  return new Promise((resolve, reject) => {
    let totals: Totals | null = null;
    stream.on('test:summary', ({ file, counts }) => {
      // Each file has a summary; the summary without a file covers all of them.
      if (file !== undefined) return;
      const { passed, failed, cancelled, skipped, todo } = counts as Record<string, number>;
      totals = { passed: passed ?? 0, failed: (failed ?? 0) + (cancelled ?? 0), skipped: (skipped ?? 0) + (todo ?? 0) };
    });
    stream.on('test:coverage', ({ summary }) => coverage?.add(summary.files));
    // The reporter would print the whole coverage table; closingLine prints its total.
    const withoutTable = stream.filter(({ type }: { type: string }) => type !== 'test:coverage');
    const report = withoutTable.compose(new spec());
    report.on('data', (text: Buffer) => output.write(text));
    report.once('error', reject).once('end', () => resolve(totals ?? { ...NOTHING, failed: 1 }));
  });
}
