import { A2AError, type JsonObject } from '@hopline/a2a';
import type { TaskReport } from '@hopline/task-audit';
import type { CommandContext } from './command.ts';
import { noticePrinter } from './display.ts';
import { EXIT, type ExitCode } from './exit-code.ts';
import type { Output } from './output.ts';
import { logSettingsOf } from './running-cluster.ts';
import { auditLines, traceLines } from './trace-lines.ts';
import { UsageError } from './usage-error.ts';

/** `hopline trace`: prints where a task of the caller spent its time and whether anything was lost. */
export async function trace({ client, output, json, signal }: CommandContext, taskId: string): Promise<ExitCode> {
  const received = await client.audit(taskId, { signal, onNotice: noticePrinter(output) });
  return await show(received, { json, output });
}

export type NatsTrace = {
  taskId: string;
  json: boolean;
  output: Output;
  environment: Readonly<Record<string, string | undefined>>;
};

/** `hopline trace --nats`: the same from the log itself, for operators: of any caller's task, and without a server. */
export async function traceFromNats({ taskId, json, output, environment }: NatsTrace): Promise<ExitCode> {
  // Loaded on demand: the other commands need no broker.
  const { auditTask, traceTask } = await import('@hopline/task-audit');
  const log = await openLog(environment);
  try {
    const taskTrace = await traceTask(log, taskId).catch(undefinedForInvalidId);
    const audit = await auditTask(log, taskId);
    if (taskTrace === undefined || audit === undefined) throw new A2AError('TASK_NOT_FOUND');
    return await show({ ...taskTrace, audit }, { json, output });
  } finally {
    await log.close();
  }
}

async function show(received: JsonObject | TaskReport, { json, output }: { json: boolean; output: Output }): Promise<ExitCode> {
  // Loaded on demand: the other commands need no audit.
  const { isBalanced } = await import('@hopline/task-audit');
  const [lines, isFine] = checked(() => {
    const report = received as TaskReport;
    const { audit } = report;
    return [[...traceLines(report), ...auditLines(audit)], isBalanced(audit) || audit.incomplete] as const;
  });
  for (const line of json ? [JSON.stringify(received)] : lines) output.line(line);
  return isFine ? EXIT.ok : EXIT.failed;
}

/** The JSON of a server may have any form. Throws INVALID_AGENT_RESPONSE where it is not that of an audit. */
function checked<T>(read: () => T): T {
  try {
    return read();
  } catch (cause) {
    throw new A2AError('INVALID_AGENT_RESPONSE', { detail: 'the audit has an unknown form', retryable: false, cause });
  }
}

/** traceTask throws a TypeError for a text that cannot be a task id. */
export function undefinedForInvalidId(thrown: unknown): undefined {
  if (!(thrown instanceof TypeError)) throw thrown;
  return undefined;
}

/** The log, with the login of its operator, who reads it, or of its administrator, who may write it. Throws UsageError and UNAVAILABLE. */
export async function openLog(environment: NatsTrace['environment'], login: 'operator' | 'admin' = 'operator') {
  const log = logSettingsOf(environment, login);
  const [{ LOG_SETTINGS, openFromSettings }, { ConfigError, defineConfig }, { createLogger }] = await Promise.all([
    import('@hopline/log-jetstream'),
    import('@hopline/lifecycle'),
    import('@hopline/telemetry'),
  ]);
  const logger = createLogger({ service: 'hopline', instance: 'trace', level: 'silent' });
  try {
    const settings = defineConfig(LOG_SETTINGS).load({ ...environment, ...log });
    return await openFromSettings(settings, { user: 'operator', name: 'hopline-trace', logger });
  } catch (thrown) {
    if (thrown instanceof ConfigError) throw new UsageError(thrown.message);
    throw new A2AError('UNAVAILABLE', { detail: 'the log cannot be opened', cause: thrown });
  }
}
