import { writeFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { A2AError, isTerminal, type JsonObject, stateWord, TASK_STATES } from '@hopline/a2a';
import { agentTasks } from '@hopline/local-cluster';
import type { TaskBelow, TaskReport } from '@hopline/task-audit';
import { noticePrinter, type Output } from '@hopline/terminal';
import { type CommandContext, command } from '../command/command.ts';
import { EXIT, type ExitCode } from '../command/exit-code.ts';
import { NATS, undefinedForInvalidId, withLog } from '../command/open-log.ts';
import { flag, text } from '../command/options.ts';
import { TASK } from '../command/subjects.ts';
import { UsageError } from '../command/usage-error.ts';
import { inReportForm } from './in-report-form.ts';
import { auditLines, detailLines, eventLine, traceLines, treeLines, verdictOf } from './trace-lines.ts';

/** Interval between two reads of a task that `trace --follow` prints. */
const FOLLOW_INTERVAL_MS = 2_000;

export const trace = command({
  name: 'trace',
  subject: TASK,
  summary: 'prints where a task spent its time and whether anything was lost',
  details:
    'a waterfall of its hops, takeovers, repeated attempts and gaps with their cause, the hop that cost the most, and whether all text is ' +
    'complete; --all adds the cost of each hop, relays, producers, the events that clients received, and the audit: every input and its ' +
    'outcome; numbers and names, never text; exit code 1 when an input is unaccounted for',
  options: {
    all: flag('prints the cost of each hop, relays, producers, events and the audit as well'),
    chunks: flag('like --all, but with every chunk; --all folds the chunks of a long task'),
    follow: flag('prints the trace again every two seconds until the task ends; in a pipe, prints events as they arrive', {
      short: 'f',
    }),
    html: text('FILE', 'writes the trace as one self-contained page, for people without a tracing backend', 'files'),
    agents: text(
      'FILE',
      'also prints the tasks in nested clusters, at the addresses and with the credentials in this agents file',
      'files',
    ),
    nats: NATS,
  },
  async run({ subject: taskId, options }, context) {
    if (!options.nats) {
      const { client, signal, output } = context;
      const call = { signal, onNotice: noticePrinter(output) };
      return await show(
        withTree(() => client.audit(taskId, call), options, context),
        options,
        context,
      );
    }
    // Loaded on demand: the other commands need no broker.
    const { reportTask } = await import('@hopline/task-audit');
    return await withLog(context.environment, 'hopline-trace', log => {
      const read = async () => {
        const report = await reportTask(log, taskId).catch(undefinedForInvalidId);
        if (report === undefined) throw new A2AError('TASK_NOT_FOUND');
        return report;
      };
      return show(withTree(read, options, context), options, context);
    });
  },
});

type Options = { all: boolean; chunks: boolean; follow: boolean; html: string | undefined; agents: string | undefined };
/** A report, and the tasks below it where they were asked for. */
type Read = () => Promise<JsonObject | (TaskReport & { below?: TaskBelow[] })>;

/** Adds the tasks below to each report. Throws EnvironmentError for a file that is not an agents file. */
function withTree(
  read: Read,
  { agents: file }: Options,
  { environment, signal }: Pick<CommandContext, 'environment' | 'signal'>,
): Read {
  if (file === undefined) return read;
  const audit = agentTasks(file, environment);
  return async () => {
    const [report, { tasksBelow }] = await Promise.all([read(), import('@hopline/task-audit')]);
    const below = await tasksBelow(report as TaskReport, (agent, taskId) => audit(agent, taskId, signal));
    return { ...report, below };
  };
}

type Shown = Pick<CommandContext, 'json' | 'output' | 'signal'>;

async function show(read: Read, options: Options, shown: Shown): Promise<ExitCode> {
  const { json, output, signal } = shown;
  let printed = 0;
  for (;;) {
    // A server's JSON may have any form; inReportForm turns errors from another form into one message.
    const report = (await read()) as TaskReport & { below?: TaskBelow[] };
    const isOver = !options.follow || report.state === undefined || ENDED.has(report.state);
    if (json) output.line(JSON.stringify(report));
    if (isOver) return await showReport(report, options, shown);
    if (!json && output.columns !== undefined) output.screen(inReportForm(() => traceLines(report, output.columns)));
    else if (!json) {
      const fresh = inReportForm(() => report.events.filter(({ generation }) => generation > printed));
      for (const event of fresh) output.line(inReportForm(() => eventLine(event)));
      printed = fresh.at(-1)?.generation ?? printed;
    }
    await sleep(FOLLOW_INTERVAL_MS, undefined, { signal });
  }
}

const ENDED: ReadonlySet<string> = new Set(TASK_STATES.filter(isTerminal).map(stateWord));

const ALL_HINT = '--all prints the cost of each hop, relays, producers, events and the audit';

async function showReport(
  report: TaskReport & { below?: TaskBelow[] },
  { all, chunks, html }: Options,
  { json, output }: Shown,
): Promise<ExitCode> {
  // Loaded on demand: the other commands need no audit.
  const { isBalanced } = await import('@hopline/task-audit');
  const [lines, isFine] = inReportForm(() => {
    const { audit } = report;
    const details = all || chunks;
    const rest = details ? [...detailLines(report, chunks), ...auditLines(audit)] : [`audit: ${verdictOf(audit)}`, ALL_HINT];
    const tree = report.below === undefined ? [] : treeLines(report.below);
    return [[...traceLines(report, output.columns), ...tree, ...rest], isBalanced(audit) || audit.incomplete] as const;
  });
  if (html !== undefined) await writePage(html, report, output);
  else if (!json) for (const line of lines) output.line(line);
  return isFine ? EXIT.ok : EXIT.failed;
}

async function writePage(path: string, report: TaskReport, output: Output): Promise<void> {
  const { tracePage } = await import('./trace-page.ts');
  const page = inReportForm(() => tracePage(report));
  try {
    await writeFile(path, page);
  } catch (thrown) {
    throw new UsageError(
      `--html: the page cannot be written to ${path}: ${thrown instanceof Error ? thrown.message : String(thrown)}`,
    );
  }
  output.artifact(`${path}, ${Buffer.byteLength(page)} bytes`);
}
