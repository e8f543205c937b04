import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

/** Enough for 0.7 GB in 1,150 packages. */
const INSTALL_MS_MAX = 480_000;

/**
 * A folder of this name below which Node finds the packages that `command` (`npm install …`) installs. They are not dependencies of the
 * workspace, because they would multiply its size. Instead, they are installed into the folder for tools, once for each name. Undefined if
 * the registry cannot be reached or, as some mirrors do, lacks a package.
 */
export async function npmPackages(name: string, command: string, manifest: object): Promise<string | undefined> {
  const cache = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'hopline');
  const folder = join(cache, name);
  if (existsSync(folder)) return folder;
  await mkdir(cache, { recursive: true });
  const part = await mkdtemp(join(cache, '.part-'));
  try {
    await writeFile(join(part, 'package.json'), JSON.stringify(manifest));
    const [npm = '', ...args] = command.split(' ');
    await promisify(execFile)(npm, [...args, '--prefer-offline', '--fetch-retries=1'], { cwd: part, timeout: INSTALL_MS_MAX });
    // Another test may have installed it first. A rename makes the folder appear complete, or not.
    if (!existsSync(folder)) await rename(part, folder);
    return folder;
  } catch (thrown) {
    const { stderr, killed } = thrown as { stderr?: string; killed?: boolean };
    if (killed || /\bE(?:NOTFOUND|AI_AGAIN|CONNREFUSED|CONNRESET|TIMEDOUT|TARGET|403|404|50[0-9])\b/.test(String(stderr)))
      return undefined;
    throw thrown;
  } finally {
    await rm(part, { recursive: true, force: true });
  }
}
