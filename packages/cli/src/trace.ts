import { A2AError, type JsonObject } from '@hopline/a2a';
import type { Audit, TaskTrace } from '@hopline/task-audit';
import type { CommandContext } from './command.ts';
import { noticePrinter } from './display.ts';
import { EXIT, type ExitCode } from './exit-code.ts';
import type { Output } from './output.ts';
import { logSettingsOf } from './running-cluster.ts';
import { auditLines, traceLines } from './trace-lines.ts';
import { UsageError } from './usage-error.ts';

/** A task's trace and its audit, as the server and `--json` have them. */
export type AuditedTrace = TaskTrace & { audit: Audit };

/** `hopline trace`: prints where a task of the caller spent its time and whether anything was lost. */
export async function trace({ client, output, json, signal }: CommandContext, taskId: string): Promise<ExitCode> {
  const received = await client.audit(taskId, { signal, onNotice: noticePrinter(output) });
  return show(received, { json, output });
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
    return show({ ...taskTrace, audit }, { json, output });
  } finally {
    await log.close();
  }
}

function show(received: JsonObject | AuditedTrace, { json, output }: { json: boolean; output: Output }): ExitCode {
  const [lines, audit] = linesOf(received);
  for (const line of json ? [JSON.stringify(received)] : lines) output.line(line);
  const unaccounted = Object.values(audit.unaccounted).some(count => count !== 0) || audit.differing.length > 0;
  return unaccounted && !audit.incomplete ? EXIT.failed : EXIT.ok;
}

/** Throws INVALID_AGENT_RESPONSE for JSON of another form. */
function linesOf(received: JsonObject | AuditedTrace): [string[], Audit] {
  try {
    const audited = received as AuditedTrace;
    return [[...traceLines(audited), ...auditLines(audited.audit)], audited.audit];
  } catch (cause) {
    throw new A2AError('INVALID_AGENT_RESPONSE', { detail: 'the audit has an unknown form', retryable: false, cause });
  }
}

/** traceTask throws a TypeError for a text that cannot be a task id. */
function undefinedForInvalidId(thrown: unknown): undefined {
  if (!(thrown instanceof TypeError)) throw thrown;
  return undefined;
}

async function openLog(environment: NatsTrace['environment']) {
  const log = logSettingsOf(environment);
  const [{ LOG_SETTINGS, openFromSettings }, { ConfigError, defineConfig }, { createLogger }] = await Promise.all([
    import('@hopline/log-jetstream'),
    import('@hopline/lifecycle'),
    import('@hopline/telemetry'),
  ]);
  const logger = createLogger({ service: 'hopline', instance: 'trace', level: 'silent' });
  try {
    const settings = defineConfig(LOG_SETTINGS).load({ ...environment, ...log });
    return await openFromSettings(settings, { name: 'hopline-trace', logger });
  } catch (thrown) {
    if (thrown instanceof ConfigError) throw new UsageError(thrown.message);
    throw new A2AError('UNAVAILABLE', { detail: 'the log cannot be opened', cause: thrown });
  }
}
