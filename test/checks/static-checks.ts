import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { ProcessorSlots } from './processor-slots.ts';
import { NOTHING, type Totals } from './totals.ts';

const CHECK_MS_MAX = 5 * 60 * 1000;
const OUTPUT_BYTES_MAX = 16 * 1024 * 1024;
/**
 * knip uses only one core, so another tool runs next to it and uses the other core. With more at a time, three compilers would be in
 * memory.
 */
const AT_ONCE = 2;

/**
 * The compiler then checks only what has changed since the last run. In one thread, because several checkers check the declarations that they share
 * once each: 12.6 CPU seconds for the whole checkout instead of 20.8.
 */
const typesOf = (project: string, cache: string) => [
  ...['tsc', '-p', project, '--pretty', 'false', '--singleThreaded'],
  ...['--incremental', '--tsBuildInfoFile', `node_modules/.cache/${cache}.tsbuildinfo`],
];

type Check = { name: string; command: readonly string[] };

/** Lint and types: what a developer checks while typing. */
export const QUICK_CHECKS: readonly Check[] = [
  { name: 'lint and format (biome)', command: ['biome', 'check'] },
  { name: 'types (tsc)', command: typesOf('.', 'types') },
  { name: 'types of the console page (tsc)', command: typesOf('services/console/app', 'console-types') },
];

export const ALL_CHECKS: readonly Check[] = [
  ...QUICK_CHECKS,
  { name: 'unused code (knip)', command: ['knip', '--no-progress'] },
  { name: 'code used only by tests (knip)', command: ['knip', '--no-progress', '--production'] },
];

/** Runs the checks, and prints their results in order, with the output of those that fail. */
export async function runStaticChecks(root: string, print: (text: string) => void, checks: readonly Check[]): Promise<Totals> {
  const totals = { ...NOTHING };
  const slots = new ProcessorSlots({ always: AT_ONCE, max: AT_ONCE });
  const results = checks.map(({ command }) => slots.run(() => runTool(root, command)));
  for (const [index, { name }] of checks.entries()) {
    const { ok, output, ms } = await results[index]!;
    print(`${ok ? '✔' : '✖'} ${name} (${(ms / 1000).toFixed(1)} s)`);
    if (ok) totals.passed += 1;
    else {
      totals.failed += 1;
      print(output.trimEnd());
    }
  }
  return totals;
}

function runTool(root: string, [tool, ...args]: readonly string[]): Promise<{ ok: boolean; output: string; ms: number }> {
  const startMs = performance.now();
  const program = join(root, 'node_modules', '.bin', tool ?? '');
  return new Promise(resolve => {
    execFile(program, args, { cwd: root, timeout: CHECK_MS_MAX, maxBuffer: OUTPUT_BYTES_MAX }, (error, stdout, stderr) =>
      resolve({
        ok: error === null,
        output: `${stdout}${stderr}${stdout || stderr ? '' : (error?.message ?? '')}`,
        ms: performance.now() - startMs,
      }),
    );
  });
}
