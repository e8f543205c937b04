import { run } from 'node:test';
import { spec } from 'node:test/reporters';
import { NOTHING, type Totals } from './totals.ts';

/** Two brokers and their clients fill two cores: more files at once only make the tests with time limits fail. */
const FILES_AT_ONCE = 2;
/** For one file; a hung one fails and the others still run. */
const FILE_MS_MAX = 5 * 60 * 1000;

/** Runs test files, each in its own process, prints their results as they come and counts them. */
export function runTestFiles(files: string[], output: NodeJS.WritableStream, signal: AbortSignal): Promise<Totals> {
  if (files.length === 0) return Promise.resolve(NOTHING);
  const stream = run({ files, concurrency: FILES_AT_ONCE, timeout: FILE_MS_MAX, signal });
  return new Promise((resolve, reject) => {
    let totals: Totals | null = null;
    stream.on('test:summary', ({ file, counts }) => {
      // One summary comes per file, the last one is for all.
      if (file !== undefined) return;
      const { passed, failed, cancelled, skipped, todo } = counts as Record<string, number>;
      totals = { passed: passed ?? 0, failed: (failed ?? 0) + (cancelled ?? 0), skipped: (skipped ?? 0) + (todo ?? 0) };
    });
    const report = stream.compose(new spec());
    report.on('data', (text: Buffer) => output.write(text));
    report.once('error', reject).once('end', () => resolve(totals ?? { ...NOTHING, failed: 1 }));
  });
}
