import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { failureLine, runCommand } from './command.mjs';
import { findOnPath } from './machine.mjs';

const CONNECT_S_MAX = 6;
const DOWNLOAD_S_MAX = 120;
const STALL_S_MAX = 10;

/**
 * Downloads a file over HTTPS; throws an Error with the reason of a failure.
 * Prefers curl, which honours the proxy settings of the environment; the fetch of Node 20 does not.
 * @param {string} url @param {string} path @param {NodeJS.ProcessEnv} env
 */
export async function download(url, path, env) {
  const curl = findOnPath('curl', env);
  if (!curl) return downloadWithFetch(url, path);
  const limits = [
    '--connect-timeout',
    CONNECT_S_MAX,
    '--max-time',
    DOWNLOAD_S_MAX,
    '--speed-limit',
    1024,
    '--speed-time',
    STALL_S_MAX,
  ];
  const command = [curl, '-fsSL', '--proto', '=https', '--proto-redir', '=https', ...limits.map(String), '-o', path, url];
  const result = await runCommand(command, { env, timeoutMs: (DOWNLOAD_S_MAX + CONNECT_S_MAX) * 1000 });
  if (!result.ok) throw new Error(failureLine(result).replace(/^curl: /, ''));
}

async function downloadWithFetch(url, path) {
  const response = await fetch(url, { signal: AbortSignal.timeout(DOWNLOAD_S_MAX * 1000) });
  if (!response.ok || !response.body) throw new Error(`HTTP ${response.status}`);
  await pipeline(Readable.fromWeb(response.body), createWriteStream(path));
}

/** @param {string} path @returns {Promise<string>} hex */
export async function sha256(path) {
  const hash = createHash('sha256');
  await pipeline(createReadStream(path), hash);
  return hash.digest('hex');
}
