import { execFile } from 'node:child_process';
import { programOf } from '../support/cluster/service-process.ts';

const SERVICES = ['ingress', 'relay', 'supervisor', 'sub-agent', 'notifier'];
const PROGRAM_MS_MAX = 60_000;

/**
 * Makes every service load its modules once and then end because of a wrong setting: a process that ends by itself writes its compiled code
 * into the folder of NODE_COMPILE_CACHE. The services of the tests write none, because they are killed.
 */
export async function fillCompileCache(): Promise<void> {
  const options = { env: { ...process.env, HOPLINE_PORT: 'none' }, timeout: PROGRAM_MS_MAX };
  const load = (service: string) =>
    new Promise<void>(resolve => {
      execFile(process.execPath, [programOf(service)], options, () => resolve());
    });
  await Promise.all(SERVICES.map(load));
}
