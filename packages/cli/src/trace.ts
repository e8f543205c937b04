import { A2AError } from '@hopline/a2a';
import { EXIT, type ExitCode } from './exit-code.ts';
import type { Output } from './output.ts';
import { natsUrlOf } from './running-cluster.ts';
import { auditLines, traceLines } from './trace-lines.ts';
import { UsageError } from './usage-error.ts';

export type TraceRun = {
  taskId: string;
  json: boolean;
  output: Output;
  environment: Readonly<Record<string, string | undefined>>;
};

/**
 * `hopline trace`: prints where a task spent its time and whether anything was lost, from the log itself. For operators: it reads
 * NATS
 * directly instead of the server.
 */
export async function trace({ taskId, json, output, environment }: TraceRun): Promise<ExitCode> {
  // Loaded on demand: the other commands need no broker.
  const { auditTask, isBalanced, traceTask } = await import('@hopline/task-audit');
  const log = await openLog(environment);
  try {
    const taskTrace = await traceTask(log, taskId).catch(undefinedForInvalidId);
    const audit = await auditTask(log, taskId);
    if (taskTrace === undefined || audit === undefined) throw new A2AError('TASK_NOT_FOUND');
    if (json) output.line(JSON.stringify({ ...taskTrace, audit }));
    else for (const line of [...traceLines(taskTrace), ...auditLines(audit)]) output.line(line);
    return isBalanced(audit) || audit.incomplete ? EXIT.ok : EXIT.failed;
  } finally {
    await log.close();
  }
}

/** traceTask throws a TypeError for a text that cannot be a task id. */
function undefinedForInvalidId(thrown: unknown): undefined {
  if (!(thrown instanceof TypeError)) throw thrown;
  return undefined;
}

async function openLog(environment: TraceRun['environment']) {
  const servers = natsUrlOf(environment);
  const [{ LOG_SETTINGS, openFromSettings }, { ConfigError, defineConfig }, { createLogger }] = await Promise.all([
    import('@hopline/log-jetstream'),
    import('@hopline/lifecycle'),
    import('@hopline/telemetry'),
  ]);
  const logger = createLogger({ service: 'hopline', instance: 'trace', level: 'silent' });
  try {
    const settings = defineConfig(LOG_SETTINGS).load({ ...environment, NATS_URL: servers });
    return await openFromSettings(settings, { name: 'hopline-trace', logger });
  } catch (thrown) {
    if (thrown instanceof ConfigError) throw new UsageError(thrown.message);
    throw new A2AError('UNAVAILABLE', { detail: 'the log cannot be opened', cause: thrown });
  }
}
