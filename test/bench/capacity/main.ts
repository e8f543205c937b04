import { writeFileSync } from 'node:fs';
import { readOptions } from '../bench-options.ts';
import { runBench, verdictLines } from '../run-bench.ts';
import { CAPACITY_QUESTIONS } from './capacity.ts';

const HELP = `npm run capacity [-- paced|work|stored …] [-- --quick] [-- --json FILE]

Measures on this machine what a token, a task, a notification, a viewer and a stored task cost each process, fits lines to the loads, and prints
what larger loads need. docs/reference/capacity.md explains the model. 5 minutes, with --quick 3.`;

const names = CAPACITY_QUESTIONS.map(({ name }) => name);
try {
  const { help, quick, json, questions } = readOptions(process.argv.slice(2), names);
  if (help) console.log(HELP);
  else {
    const asked = CAPACITY_QUESTIONS.filter(({ name }) => questions.includes(name));
    const report = await runBench(asked, quick ? 'quick' : 'full', line => console.log(line));
    for (const line of verdictLines(report)) console.log(line);
    if (json !== undefined) writeFileSync(json, JSON.stringify(report, undefined, 2));
    if (report.answers.some(({ failed }) => failed !== undefined)) process.exitCode = 1;
  }
} catch (error) {
  console.error(`capacity: ${error instanceof Error ? error.message : error}`);
  process.exitCode = 2;
}
