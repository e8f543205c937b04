import { BEGINNING } from '@hopline/client';
import { noticePrinter } from '@hopline/terminal';
import { command } from '../command/command.ts';
import { EXIT_CODES_NOTE, exitCodeOf } from '../command/exit-code.ts';
import { CURSOR_FORM, parsed } from '../command/options.ts';
import { TASK } from '../command/subjects.ts';
import { UsageError } from '../command/usage-error.ts';
import { ANSWER, OUT } from './answer-options.ts';
import { outFolder } from './out-folder.ts';
import { showStream } from './show-stream.ts';
import { StreamOutcome } from './stream-outcome.ts';

export const follow = command({
  name: 'follow',
  subject: TASK,
  summary: 'prints the stream of a task, from the beginning or after a cursor',
  details: 'until the task ends; also prints a task that has already ended',
  options: {
    cursor: parsed(
      'C',
      'starts after this cursor; an interrupted `ask` prints it, and --json prints it with every event',
      headerCursor,
    ),
    out: OUT,
    answer: ANSWER,
  },
  notes: EXIT_CODES_NOTE,
  async run({ subject: taskId, options }, context) {
    const { cursor = BEGINNING, out, answer } = options;
    const { client, signal, output } = context;
    const call = { signal, onNotice: noticePrinter(output) };
    const outcome = new StreamOutcome(taskId, cursor);
    const printer = { resumed: cursor !== BEGINNING, folder: outFolder(out), answerNames: answer };
    const items = client.subscribe(taskId, { ...call, cursor });
    const code = await showStream(context, { items, outcome, ...printer });
    // A cursor at the end of a task yields no event; the exit code then comes from the stored state.
    if (code !== 0 || outcome.state !== undefined || signal.aborted) return code;
    return exitCodeOf((await client.get(taskId, { ...call, historyLength: 0 })).status.state);
  },
});

/**
 * Accepts any cursor that a header can hold, because other servers have other forms of cursors. Sending any other text would look like a
 * network error.
 */
function headerCursor(text: string): string {
  if (/^[\x21-\x7e]+$/.test(text)) return text;
  throw new UsageError(CURSOR_FORM);
}
