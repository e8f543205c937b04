import { execFile } from 'node:child_process';
import { commandProgram, programOf } from '../support/cluster/service-process.ts';

const SERVICES = ['ingress', 'relay', 'supervisor', 'sub-agent', 'notifier'];
/** Loads the modules of a sub-agent that has an agent's module. */
const MODULE_AGENT = { HOPLINE_AGENT: JSON.stringify({ adapter: 'module' }) };
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
  const programs = [...SERVICES.map(service => programOf(service)), programOf('sub-agent', MODULE_AGENT)];
  await Promise.all([...programs.map(program => load(program)), load(commandProgram([]), '--version')]);
}
