import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { NOTHING, type Totals } from './totals.ts';

const CHECK_MS_MAX = 5 * 60 * 1000;
const OUTPUT_BYTES_MAX = 16 * 1024 * 1024;

const CHECKS = [
  { name: 'lint and format (biome)', command: ['biome', 'check'] },
  { name: 'unused code (knip)', command: ['knip', '--no-progress'] },
  { name: 'code used only by tests (knip)', command: ['knip', '--no-progress', '--production'] },
  { name: 'types (tsc)', command: ['tsc', '-p', '.', '--pretty', 'false'] },
  { name: 'types of the console page (tsc)', command: ['tsc', '-p', 'services/console/app', '--pretty', 'false'] },
];

/** Runs the checks at the same time, because most of them use one core, and prints the output of those that fail, in their order. */
export async function runStaticChecks(root: string, print: (text: string) => void, checks = CHECKS): Promise<Totals> {
  const totals = { ...NOTHING };
  const running = checks.map(async ({ name, command }) => {
    const start = performance.now();
    const { ok, output } = await runTool(root, command);
    return { name, ok, output, seconds: ((performance.now() - start) / 1000).toFixed(1) };
  });
  for (const check of running) {
    const { name, ok, output, seconds } = await check;
    print(`${ok ? '✔' : '✖'} ${name} (${seconds} s)`);
    if (ok) totals.passed += 1;
    else {
      totals.failed += 1;
      print(output.trimEnd());
    }
  }
  return totals;
}

function runTool(root: string, [tool, ...args]: string[]): Promise<{ ok: boolean; output: string }> {
  const program = join(root, 'node_modules', '.bin', tool ?? '');
  return new Promise(resolve => {
    execFile(program, args, { cwd: root, timeout: CHECK_MS_MAX, maxBuffer: OUTPUT_BYTES_MAX }, (error, stdout, stderr) =>
      resolve({ ok: error === null, output: `${stdout}${stderr}${stdout || stderr ? '' : (error?.message ?? '')}` }),
    );
  });
}
