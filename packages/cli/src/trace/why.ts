import { A2AError, type JsonObject } from '@hopline/a2a';
import { type Cursor, parseCursor } from '@hopline/events';
import type { EventExplanation } from '@hopline/task-audit';
import { whyLines } from '@hopline/task-audit/why-lines';
import { timeOfDay } from '@hopline/telemetry/log-line';
import { noticePrinter } from '@hopline/terminal';
import { type CommandContext, command } from '../command/command.ts';
import { EXIT, type ExitCode } from '../command/exit-code.ts';
import { NATS, undefinedForInvalidId, withLog } from '../command/open-log.ts';
import { pair } from '../command/subjects.ts';
import { UsageError } from '../command/usage-error.ts';
import { inReportForm } from './in-report-form.ts';

export const why = command({
  name: 'why',
  subject: pair('TASK CURSOR', 'one task id and the cursor of one of its events'),
  summary: 'explains one event of a task: where it comes from, and where its time went',
  details:
    'the records it was made of, its producer and attempt, how long it was held and why it was released, when it was stored and by which relay; ' +
    'numbers and names, never text',
  options: { nats: NATS },
  notes: 'A cursor is the `id:` of an SSE frame; `hopline ask --json` and `hopline follow --json` print it with every event.',
  async run({ subject: [taskId, given], options }, context) {
    const { generation } = cursorOf(given);
    if (!options.nats) {
      const { client, signal, output } = context;
      return show(await client.explain(taskId, given, { signal, onNotice: noticePrinter(output) }), context);
    }
    // Loaded on demand: the other commands need no broker.
    const { explainEvent } = await import('@hopline/task-audit');
    return await withLog(context.environment, 'hopline-why', async log => {
      if ((await log.facts.last(taskId).catch(undefinedForInvalidId)) === undefined) throw new A2AError('TASK_NOT_FOUND');
      const explanation = await explainEvent(log, taskId, { generation });
      if (explanation === undefined)
        throw new A2AError('INVALID_PARAMS', { detail: `the task has no event of generation ${generation}` });
      return show(explanation, context);
    });
  },
});

function cursorOf(text: string): Cursor {
  const cursor = parseCursor(text);
  if (cursor === undefined)
    throw new UsageError('a cursor has the form 17.42, as `hopline follow --json` prints it; see hopline why --help');
  return cursor;
}

function show(received: JsonObject | EventExplanation, { json, output }: Pick<CommandContext, 'json' | 'output'>): ExitCode {
  const lines = json ? [JSON.stringify(received)] : inReportForm(() => whyLines(received as EventExplanation, timeOfDay));
  for (const line of lines) output.line(line);
  return EXIT.ok;
}
