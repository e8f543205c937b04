import { createHash } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** A folder of earlier sources that no run can still use. */
const UNUSED_MS_MIN = 24 * 60 * 60 * 1000;

/**
 * Bundles the services as the image does, because a service that loads one file instead of 600 starts with a third of the CPU time.
 * Resolves with the folder, which is the same for the same sources, so that the compile cache knows its files.
 */
export async function bundleServices(root: string): Promise<string> {
  // Loads esbuild, which a run of single files does not need.
  const { bundleCode } = await import('../../infra/image/bundle.ts');
  const cache = join(root, 'node_modules', '.cache', 'hopline-services');
  mkdirSync(cache, { recursive: true });
  for (const name of readdirSync(cache)) {
    const folder = join(cache, name);
    if (Date.now() - statSync(folder).mtimeMs > UNUSED_MS_MIN) rmSync(folder, { recursive: true, force: true });
  }
  const made = mkdtempSync(join(cache, 'made-'));
  // Code of agents may run as another user.
  chmodSync(made, 0o755);
  await bundleCode(root, made);
  const hash = createHash('sha256');
  for (const name of readdirSync(made).sort())
    if (name.endsWith('.mjs')) hash.update(name).update(readFileSync(join(made, name)));
  const folder = join(cache, hash.digest('hex').slice(0, 16));
  try {
    renameSync(made, folder);
  } catch (error) {
    // An earlier run, or a concurrent one, has made it.
    if (!existsSync(folder)) throw error;
    rmSync(made, { recursive: true });
  }
  return folder;
}
