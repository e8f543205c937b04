import { loadavg } from 'node:os';
import { type Machine, machine, machineLines } from './measure/machine.ts';
import { readLoad, shareOfOthers } from './measure/machine-load.ts';
import { tableLines } from './measure/table.ts';
import { judge, type Verdict } from './measure/targets.ts';
import type { Finding, Question, Size } from './question.ts';

type AnswerReport = {
  question: string;
  seconds: number;
  /** Share of the machine's CPU time used by other processes, 0 to 1; a busy machine worsens the figures. */
  others: number | undefined;
  findings: Finding[];
  failed?: string;
};

export type BenchReport = {
  at: string;
  size: Size;
  machine: Machine;
  answers: AnswerReport[];
  verdicts: Verdict[];
};

/** Runs the questions in sequence and prints each result at once; a failed question does not stop the next. */
export async function runBench(questions: readonly Question[], size: Size, print: (line: string) => void): Promise<BenchReport> {
  const report: BenchReport = { at: new Date().toISOString(), size, machine: machine(), answers: [], verdicts: [] };
  print(`hopline bench, ${size}, ${report.at}`);
  for (const line of machineLines(report.machine)) print(line);
  for (const question of questions) {
    const startedMs = performance.now();
    const before = readLoad();
    const answer: AnswerReport = { question: question.name, seconds: 0, others: undefined, findings: [] };
    report.answers.push(answer);
    try {
      answer.findings = await question.ask(size);
    } catch (error) {
      answer.failed = error instanceof Error ? error.message : String(error);
    }
    answer.seconds = (performance.now() - startedMs) / 1000;
    answer.others = shareOfOthers(before);
    printAnswer(answer, print);
    for (const { targets = [] } of answer.findings) report.verdicts.push(...targets.map(judge));
  }
  return report;
}

function printAnswer({ question, seconds, others, findings, failed }: AnswerReport, print: (line: string) => void): void {
  for (const { title, table, notes = [] } of findings) {
    print('');
    print(title);
    for (const line of tableLines(table)) print(line);
    for (const note of notes) print(`  (${note})`);
  }
  if (failed !== undefined) print(`\n${question}: FAILED: ${failed}`);
  const shared = others === undefined ? '' : `; other programs took ${(100 * others).toFixed(0)} % of the machine`;
  print(`  [${question}: ${seconds.toFixed(0)} s${shared}; load average ${loadavg()[0]!.toFixed(1)}]`);
}

/** The last lines: each target, and each failed question. */
export function verdictLines({ verdicts, answers }: BenchReport): string[] {
  const failed = answers.flatMap(({ question, failed: why }) =>
    why === undefined ? [] : [`FAILED  ${question}: ${why.split('\n')[0]}`],
  );
  return ['', 'targets', ...verdicts.map(({ line }) => line), ...failed];
}
