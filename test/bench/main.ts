import { writeFileSync } from 'node:fs';
import { adapters } from './adapters.ts';
import { helpText, readOptions } from './bench-options.ts';
import { coalescerTable } from './coalescer-table.ts';
import { consolePage } from './console.ts';
import { fairness } from './fairness.ts';
import { fanOut } from './fan-out.ts';
import { firstText } from './first-text.ts';
import { frameEncoding } from './frame-encoding.ts';
import { image } from './image.ts';
import { load } from './load.ts';
import type { Question } from './question.ts';
import { replay } from './replay.ts';
import { runBench, verdictLines } from './run-bench.ts';
import { sdkPeer } from './sdk-peer.ts';
import { taskLength } from './task-length.ts';
import { telemetry } from './telemetry.ts';
import { through } from './through.ts';
import { throughput } from './throughput.ts';
import { viewers } from './viewers.ts';
import { ways } from './ways.ts';

const QUESTIONS: Question[] = [
  through,
  throughput,
  sdkPeer,
  firstText,
  fanOut,
  taskLength,
  viewers,
  ways,
  load,
  fairness,
  coalescerTable,
  frameEncoding,
  replay,
  adapters,
  image,
  consolePage,
  telemetry,
];
/** A longer run is on a busy machine, or waits for a hanging process. */
const RUN_MS_MAX = 10 * 60_000;
const QUICK_RUN_MS_MAX = 5 * 60_000;

const names = QUESTIONS.map(({ name }) => name);
try {
  const { help, quick, json, questions } = readOptions(process.argv.slice(2), names);
  if (help) console.log(helpText(names));
  else await bench(quick, questions, json);
} catch (error) {
  console.error(`bench: ${error instanceof Error ? error.message : error}`);
  process.exit(2);
}

async function bench(quick: boolean, asked: string[], json: string | undefined): Promise<void> {
  const msMax = quick ? QUICK_RUN_MS_MAX : RUN_MS_MAX;
  const late = setTimeout(() => {
    console.error(`bench: not done after ${msMax / 60_000} minutes, aborted`);
    process.exit(1);
  }, msMax);
  const questions = QUESTIONS.filter(({ name }) => asked.includes(name));
  const report = await runBench(questions, quick ? 'quick' : 'full', line => console.log(line));
  clearTimeout(late);
  if (json !== undefined) writeFileSync(json, JSON.stringify(report, undefined, 2));
  for (const line of verdictLines(report)) console.log(line);
  if (report.answers.some(({ failed }) => failed !== undefined)) process.exitCode = 1;
}
