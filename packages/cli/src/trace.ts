import { writeFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { A2AError, isTerminal, type JsonObject, stateWord, TASK_STATES } from '@hopline/a2a';
import { logSettingsOf } from '@hopline/local-cluster';
import type { TaskReport } from '@hopline/task-audit';
import { noticePrinter, type Output } from '@hopline/terminal';
import type { CommandContext } from './command.ts';
import { EXIT, type ExitCode } from './exit-code.ts';
import { auditLines, eventLine, traceLines } from './trace-lines.ts';
import { UsageError } from './usage-error.ts';

/** Interval between two reads of a task that `trace --follow` prints. */
const FOLLOW_INTERVAL_MS = 2_000;

export type TraceOptions = {
  chunks: boolean;
  follow: boolean;
  /** File that gets the trace as a page, instead of standard output. */
  html: string | undefined;
};

/** `hopline trace`: prints where a task of the caller spent its time and whether anything was lost. */
export async function trace(context: CommandContext, taskId: string, options: TraceOptions): Promise<ExitCode> {
  const { client, output, json, signal } = context;
  const read = () => client.audit(taskId, { signal, onNotice: noticePrinter(output) });
  return await show(read, { ...options, json, output, signal });
}

type Environment = Readonly<Record<string, string | undefined>>;

export type NatsTrace = TraceOptions & {
  taskId: string;
  json: boolean;
  output: Output;
  environment: Environment;
  signal: AbortSignal;
};

/** `hopline trace --nats`: the same from the log itself, for operators: of any caller's task, and without a server. */
export async function traceFromNats({ taskId, environment, ...options }: NatsTrace): Promise<ExitCode> {
  // Loaded on demand: the other commands need no broker.
  const { reportTask } = await import('@hopline/task-audit');
  return await withLog(environment, 'hopline-trace', log => {
    const read = async () => {
      const report = await reportTask(log, taskId).catch(undefinedForInvalidId);
      if (report === undefined) throw new A2AError('TASK_NOT_FOUND');
      return report;
    };
    return show(read, options);
  });
}

type Show = TraceOptions & { json: boolean; output: Output; signal: AbortSignal };

async function show(read: () => Promise<JsonObject | TaskReport>, options: Show): Promise<ExitCode> {
  const { follow, json, output, signal } = options;
  let printed = 0;
  for (;;) {
    const received = await read();
    const isOver = !follow || (received as TaskReport).state === undefined || ENDED.has((received as TaskReport).state);
    if (json) output.line(JSON.stringify(received));
    if (isOver) return await showReport(received, options);
    if (!json && output.columns !== undefined) output.screen(checked(() => traceLines(received as TaskReport, viewOf(options))));
    else if (!json) {
      const fresh = checked(() => (received as TaskReport).events.filter(({ generation }) => generation > printed));
      for (const event of fresh) output.line(checked(() => eventLine(event)));
      printed = fresh.at(-1)?.generation ?? printed;
    }
    await sleep(FOLLOW_INTERVAL_MS, undefined, { signal });
  }
}

const ENDED: ReadonlySet<string> = new Set(TASK_STATES.filter(isTerminal).map(stateWord));

const viewOf = ({ chunks, output }: Show) => ({ chunks, columns: output.columns });

async function showReport(received: JsonObject | TaskReport, options: Show): Promise<ExitCode> {
  const { json, html, output } = options;
  // Loaded on demand: the other commands need no audit.
  const { isBalanced } = await import('@hopline/task-audit');
  const report = received as TaskReport;
  const [lines, isFine] = checked(() => {
    const { audit } = report;
    return [[...traceLines(report, viewOf(options)), ...auditLines(audit)], isBalanced(audit) || audit.incomplete] as const;
  });
  if (html !== undefined) await writePage(html, report, output);
  else if (!json) for (const line of lines) output.line(line);
  return isFine ? EXIT.ok : EXIT.failed;
}

async function writePage(path: string, report: TaskReport, output: Output): Promise<void> {
  const { tracePage } = await import('./trace-page.ts');
  const page = checked(() => tracePage(report));
  try {
    await writeFile(path, page);
  } catch (thrown) {
    throw new UsageError(
      `--html: the page cannot be written to ${path}: ${thrown instanceof Error ? thrown.message : String(thrown)}`,
    );
  }
  output.artifact(`${path}, ${Buffer.byteLength(page)} bytes`);
}

/** The JSON of a server may have any form. Throws INVALID_AGENT_RESPONSE where it is not that of an audit. */
export function checked<T>(read: () => T): T {
  try {
    return read();
  } catch (cause) {
    throw new A2AError('INVALID_AGENT_RESPONSE', { detail: 'the audit has an unknown form', retryable: false, cause });
  }
}

/** The log throws a TypeError for a text that cannot be a task id. */
export function undefinedForInvalidId(thrown: unknown): undefined {
  if (!(thrown instanceof TypeError)) throw thrown;
  return undefined;
}

type OpenLog = Awaited<ReturnType<typeof openLog>>;

/** Opens the log as an operator, and closes it afterwards. */
export async function withLog<T>(environment: Environment, name: string, use: (log: OpenLog) => Promise<T>): Promise<T> {
  const log = await openLog(environment, name);
  try {
    return await use(log);
  } finally {
    await log.close();
  }
}

/** The log, with the login of its operator, who reads it, or of its administrator, who may write it. Throws UsageError and UNAVAILABLE. */
export async function openLog(environment: Environment, name: string, login: 'operator' | 'admin' = 'operator') {
  const log = logSettingsOf(environment, login);
  const [{ LOG_SETTINGS, openFromSettings }, { ConfigError, defineConfig }, { createLogger }] = await Promise.all([
    import('@hopline/log-jetstream'),
    import('@hopline/lifecycle'),
    import('@hopline/telemetry'),
  ]);
  const logger = createLogger({ service: 'hopline', instance: name, level: 'silent' });
  try {
    const settings = defineConfig(LOG_SETTINGS).load({ ...environment, ...log });
    return await openFromSettings(settings, { user: 'operator', name, logger });
  } catch (thrown) {
    if (thrown instanceof ConfigError) throw new UsageError(thrown.message);
    throw new A2AError('UNAVAILABLE', { detail: 'the log cannot be opened', cause: thrown });
  }
}
