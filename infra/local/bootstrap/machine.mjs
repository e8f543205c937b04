import { accessSync, constants, statSync } from 'node:fs';
import { basename, delimiter, isAbsolute, join } from 'node:path';
import { SetupError } from './setup-error.mjs';

/**
 * The key of this machine in pins.json, e.g. `linux-x64` or `darwin-arm64`; with `-musl` if the C library is not glibc, because
 * the Node and pnpm binaries on npm are linked against glibc.
 * @returns {string}
 */
export function machinePlatform(platform = process.platform, arch = process.arch, hasGlibc = runsOnGlibc) {
  if (platform !== 'linux' && platform !== 'darwin') {
    throw new SetupError(
      `Hopline's local cluster runs on Linux and macOS, not on ${platform}; on Windows run it inside WSL (https://learn.microsoft.com/windows/wsl)`,
    );
  }
  const musl = platform === 'linux' && !hasGlibc() ? '-musl' : '';
  return `${platform}-${arch}${musl}`;
}

function runsOnGlibc() {
  // Otherwise the report resolves the names of open connections, which can take seconds.
  process.report.excludeNetwork = true;
  return Boolean(process.report.getReport().header.glibcVersionRuntime);
}

/**
 * The full path of a program on PATH.
 * @param {string} name @param {NodeJS.ProcessEnv} env @returns {string | null}
 */
export function findOnPath(name, env) {
  for (const folder of (env.PATH ?? '').split(delimiter)) {
    // An empty or relative entry of PATH refers to the current directory; programs there must not run by accident.
    if (!isAbsolute(folder)) continue;
    const path = join(folder, name);
    if (isExecutable(path)) return path;
  }
  return null;
}

/** @param {string} path @returns {boolean} */
export function isExecutable(path) {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

/**
 * How to run npm: the npm that started this process (it sets npm_execpath), else the one on PATH.
 * @param {NodeJS.ProcessEnv} env @returns {string[]} command and leading arguments
 */
export function npmCommand(env) {
  const path = env.npm_execpath;
  if (path && basename(path) === 'npm-cli.js') return [process.execPath, path];
  const npm = findOnPath('npm', env);
  if (!npm)
    throw new SetupError('npm is not on PATH; install it (it comes with Node, https://nodejs.org) and run the command again');
  return [npm];
}

/** @param {NodeJS.ProcessEnv} env */
export function requireGit(env) {
  if (!findOnPath('git', env)) {
    throw new SetupError('git is not on PATH; install it (https://git-scm.com/downloads) and run the command again');
  }
}
