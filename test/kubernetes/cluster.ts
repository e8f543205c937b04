import { spawnSync } from 'node:child_process';

/** Why the tests on a cluster cannot run here. Ignores a kubeconfig in the home folder, because it may name a cluster in use. */
export function missingPrograms(): string | undefined {
  if (!process.env.KUBECONFIG) {
    return 'KUBECONFIG is not set, or all tests run, which use no cluster: `npm run test:kubernetes` uses it, with the images of `npm run image` loaded';
  }
  const program = ['kubectl', 'helm'].find(one => spawnSync(one, ['version', '--client']).error);
  return program && 'kubectl and helm must be on PATH';
}
