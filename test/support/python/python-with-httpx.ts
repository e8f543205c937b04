import { execFile } from 'node:child_process';
import { existsSync, globSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);
const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
export const PYTHON_PACKAGE = join(ROOT, 'packages/python');

/** Bound of each step that installs: frameworks have 100 MB. With one repetition pip fails early if a registry does not respond. */
const INSTALL_MS_MAX = 480_000;
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
      return { python: await environmentOf(name, version, [httpxRequirement()]) };
    } catch (thrown) {
      return {
        skip: `httpx cannot be installed for ${name}: name a Python that has it in HOPLINE_PYTHON (${firstLine(thrown)})`,
      };
    }
  }
  return { skip: 'no Python of 3.10 or newer: install one, or name one with httpx in HOPLINE_PYTHON' };
}

/** A Python of some version; `skip` if it cannot have the packages. */
export type VersionedPython = { version: string } & FoundPython;

/** Virtual environments with packages, of the oldest and the newest Python from 3.10 on. They are created in the folder for tools. */
export async function pythonsWithPackages(requirements: readonly string[]): Promise<VersionedPython[]> {
  const all = await pythons();
  const ends = all.length > 1 ? [all[0]!, all.at(-1)!] : all;
  return Promise.all(ends.map(python => withPackages(python, requirements)));
}

/** The same, with the newest Python only. */
export async function newestPythonWith(requirements: readonly string[]): Promise<FoundPython> {
  const newest = (await pythons()).at(-1);
  return newest === undefined ? { skip: 'no Python of 3.10 or newer: install one' } : withPackages(newest, requirements);
}

async function withPackages({ version, base }: KnownPython, requirements: readonly string[]): Promise<VersionedPython> {
  try {
    return { version, python: await environmentOf(base, version, requirements) };
  } catch (thrown) {
    return { version, skip: `${requirements.join(', ')} cannot be installed for Python ${version} (${firstLine(thrown)})` };
  }
}

type KnownPython = { version: string; base: string };

let known: Promise<KnownPython[]> | undefined;

/** The Pythons on PATH and of pyenv, from 3.10 on, by version. Each is started once for all files of the process. */
function pythons(): Promise<KnownPython[]> {
  known ??= findPythons();
  return known;
}

async function findPythons(): Promise<KnownPython[]> {
  const root = process.env.PYENV_ROOT || join(homedir(), '.pyenv');
  const names = ['python3.14', 'python3.13', 'python3.12', 'python3.11', 'python3.10', 'python3'];
  const found = new Map<string, string>();
  for (const base of [...globSync(join(root, 'versions/3.*/bin/python')), ...names]) {
    const version = await versionOf(base);
    if (version !== undefined && !found.has(version)) found.set(version, base);
  }
  return [...found].map(([version, base]) => ({ version, base })).toSorted((a, b) => minorOf(a.version) - minorOf(b.version));
}

const minorOf = (version: string): number => Number(version.split('.')[1]);

/** The requirement of httpx of packages/python. */
export function httpxRequirement(): string {
  const [, requirement = ''] = /"(httpx[^"]*)"/.exec(readFileSync(join(PYTHON_PACKAGE, 'pyproject.toml'), 'utf8')) ?? [];
  return requirement;
}

async function versionOf(python: string, ...modules: string[]): Promise<string | undefined> {
  const found = await run(python, ['-c', PROBE, ...modules]).catch(() => undefined);
  return found?.stdout.trim();
}

/** A rename makes the environment appear complete, or not. Its interpreter finds its packages from its own path. */
async function environmentOf(base: string, version: string, requirements: readonly string[]): Promise<string> {
  const cache = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'hopline');
  const folder = join(cache, `python-${version}-${requirements.join('-').replaceAll(/[^\w.]+/g, '-')}`);
  const python = join(folder, 'bin/python');
  if (existsSync(python)) return python;
  mkdirSync(cache, { recursive: true });
  const part = mkdtempSync(join(cache, '.part-'));
  try {
    await run(base, ['-m', 'venv', '--without-pip', part], { timeout: INSTALL_MS_MAX });
    await install(base, join(part, 'bin/python'), requirements);
    if (!existsSync(folder)) renameSync(part, folder);
    return python;
  } finally {
    rmSync(part, { recursive: true, force: true });
  }
}

/** Uses the pip of `base`, because installing pip into the environment first takes 3 CPU seconds, as much as the packages. */
async function install(base: string, python: string, requirements: readonly string[]): Promise<void> {
  const options = ['--quiet', '--disable-pip-version-check', '--no-compile', '--retries', '1'];
  const pip = (program: string, ...where: string[]) =>
    run(program, ['-m', 'pip', ...where, 'install', ...options, ...requirements], { timeout: INSTALL_MS_MAX });
  try {
    await pip(base, '--python', python);
  } catch (thrown) {
    // pip installs into another environment from version 22.3 on.
    if (!/No module named pip|no such option: --python/.test(String(thrown))) throw thrown;
    await run(python, ['-m', 'ensurepip'], { timeout: INSTALL_MS_MAX });
    await pip(python);
  }
}

function firstLine(thrown: unknown): string {
  return String(thrown).split('\n')[0]!;
}
