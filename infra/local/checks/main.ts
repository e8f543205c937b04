import { fileURLToPath } from 'node:url';
import { runStaticChecks } from './static-checks.ts';
import { findTestFiles } from './test-files.ts';
import { runTestFiles } from './test-run.ts';
import { add, closingLine, NOTHING, type Totals } from './totals.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url)).replace(/\/$/, '');

// Whoever ends this process ends the test processes with it, and what they started.
const stop = new AbortController();
for (const event of ['SIGINT', 'SIGTERM', 'SIGHUP', 'disconnect'] as const) process.once(event, () => stop.abort());

async function runChecks(): Promise<Totals> {
  const paths = process.argv.slice(2);
  const option = paths.find(path => path.startsWith('-'));
  if (option !== undefined) throw new Error(`unknown option ${option}; see \`npm test -- --help\``);
  const files = findTestFiles(ROOT, paths, process.env.INIT_CWD ?? process.cwd());
  let totals = paths.length === 0 ? await runStaticChecks(ROOT, console.log) : NOTHING;
  for (const group of [files.unit, files.withBroker])
    totals = add(totals, await runTestFiles(group, process.stdout, stop.signal));
  return totals;
}

try {
  const totals = await runChecks();
  console.log(closingLine(totals));
  process.exitCode = totals.failed > 0 ? 1 : 0;
} catch (error) {
  console.error(`hopline: ${error instanceof Error ? error.message : String(error)}`);
  console.log(closingLine({ ...NOTHING, failed: 1 }));
  process.exitCode = 1;
}
// The bootstrap's channel is open: without this the process would wait for it.
process.exit();
