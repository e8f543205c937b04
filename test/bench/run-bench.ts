import { type Machine, machine, machineLines } from './measure/machine.ts';
import { tableLines } from './measure/table.ts';
import { judge, type Verdict } from './measure/targets.ts';
import type { Finding, Question, Size } from './question.ts';

export type BenchReport = {
  at: string;
  size: Size;
  machine: Machine;
  answers: { question: string; seconds: number; findings: Finding[]; failed?: string }[];
  verdicts: Verdict[];
};

/** Asks one question after another and prints each answer as it comes; a question that fails does not stop the next. */
export async function runBench(questions: readonly Question[], size: Size, print: (line: string) => void): Promise<BenchReport> {
  const report: BenchReport = { at: new Date().toISOString(), size, machine: machine(), answers: [], verdicts: [] };
  print(`hopline bench, ${size}, ${report.at}`);
  for (const line of machineLines(report.machine)) print(line);
  for (const question of questions) {
    const startedMs = performance.now();
    const answer: BenchReport['answers'][number] = { question: question.name, seconds: 0, findings: [] };
    report.answers.push(answer);
    try {
      answer.findings = await question.ask(size);
    } catch (error) {
      answer.failed = error instanceof Error ? error.message : String(error);
    }
    answer.seconds = (performance.now() - startedMs) / 1000;
    printAnswer(answer, print);
    for (const { targets = [] } of answer.findings) report.verdicts.push(...targets.map(judge));
  }
  return report;
}

function printAnswer(
  { question, seconds, findings, failed }: BenchReport['answers'][number],
  print: (line: string) => void,
): void {
  for (const { title, table, notes = [] } of findings) {
    print('');
    print(title);
    for (const line of tableLines(table)) print(line);
    for (const note of notes) print(`  (${note})`);
  }
  if (failed !== undefined) print(`\n${question}: FAILED: ${failed}`);
  print(`  [${question}: ${seconds.toFixed(0)} s]`);
}

/** The last lines: each target, and what could not be measured. */
export function verdictLines({ verdicts, answers }: BenchReport): string[] {
  const failed = answers.flatMap(({ question, failed: why }) =>
    why === undefined ? [] : [`FAILED  ${question}: ${why.split('\n')[0]}`],
  );
  return ['', 'targets', ...verdicts.map(({ line }) => line), ...failed];
}
