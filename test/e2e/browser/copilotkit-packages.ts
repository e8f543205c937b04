import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { npmPackages } from '../../support/npm-packages.ts';

export const COPILOTKIT_EXAMPLE = fileURLToPath(new URL('../../../infra/examples/copilotkit/', import.meta.url));

/** Why a test with CopilotKit is skipped. */
export const NO_COPILOTKIT = 'CopilotKit cannot be installed: the npm registry cannot be reached, or lacks a package';

/** A folder below which Node finds the packages of the example. Undefined if the registry cannot be reached. */
export async function copilotKitPackages(): Promise<string | undefined> {
  const manifest = JSON.parse(await readFile(join(COPILOTKIT_EXAMPLE, 'package.json'), 'utf8')) as {
    scripts: { start: string };
    dependencies: Record<string, string>;
  };
  const versions = ['@copilotkit/runtime', '@copilotkit/react-core', '@ag-ui/client', 'react', 'esbuild'];
  // The first command of the example's own start script.
  const [install = ''] = manifest.scripts.start.split(' && ');
  return await npmPackages(`copilotkit-${versions.map(name => manifest.dependencies[name]).join('-')}`, install, manifest);
}
