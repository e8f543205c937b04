import { writeFileSync } from 'node:fs';
import { accounts } from './accounts.ts';
import { adapters } from './adapters.ts';
import { attack } from './attack.ts';
import { useAccounts } from './bench-cluster.ts';
import { type BenchOptions, helpText, readOptions } from './bench-options.ts';
import { coalescerTable } from './coalescer-table.ts';
import { consolePage } from './console.ts';
import { exemplars } from './exemplars.ts';
import { fairness } from './fairness.ts';
import { fanOut } from './fan-out.ts';
import { firstText } from './first-text.ts';
import { frameEncoding } from './frame-encoding.ts';
import { image } from './image.ts';
import { load } from './load.ts';
import { runsLines } from './measure/targets.ts';
import { paced } from './paced.ts';
import type { Question } from './question.ts';
import { replay } from './replay.ts';
import { type BenchReport, runBench, verdictLines } from './run-bench.ts';
import { sdkPeer } from './sdk-peer.ts';
import { stored } from './stored.ts';
import { taskLength } from './task-length.ts';
import { telemetry } from './telemetry.ts';
import { through } from './through.ts';
import { throughput } from './throughput.ts';
import { viewers } from './viewers.ts';
import { ways } from './ways.ts';

const QUESTIONS: Question[] = [
  paced,
  through,
  throughput,
  sdkPeer,
  firstText,
  fanOut,
  taskLength,
  viewers,
  stored,
  ways,
  load,
  fairness,
  attack,
  accounts,
  coalescerTable,
  frameEncoding,
  exemplars,
  replay,
  adapters,
  image,
  consolePage,
  telemetry,
];
/** A run that takes longer is on a busy machine, or waits for a hanging process. */
const RUN_MS_MAX = 20 * 60_000;
const QUICK_RUN_MS_MAX = 8 * 60_000;

const names = QUESTIONS.map(({ name }) => name);
const asked = QUESTIONS.flatMap(({ name, onlyIfNamed = false }) => (onlyIfNamed ? [] : [name]));
try {
  const options = readOptions(process.argv.slice(2), names, asked);
  if (options.help) console.log(helpText(names));
  else await bench(options);
} catch (error) {
  console.error(`bench: ${error instanceof Error ? error.message : error}`);
  process.exit(2);
}

async function bench({ quick, runs, accounts: form, json, questions: asked }: BenchOptions): Promise<void> {
  if (form !== undefined) {
    useAccounts(form);
    console.log(`services have users of NATS, ${form === 'one' ? 'in one account' : 'and each agent an account of its own'}`);
  }
  const questions = QUESTIONS.filter(({ name }) => asked.includes(name));
  const reports: BenchReport[] = [];
  for (let run = 1; run <= runs; run += 1) {
    if (runs > 1) console.log(`run ${run} of ${runs}`);
    reports.push(await oneRun(questions, quick));
    if (json !== undefined) writeFileSync(json, JSON.stringify(runs > 1 ? reports : reports[0], undefined, 2));
  }
  if (runs > 1)
    for (const line of ['', 'targets of all runs', ...runsLines(reports.map(({ verdicts }) => verdicts))]) console.log(line);
}

async function oneRun(questions: readonly Question[], quick: boolean): Promise<BenchReport> {
  const msMax = quick ? QUICK_RUN_MS_MAX : RUN_MS_MAX;
  const late = setTimeout(() => {
    console.error(`bench: not done after ${msMax / 60_000} minutes, aborted`);
    process.exit(1);
  }, msMax);
  const report = await runBench(questions, quick ? 'quick' : 'full', line => console.log(line));
  clearTimeout(late);
  for (const line of verdictLines(report)) console.log(line);
  if (report.answers.some(({ failed }) => failed !== undefined)) process.exitCode = 1;
  return report;
}
