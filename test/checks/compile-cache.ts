import { execFile } from 'node:child_process';
import { commandProgram, programOf } from '../support/cluster/service-process.ts';

const SERVICES = ['ingress', 'relay', 'supervisor', 'sub-agent', 'notifier'];
const PROGRAM_MS_MAX = 60_000;

/**
 * Makes every service, and the command line, load its modules once and then end because of a wrong setting: a process that ends by itself writes its compiled code
 * into the folder of NODE_COMPILE_CACHE. The services of the tests write none, because they are killed.
 */
export async function fillCompileCache(): Promise<void> {
  const options = { env: { ...process.env, HOPLINE_PORT: 'none' }, timeout: PROGRAM_MS_MAX };
  const load = (program: string, ...args: string[]) =>
    new Promise<void>(resolve => {
      execFile(process.execPath, [program, ...args], options, () => resolve());
    });
  await Promise.all([...SERVICES.map(service => load(programOf(service))), load(commandProgram([]), '--version')]);
}
