import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { writeApiReference } from './api-reference.ts';
import { packHopline } from './hopline-package.ts';
import { describe } from './npm-pack.ts';
import { packAll } from './pack.ts';

const USAGE =
  'npm run pack -- [--output DIR] [--api]   tarballs of the public packages in DIR (dist); --api adds the API reference as HTML';
const ROOT = fileURLToPath(new URL('../../', import.meta.url)).replace(/\/$/, '');

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: { output: { type: 'string', default: 'dist' }, api: { type: 'boolean', default: false }, help: { type: 'boolean' } },
  });
  if (values.help) return console.log(USAGE);
  const outFolder = resolve(process.env.INIT_CWD ?? process.cwd(), values.output);
  const tarballs = [...packAll(ROOT, outFolder), await packHopline(ROOT, outFolder)];
  for (const tarball of tarballs) console.log(describe(tarball));
  if (values.api) {
    for (const problem of await writeApiReference(ROOT, join(outFolder, 'api'))) console.error(problem);
    console.log(`API reference  ${join(outFolder, 'api', 'index.html')}`);
  }
}

try {
  await main();
} catch (error) {
  console.error(`hopline: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
}
