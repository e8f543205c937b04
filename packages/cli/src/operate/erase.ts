import { A2AError } from '@hopline/a2a';
import { isTaskId } from '@hopline/events';
import type { ErasedTask } from '@hopline/task-transfer';
import { command } from '../command/command.ts';
import { EXIT } from '../command/exit-code.ts';
import { withLog } from '../command/open-log.ts';
import { TASK } from '../command/subjects.ts';
import { UsageError } from '../command/usage-error.ts';

const REMAINS = [
  'backups (`hopline backup`) and files that were exported before',
  'copies with ids of their own: forks, reruns and imports of the task, and later tasks of its conversation that repeat its text',
  'what projections of the log have stored in tables of their own',
  'what remote agents, models and receivers of webhooks have received',
  'traces, logs and the list of its conversation: ids and times, no text',
  'the disk of NATS: blocks of its streams, until it compacts or removes them',
];

export const erase = command({
  name: 'erase',
  subject: TASK,
  summary: 'removes everything that the log stores about an ended task',
  details:
    'its events, inputs, work, index entry, row of the lists, message ids and webhooks; prints what it removed, and what remains elsewhere; ' +
    'a repetition completes an interrupted removal',
  asksNoServer: true,
  options: {},
  notes:
    'Writes to NATS (NATS_URL, default: the local cluster of `npm start`) as the user `admin`. It cannot be undone. A task that ends during the ' +
    'last minute is removed when a relay has listed it.',
  run({ subject: taskId }, { json, output, environment, signal }) {
    if (!isTaskId(taskId)) throw new UsageError(`${taskId} is not a task id`);
    return withLog(
      environment,
      'hopline-erase',
      async log => {
        const { EraseDenied, EraseRefused, eraseTask } = await import('@hopline/task-transfer');
        try {
          const erased = await eraseTask(log, taskId, { signal });
          if (json) output.line(JSON.stringify({ taskId, erased, remains: REMAINS }));
          else for (const line of linesOf(taskId, erased)) output.line(line);
          return EXIT.ok;
        } catch (thrown) {
          if (signal.aborted) throw thrown;
          if (thrown instanceof EraseRefused)
            throw new A2AError('UNSUPPORTED_OPERATION', { detail: thrown.message, cause: thrown });
          if (thrown instanceof EraseDenied) throw new A2AError('PERMISSION_DENIED', { detail: thrown.message, cause: thrown });
          const detail = `task ${taskId} is not removed completely: repeat the command`;
          throw new A2AError('UNAVAILABLE', { detail, cause: thrown });
        }
      },
      'admin',
    );
  },
});

function linesOf(taskId: string, { facts, inputs, work, indexEntries, listRows, messageIds, webhooks }: ErasedTask): string[] {
  const counts = {
    'records of events': facts,
    inputs,
    'items of work': work,
    'entries of the index': indexEntries,
    'rows of the lists': listRows,
    'message ids': messageIds,
    webhooks,
  };
  const removed = Object.entries(counts)
    .filter(([, count]) => count > 0)
    .map(([what, count]) => `${what} ${count}`);
  const summary =
    removed.length === 0 ? `the log stores nothing of task ${taskId}` : `task ${taskId} erased: ${removed.join(', ')}`;
  return [summary, 'not removed:', ...REMAINS.map(where => `  ${where}`)];
}
