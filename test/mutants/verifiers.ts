import { spawn } from 'node:child_process';
import { join, relative, resolve } from 'node:path';
import { run } from 'node:test';
import { batchesOf } from '../checks/unit-batches.ts';

/** Bound for one test process. A test that hangs fails here, so a mutant may be found by it. */
const TESTS_MS_MAX = 100_000;
/** Time limit of one seed. Most seeds take a fifth of a second. */
const SEED_MS_MAX = 10_000;
const CAMPAIGN_MS_MAX = 30 * 60_000;
const OUTPUT_CHARS_MAX = 64 * 1024;

/** The first thing that failed. `why`: the message of a test's error. */
export type Failure = { what: string; why?: string };

/** Runs test files, those of a package in one process, up to the first test that fails. */
export async function runTests(root: string, paths: readonly string[]): Promise<Failure | undefined> {
  if (paths.length === 0) return undefined;
  using batches = batchesOf(
    root,
    paths.map(path => join(root, path)),
  );
  for (const path of batches.paths) {
    const failure = await runTestFile(root, path, batches.nameOf(path));
    if (failure !== undefined) return failure;
  }
  return undefined;
}

function runTestFile(root: string, path: string, shown: string): Promise<Failure | undefined> {
  const stop = new AbortController();
  const stream = run({ files: [path], cwd: root, timeout: TESTS_MS_MAX, signal: stop.signal });
  let failure: Failure | undefined;
  stream.on('test:fail', ({ name, file, details }) => {
    if (failure !== undefined) return;
    // The process of a file is also a test. It fails without any other failure if the file does not load, or if it does not end.
    const isProcess = resolve(root, name) === path;
    const what = isProcess ? `${shown} does not end, or does not load` : `${relative(root, file ?? path)}: ${name}`;
    const { cause } = details.error;
    failure = { what, why: cause instanceof Error ? cause.message : details.error.message };
    stop.abort();
  });
  stream.resume();
  return new Promise((resolvePromise, reject) => stream.once('error', reject).once('end', () => resolvePromise(failure)));
}

/**
 * Runs seeds of the simulator, all themes, up to the first that fails. `log`: see its command line. `seed`: the number of the failed seed.
 */
export async function runSeeds(
  root: string,
  options: { from: number; seeds: number; log: 'memory' | 'nats' },
): Promise<(Failure & { seed: number }) | undefined> {
  const { from, seeds, log } = options;
  const which = ['--log', log, '--from', String(from), '--seeds', String(seeds)];
  const args = ['test/simulator/main.ts', ...which, '--first-failure'];
  const { code, output } = await runProgram(root, args, 60_000 + seeds * SEED_MS_MAX);
  if (code === 0) return undefined;
  const [, seed, rule] = /^seed (\d+): (?:.*\n)(?: {2}fault .*\n)* {2}(.*)$/m.exec(output) ?? [];
  // If no seed failed, the mutated code does not load, or a run does not end.
  if (seed === undefined) return { seed: from, what: output.trim().split('\n').at(-1) || 'the simulator does not end' };
  return { seed: Number(seed), what: `seed ${seed}: ${rule?.split(':')[0]}` };
}

/** Runs a short campaign of faults on real processes. */
export async function runCampaign(root: string): Promise<Failure | undefined> {
  const args = ['test/faults/campaign/main.ts', '--tasks', '400', '--faults', '1', '--concurrency', '8', '--seed', '1'];
  const { code, output } = await runProgram(root, args, CAMPAIGN_MS_MAX);
  return code === 0 ? undefined : { what: output.trim().split('\n').at(-1) || 'the campaign does not end' };
}

function runProgram(root: string, args: readonly string[], msMax: number): Promise<{ code: number | null; output: string }> {
  const child = spawn(process.execPath, args, { cwd: root, timeout: msMax, killSignal: 'SIGKILL' });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      output = (output + text).slice(-OUTPUT_CHARS_MAX);
    });
  return new Promise((resolvePromise, reject) => {
    child.once('error', reject).once('close', code => resolvePromise({ code, output }));
  });
}
