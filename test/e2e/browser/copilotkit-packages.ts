import { execFile } from 'node:child_process';
import { cpSync, existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rename, rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

export const COPILOTKIT_EXAMPLE = fileURLToPath(new URL('../../../infra/examples/copilotkit/', import.meta.url));
/** 0.7 GB in 1,150 packages. */
const INSTALL_MS_MAX = 480_000;

/** Why a test with CopilotKit is skipped. */
export const NO_COPILOTKIT = 'CopilotKit cannot be installed: the npm registry cannot be reached';

/**
 * A folder below which Node finds the packages of the example. CopilotKit is not a dependency of the workspace, because it would double its size: the
 * packages are installed into the folder for tools, once for each set of versions. Undefined if the registry cannot be reached.
 */
export async function copilotKitPackages(): Promise<string | undefined> {
  const manifest = JSON.parse(await readFile(join(COPILOTKIT_EXAMPLE, 'package.json'), 'utf8')) as {
    scripts: { start: string };
    dependencies: Record<string, string>;
  };
  const cache = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'hopline');
  const versions = ['@copilotkit/runtime', '@copilotkit/react-core', '@ag-ui/client', 'react', 'esbuild'];
  const folder = join(cache, `copilotkit-${versions.map(name => manifest.dependencies[name]).join('-')}`);
  if (existsSync(folder)) return folder;
  await mkdir(cache, { recursive: true });
  const part = await mkdtemp(join(cache, '.part-'));
  try {
    cpSync(join(COPILOTKIT_EXAMPLE, 'package.json'), join(part, 'package.json'));
    // The first command of the example's own start script.
    const [install = ''] = manifest.scripts.start.split(' && ');
    const [npm = '', ...args] = install.split(' ');
    await promisify(execFile)(npm, [...args, '--prefer-offline', '--fetch-retries=1'], { cwd: part, timeout: INSTALL_MS_MAX });
    // Another test may have installed it first. A rename makes the folder appear complete, or not.
    if (!existsSync(folder)) await rename(part, folder);
    return folder;
  } catch (thrown) {
    if (/\bE(?:NOTFOUND|AI_AGAIN|CONNREFUSED|CONNRESET|TIMEDOUT)\b/.test(String((thrown as { stderr?: string }).stderr)))
      return undefined;
    throw thrown;
  } finally {
    await rm(part, { recursive: true, force: true });
  }
}
