import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bindingOf, LEVELS, type Level, type Result, readJunit } from './tck-results.ts';

const TESTS = 'tests/compatibility/';
/** A run takes under a minute per binding; a longer one hangs. */
const RUN_MS_MAX = 15 * 60_000;
const OUTPUT_CHARS_MAX = 4 * 1024 * 1024;

export type Kit = {
  /** Folder of the checkout. */
  path: string;
  /** Interpreter with the kit's dependencies. */
  python: string;
};

/** Throws for a folder that is not a checkout of the kit. `python` undefined: the checkout's environment, or `python3`. */
export function kitAt(path: string, python: string | undefined): Kit {
  if (!existsSync(join(path, TESTS)))
    throw new Error(`${path} is not a checkout of a2aproject/a2a-tck, branch 1.0-dev: ${TESTS} is missing`);
  const installed = join(path, '.venv/bin/python');
  return { path, python: python ?? (existsSync(installed) ? installed : 'python3') };
}

/** Runs the kit against the server at `url`; returns results and the folder of the reports. `transports`: comma-separated, or `all`. */
export async function runKit(kit: Kit, url: string, transports: string): Promise<{ results: Result[]; reports: string }> {
  const levels = await levelsOf(kit);
  const reports = mkdtempSync(join(tmpdir(), 'hopline-tck-'));
  const junit = join(reports, 'junit.xml');
  const output = await pytest(kit, [
    `--sut-host=${url}`,
    `--transport=${transports}`,
    `--compatibility-report=${join(reports, 'compatibility')}`,
    '-o',
    'junit_family=xunit1',
    `--junitxml=${junit}`,
  ]);
  if (!existsSync(junit)) throw new Error(`the kit did not run:\n${output.slice(-4_000)}`);
  const results = readJunit(readFileSync(junit, 'utf8')).map(({ test, ...found }) => {
    const level = levels.get(test);
    if (level === undefined) throw new Error(`${test} has no level in the kit`);
    return { test, binding: bindingOf(test), level, ...found };
  });
  return { results, reports };
}

/** The level of each test: a pytest marker, which reports do not contain. */
async function levelsOf(kit: Kit): Promise<Map<string, Level>> {
  const levels = new Map<string, Level>();
  for (const level of LEVELS) {
    const listed = await pytest(kit, ['--collect-only', '-m', level]);
    for (const line of listed.split('\n')) if (line.startsWith(TESTS)) levels.set(line.trim(), level);
  }
  if (levels.size === 0) throw new Error(`${kit.python} found no tests. Install the kit's dependencies, see TCK.md`);
  return levels;
}

/** Standard output of pytest with any exit code, because 1 means failed tests. Writes nothing into the checkout. */
async function pytest({ path, python }: Kit, args: string[]): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const child = spawn(python, ['-m', 'pytest', TESTS, '-q', '-p', 'no:cacheprovider', ...args], {
    cwd: path,
    env: { ...process.env, PYTHONDONTWRITEBYTECODE: '1' },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: RUN_MS_MAX,
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output = (output + text).slice(-OUTPUT_CHARS_MAX);
    });
  }
  child.once('error', () => reject(new Error(`${python} cannot be started`)));
  child.once('close', () => resolve());
  await promise;
  return output;
}
