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

/** Runs the checks in sequence and prints the output of those that fail. */
export async function runStaticChecks(root: string, print: (text: string) => void, checks = CHECKS): Promise<Totals> {
  const totals = { ...NOTHING };
  for (const { name, command } of checks) {
    const start = performance.now();
    const { ok, output } = await runTool(root, command);
    print(`${ok ? '✔' : '✖'} ${name} (${((performance.now() - start) / 1000).toFixed(1)} s)`);
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
