import { plural } from '@hopline/task-audit/waterfall';
import { command } from '../command/command.ts';
import { EXIT } from '../command/exit-code.ts';
import { STORED_TASK_OPTIONS, STORED_TASKS, storedTasks } from './stored-tasks.ts';
import { verdictLines } from './verdict-lines.ts';

export const verify = command({
  name: 'verify',
  subject: STORED_TASKS,
  summary: 'decides the inputs of tasks again with the current rules and compares the facts with the stored ones',
  details:
    'reads task files, and task ids from NATS (NATS_URL, default: the local cluster of `npm start`); prints each difference: the input, ' +
    'the fact, and the level (byte, semantic, outcome), and the counts; exit code 1 when a task differs, fails, or cannot be read',
  asksNoServer: true,
  options: STORED_TASK_OPTIONS,
  notes:
    'Tasks whose inputs retention has removed, or that were imported, prove nothing and are counted separately; if named, one is a ' +
    'failure. With --json the differing facts are printed unchanged, with their text.',
  async run({ subject: subjects, options }, { output, json, environment, signal }) {
    const { verifyTask } = await import('@hopline/replay');
    const counts = { tasks: 0, same: 0, differs: 0, failed: 0, unreadable: 0, expired: 0 };
    for await (const { task, name } of storedTasks('verify', { subjects, ...options, environment, signal })) {
      const verdict = verifyTask(task);
      counts.tasks += 1;
      counts[verdict.verdict] += 1;
      output.progress(`${plural(counts.tasks, 'task')} verified`);
      const isShown = !json && (verdict.verdict !== 'expired' || !options.all);
      const lines = isShown ? verdictLines(verdict, name) : [];
      if (json || lines.length > 0) output.progress('');
      if (json) output.line(JSON.stringify(verdict));
      for (const { text, side } of lines) {
        if (side === undefined) output.line(text);
        else output.compared(text, side);
      }
    }
    output.progress('');
    if (signal.aborted) return EXIT.interrupted;
    output.line(json ? JSON.stringify(counts) : countsLine(counts));
    const { differs, failed, unreadable, expired } = counts;
    return differs + failed + unreadable === 0 && (options.all || expired === 0) ? EXIT.ok : EXIT.failed;
  },
});

type Counts = Readonly<Record<'tasks' | 'same' | 'differs' | 'failed' | 'unreadable' | 'expired', number>>;

function countsLine({ tasks, same, differs, failed, unreadable, expired }: Counts): string {
  const verified = `${plural(tasks, 'task')}: ${same} same, ${differs} differ, ${failed} failed, ${unreadable} unreadable`;
  return expired === 0 ? verified : `${verified}, ${expired} not verified because the log lacks a part of them`;
}
