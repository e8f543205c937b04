import { join } from 'node:path';
import { runCommand } from './command.mjs';
import { findOnPath, isExecutable } from './machine.mjs';
import { natsSources } from './nats-sources.mjs';
import { SetupError } from './setup-error.mjs';
import { cachedFolder } from './tool-cache.mjs';
import { compareVersions, isAtLeast, parseVersion } from './version.mjs';

const VERSION_MS_MAX = 10_000;

/**
 * A nats-server of the required version: from HOPLINE_NATS_SERVER, PATH, the cache, or the first source that succeeds.
 * @param {{ platform: string, cache: string, env: NodeJS.ProcessEnv, pins: typeof import('./pins.json')['natsServer'],
 *   progress: ReturnType<import('./progress.mjs').createProgress> }} context
 * @returns {Promise<string>} full path of the program
 */
export async function ensureNatsServer(context, sources = natsSources(context), versionOf = serverVersion) {
  const { env, pins, platform, cache, progress } = context;
  const named = env.HOPLINE_NATS_SERVER;
  if (named) return requireNamed(named, await versionOf(named), pins.versionMin);

  const onPath = findOnPath('nats-server', env);
  if (onPath) {
    const version = await versionOf(onPath);
    if (version && isAtLeast(version, pins.versionMin)) return onPath;
    progress.note(
      `nats-server: ${onPath} is ${version ?? 'not executable'}, ${pins.versionMin} is required; trying other sources`,
    );
  }
  const cached = cachedServer(cache, platform, sources);
  if (cached) return cached;
  return fetchServer(context, sources, versionOf);
}

function requireNamed(path, version, versionMin) {
  if (version && isAtLeast(version, versionMin)) return path;
  const found = version ? `is version ${version}` : 'does not run as a nats-server';
  throw new SetupError(
    `HOPLINE_NATS_SERVER is ${path}, which ${found}; set it to a nats-server ${versionMin} or newer, or unset it`,
  );
}

/** The newest cached server of the pinned sources; a source without a pinned version comes last. */
function cachedServer(cache, platform, sources) {
  const newestFirst = [...sources].sort((a, b) => compareVersions(b.version ?? '0.0.0', a.version ?? '0.0.0'));
  return newestFirst.map(source => join(cache, folderName(source, platform), 'nats-server')).find(isExecutable) ?? null;
}

function folderName(source, platform) {
  return ['nats-server', source.name.toLowerCase().replaceAll(' ', '-'), source.version, platform].filter(Boolean).join('-');
}

/** Tries the sources in order and prints a line for each failure. Throws when all fail. */
async function fetchServer({ platform, cache, pins, progress }, sources, versionOf) {
  for (const source of sources) {
    try {
      const path = await fetchFrom(source, { platform, cache, pins, progress, versionOf });
      if (source.isUnverified)
        progress.note(
          `nats-server: no checksum is pinned for the ${source.name}; set HOPLINE_NATS_SERVER to a server that you trust`,
        );
      return path;
    } catch (error) {
      progress.note(`nats-server: ${source.name} failed (${error.message})`);
    }
  }
  throw new SetupError(
    `no nats-server could be fetched (tried ${sources.map(source => source.name).join(', ')}); install nats-server ${pins.versionMin} or newer from https://github.com/nats-io/nats-server/releases on PATH, or set NATS_URL to a running one`,
  );
}

async function fetchFrom(source, { platform, cache, pins, progress, versionOf }) {
  const label = ['fetching nats-server', source.version, `(${source.name})`].filter(Boolean).join(' ');
  const folder = await cachedFolder(cache, folderName(source, platform), part =>
    progress.step(label, async () => {
      await source.fetch(part);
      const version = await versionOf(join(part, 'nats-server'));
      if (!version || !isAtLeast(version, pins.versionMin))
        throw new Error(`its version is ${version ?? 'unknown'}, ${pins.versionMin} is required`);
    }),
  );
  return join(folder, 'nats-server');
}

/** @param {string} path @returns {Promise<string | null>} null if it does not run */
async function serverVersion(path) {
  const result = await runCommand([path, '--version'], { timeoutMs: VERSION_MS_MAX });
  return result.ok ? parseVersion(result.stdout) : null;
}
