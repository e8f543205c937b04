import { dirname } from 'node:path';
import { failureLine, runCommand } from './command.mjs';
import { npmProgram } from './npm-package.mjs';
import { SetupError } from './setup-error.mjs';
import { isAtLeast } from './version.mjs';

const VERSION_MS_MAX = 20_000;

/**
 * A Node that runs TypeScript: the current one if it is new enough, else the pinned one from npm.
 * @param {import('./npm-package.mjs').Installer} installer @param {string} platform @param {typeof import('./pins.json')} pins
 * @returns {Promise<string>} its full path
 */
export async function ensureNode(installer, platform, pins, running = process) {
  if (isAtLeast(running.versions.node, pins.node.versionMin)) return running.execPath;
  const pin = pins.node.packages[platform];
  if (!pin) {
    throw new SetupError(
      `no Node binary for ${platform} is pinned; install Node ${pins.node.versionMin} or newer (https://nodejs.org) and run the command again`,
    );
  }
  return npmProgram(installer, 'Node', pins.node.version, pin);
}

/**
 * How to run pnpm: the pinned binary of this platform, else the last pnpm written in JavaScript, which reads the same lockfile.
 * @returns {Promise<string[]>} command and leading arguments
 */
export async function ensurePnpm(installer, platform, pins, node) {
  const pin = pins.pnpm.packages[platform];
  if (pin) return [await npmProgram(installer, 'pnpm', pins.pnpm.version, pin)];
  const script = await npmProgram(installer, 'pnpm', pins.pnpmScript.version, pins.pnpmScript.packages.any);
  return [node, script];
}

/** Throws for a downloaded Node that does not run on this machine (an old C library, another processor). */
export async function requireRunning(node) {
  if (node === process.execPath) return;
  const result = await runCommand([node, '--version'], { timeoutMs: VERSION_MS_MAX });
  if (!result.ok) {
    throw new SetupError(
      `the Node in ${dirname(node)} does not run on this machine (${failureLine(result)}); install Node 24.15 or newer and run the command again`,
    );
  }
}

const IMAGE_PLATFORMS = { 'linux/amd64': 'linux-x64', 'linux/arm64': 'linux-arm64' };

/**
 * The platform, as in pins.json, of an image's Node: the one in `--platform`, otherwise this machine's.
 * @param {string[]} args @param {string} own @returns {string}
 */
export function imagePlatform(args, own) {
  const at = args.findIndex(arg => arg === '--platform' || arg.startsWith('--platform='));
  const named = at < 0 ? undefined : args[at].includes('=') ? args[at].split('=')[1] : args[at + 1];
  return IMAGE_PLATFORMS[named] ?? own;
}
