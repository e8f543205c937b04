import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);
const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
export const PYTHON_PACKAGE = join(ROOT, 'packages/python');

/** Bound of each step that installs; a registry that does not respond must not hold up the tests. */
const INSTALL_MS_MAX = 180_000;
/** Prints the version of the interpreter if it is new enough and, with `-`, has httpx. */
const PROBE =
  'import sys; assert sys.version_info >= (3, 10); sys.argv[1:] and __import__("httpx"); print(*sys.version_info[:3], sep=".")';

export type FoundPython = { python: string } | { skip: string };

/**
 * A Python of 3.10 or newer with the dependencies of packages/python: the one in HOPLINE_PYTHON, else one on PATH that has them, else a virtual
 * environment of the newest one on PATH, which is created in the folder for tools.
 */
export async function pythonWithHttpx(): Promise<FoundPython> {
  const { HOPLINE_PYTHON: named } = process.env;
  if (named !== undefined) {
    if ((await versionOf(named, 'httpx')) === undefined)
      throw new Error(`HOPLINE_PYTHON is not a Python 3.10 with httpx: ${named}`);
    return { python: named };
  }
  const names = ['python3.13', 'python3.12', 'python3.11', 'python3.10', 'python3'];
  for (const name of names) if ((await versionOf(name, 'httpx')) !== undefined) return { python: name };
  for (const name of names) {
    const version = await versionOf(name);
    if (version === undefined) continue;
    try {
      return { python: await environmentOf(name, version) };
    } catch (thrown) {
      return {
        skip: `httpx cannot be installed for ${name}: name a Python that has it in HOPLINE_PYTHON (${firstLine(thrown)})`,
      };
    }
  }
  return { skip: 'no Python of 3.10 or newer: install one, or name one with httpx in HOPLINE_PYTHON' };
}

async function versionOf(python: string, ...modules: string[]): Promise<string | undefined> {
  const found = await run(python, ['-c', PROBE, ...modules]).catch(() => undefined);
  return found?.stdout.trim();
}

/** A rename makes the environment appear complete, or not. Its interpreter finds its packages from its own path. */
async function environmentOf(base: string, version: string): Promise<string> {
  const [, dependency = ''] = /"(httpx[^"]*)"/.exec(readFileSync(join(PYTHON_PACKAGE, 'pyproject.toml'), 'utf8')) ?? [];
  const cache = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'hopline');
  const folder = join(cache, `python-${version}-${dependency.replaceAll(/[^\w.]+/g, '-')}`);
  const python = join(folder, 'bin/python');
  if (existsSync(python)) return python;
  mkdirSync(cache, { recursive: true });
  const part = mkdtempSync(join(cache, '.part-'));
  try {
    await run(base, ['-m', 'venv', part], { timeout: INSTALL_MS_MAX });
    const pip = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', dependency];
    await run(join(part, 'bin/python'), pip, { timeout: INSTALL_MS_MAX });
    if (!existsSync(folder)) renameSync(part, folder);
    return python;
  } finally {
    rmSync(part, { recursive: true, force: true });
  }
}

function firstLine(thrown: unknown): string {
  return String(thrown).split('\n')[0]!;
}
