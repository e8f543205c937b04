import { writeFileSync } from 'node:fs';
import { readOptions } from '../bench-options.ts';
import { runBench, verdictLines } from '../run-bench.ts';
import { capacity } from './capacity.ts';

const HELP = `npm run capacity [-- --quick] [-- --json FILE]

Measures on this machine what a token, a task, a notification, a viewer and a stored task cost each process, fits lines to the loads, and prints
what larger loads need. docs/reference/capacity.md explains the model. 5 minutes, with --quick 3.`;

try {
  const { help, quick, json } = readOptions(process.argv.slice(2), []);
  if (help) console.log(HELP);
  else {
    const report = await runBench([capacity], quick ? 'quick' : 'full', line => console.log(line));
    for (const line of verdictLines(report)) console.log(line);
    if (json !== undefined) writeFileSync(json, JSON.stringify(report, undefined, 2));
    if (report.answers.some(({ failed }) => failed !== undefined)) process.exitCode = 1;
  }
} catch (error) {
  console.error(`capacity: ${error instanceof Error ? error.message : error}`);
  process.exitCode = 2;
}
