import { accessSync, constants, statSync } from 'node:fs';
import { basename, delimiter, isAbsolute, join } from 'node:path';
import { SetupError } from './setup-error.mjs';

/**
 * The key of this machine in pins.json: `linux-x64`, `darwin-arm64`, or with `-musl` where the C library is not glibc
 * (the Node and pnpm binaries on npm are linked against glibc).
 * @returns {string}
 */
export function machinePlatform(platform = process.platform, arch = process.arch, hasGlibc = runsOnGlibc) {
  if (platform !== 'linux' && platform !== 'darwin') {
    throw new SetupError(
      `Hopline's local cluster runs on Linux and macOS, not on ${platform}; on Windows run it inside WSL (https://learn.microsoft.com/windows/wsl).`,
    );
  }
  const musl = platform === 'linux' && !hasGlibc() ? '-musl' : '';
  return `${platform}-${arch}${musl}`;
}

function runsOnGlibc() {
  // Without this the report asks the network for the names of open connections, which can take seconds.
  process.report.excludeNetwork = true;
  return Boolean(process.report.getReport().header.glibcVersionRuntime);
}

/**
 * The full path of a program on PATH.
 * @param {string} name @param {NodeJS.ProcessEnv} env @returns {string | null}
 */
export function findOnPath(name, env) {
  for (const folder of (env.PATH ?? '').split(delimiter)) {
    // An empty or relative entry of PATH means "wherever I stand": never run something from there by accident.
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
 * How to run npm: the one that started us (`npm start` sets npm_execpath), else the one on PATH.
 * @param {NodeJS.ProcessEnv} env @returns {string[]} command and leading arguments
 */
export function npmCommand(env) {
  const path = env.npm_execpath;
  if (path && basename(path) === 'npm-cli.js') return [process.execPath, path];
  const npm = findOnPath('npm', env);
  if (!npm)
    throw new SetupError('npm is not on PATH; install it (it comes with Node, https://nodejs.org) and run the command again.');
  return [npm];
}

/** @param {NodeJS.ProcessEnv} env */
export function requireGit(env) {
  if (!findOnPath('git', env)) {
    throw new SetupError('git is not on PATH; install it (https://git-scm.com/downloads) and run the command again.');
  }
}
