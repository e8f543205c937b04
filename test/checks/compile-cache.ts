import { execFile } from 'node:child_process';
import { globSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { commandProgram, programOf } from '../support/cluster/service-process.ts';

const SERVICES = ['ingress', 'relay', 'supervisor', 'sub-agent', 'notifier'];
const PROGRAM_MS_MAX = 60_000;

/** Names that esbuild gives the chunks of the bundles. */
const CHUNKS = '*-????????.mjs';

/**
 * Makes every service and the command line load its modules once and then end because of a wrong setting, because a process that ends by
 * itself writes its compiled code into the folder of NODE_COMPILE_CACHE. The services of the tests do not write any, because they are
 * killed. Another process loads every chunk of the bundles, including those that services load on demand, such as exporters of spans.
 */
export async function fillCompileCache(): Promise<void> {
  const options = { env: { ...process.env, HOPLINE_PORT: 'none' }, timeout: PROGRAM_MS_MAX };
  const node = (...args: string[]) =>
    new Promise<void>(resolve => {
      execFile(process.execPath, args, options, () => resolve());
    });
  const { TEST_SERVICES } = process.env;
  const chunks = TEST_SERVICES === undefined ? [] : globSync(`${TEST_SERVICES}/${CHUNKS}`);
  const imports = chunks.map(path => `import(${JSON.stringify(pathToFileURL(path))})`);
  await Promise.all([
    ...SERVICES.map(service => node(programOf(service))),
    node(commandProgram([]), '--version'),
    node('--input-type=module', '--eval', `await Promise.allSettled([${imports}]); process.exit();`),
  ]);
}
