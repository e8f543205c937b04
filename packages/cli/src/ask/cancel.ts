import { noticePrinter } from '@hopline/terminal';
import { command } from '../command/command.ts';
import { EXIT } from '../command/exit-code.ts';
import { TASK } from '../command/subjects.ts';

export const cancel = command({
  name: 'cancel',
  subject: TASK,
  summary: 'cancels a task',
  options: {},
  async run({ subject: taskId }, { client, output, json, signal }) {
    // The server waits a bounded time for the agent to stop, so the returned task may still be working.
    const task = await client.cancel(taskId, { signal, onNotice: noticePrinter(output) });
    const canceled = task.status.state === 'TASK_STATE_CANCELED';
    if (json) output.line(JSON.stringify(task));
    else if (canceled) output.note(`task ${taskId} canceled`);
    else output.warn(`task ${taskId} is not canceled yet: its agent has not stopped`);
    return canceled ? EXIT.ok : EXIT.failed;
  },
});
