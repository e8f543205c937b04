import { A2AError } from '@hopline/a2a';
import { EXIT, type ExitCode } from './exit-code.ts';
import type { Output } from './output.ts';
import { natsUrlOf } from './running-cluster.ts';
import { booksLines, traceLines } from './trace-lines.ts';
import { UsageError } from './usage-error.ts';

export type TraceRun = {
  taskId: string;
  json: boolean;
  output: Output;
  environment: Readonly<Record<string, string | undefined>>;
};

/** `hopline trace`: where the time of a task went, and whether anything was lost, from the log itself. For who runs the cluster: it asks NATS, not the door. */
export async function trace({ taskId, json, output, environment }: TraceRun): Promise<ExitCode> {
  // Loaded here alone: the other commands need no broker.
  const { auditTask, isBalanced, traceTask } = await import('@hopline/task-audit');
  const log = await openLog(environment);
  try {
    const told = await traceTask(log, taskId).catch(noTask);
    const audit = await auditTask(log, taskId);
    if (told === undefined || audit === undefined) throw new A2AError('TASK_NOT_FOUND');
    if (json) output.line(JSON.stringify({ ...told, audit }));
    else for (const line of [...traceLines(told), ...booksLines(audit)]) output.line(line);
    return isBalanced(audit) || audit.incomplete ? EXIT.ok : EXIT.failed;
  } finally {
    await log.close();
  }
}

/** What cannot be the id of a task is none. */
function noTask(thrown: unknown): undefined {
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
