import { dirname } from 'node:path';
import { failureLine, runCommand } from './command.mjs';
import { npmProgram } from './npm-package.mjs';
import { SetupError } from './setup-error.mjs';
import { isAtLeast } from './version.mjs';

const VERSION_MS_MAX = 20_000;

/**
 * The Node that runs TypeScript: the one that runs this when it is new enough, else a pinned one from npm.
 * @param {import('./npm-package.mjs').Installer} installer @param {string} platform @param {typeof import('./pins.json')} pins
 * @returns {Promise<string>} its full path
 */
export async function ensureNode(installer, platform, pins, running = process) {
  if (isAtLeast(running.versions.node, pins.node.versionMin)) return running.execPath;
  const pin = pins.node.packages[platform];
  if (!pin) {
    throw new SetupError(
      `No ready-made Node for ${platform} is pinned here; install Node ${pins.node.versionMin} or newer (https://nodejs.org) and run the command again.`,
    );
  }
  return npmProgram(installer, 'Node', pins.node.version, pin);
}

/**
 * How to run pnpm. Its own binary where one is pinned; elsewhere the last pnpm written in JavaScript, which reads the same lockfile.
 * @returns {Promise<string[]>} command and leading arguments
 */
export async function ensurePnpm(installer, platform, pins, node) {
  const pin = pins.pnpm.packages[platform];
  if (pin) return [await npmProgram(installer, 'pnpm', pins.pnpm.version, pin)];
  const script = await npmProgram(installer, 'pnpm', pins.pnpmScript.version, pins.pnpmScript.packages.any);
  return [node, script];
}

/** A fetched Node that does not run (an old C library, another processor) is named before anything leans on it. */
export async function requireRunning(node) {
  if (node === process.execPath) return;
  const result = await runCommand([node, '--version'], { timeoutMs: VERSION_MS_MAX });
  if (!result.ok) {
    throw new SetupError(
      `The Node in ${dirname(node)} does not run on this machine (${failureLine(result)}); install Node 24.15 or newer and run the command again.`,
    );
  }
}
