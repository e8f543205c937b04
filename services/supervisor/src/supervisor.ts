import { LiveAgents, type Log, QueueWaits, Superseded, type TextPace } from '@hopline/log';
import type { Profiles } from '@hopline/profiles';
import { flushLog, type HopMetrics, inTrace, LINE, type Logger, redeliveryCause, taskLogger } from '@hopline/telemetry';
import type { ModelSettings } from './model-turn.ts';
import type { Planner } from './planner.ts';
import { type SuperviseDeps, supervise } from './supervise.ts';

type SupervisorDeps = {
  log: Log;
  planner: Planner;
  model?: ModelSettings | undefined;
  profiles: Profiles;
  displayName: string;
  /** A call is abandoned when its agent has been out of the registry for this long. */
  agentGoneMs: number;
  agentWaitMs: number;
  slots: number;
  /** See SuperviseDeps. */
  pace?: TextPace;
  /** See SuperviseDeps. */
  times?: NonNullable<SuperviseDeps['times']>;
  metrics: HopMetrics;
  logger: Logger;
};

export type Supervisor = { stop(): Promise<void> };

/** Takes tasks from the supervisors' queue until it is stopped. Unfinished tasks are then requeued at once. */
export async function createSupervisor(deps: SupervisorDeps): Promise<Supervisor> {
  const { log, logger, slots } = deps;
  const stop = new AbortController();
  const agents = new LiveAgents(() => performance.now());
  await agents.follow(log.agents, stop.signal, error => logger.warn({ err: error }, 'agent registry lost'));
  const waits = new QueueWaits({
    work: log.work,
    onWaiting: (change, role) => deps.metrics.queueWaiting.add(change, { agent: role.replace(/^agent\./, '') }),
    now: () => performance.now(),
  });
  const taking = log.work.take('supervisor', { slots, signal: stop.signal }, async job => {
    const taskLog = taskLogger(logger, job.work.taskId, job.work.owner);
    const fields = { turn: job.work.turn, attempt: job.attempt };
    const log = (write: () => void) => inTrace(job.trace, write);
    log(() => taskLog.info({ ...fields, cause: redeliveryCause(job) }, LINE.turnTaken));
    flushLog(taskLog);
    try {
      await supervise({ ...deps, logger: taskLog, model: deps.model, agents, waits, signal: stop.signal }, job);
      log(() => taskLog.info({ ...fields, ...(job.exhausted && { code: 'attempts_exhausted' }) }, LINE.turnEnded));
    } catch (error) {
      if (stop.signal.aborted) log(() => taskLog.info({ ...fields, reason: 'shutdown' }, LINE.turnRequeued));
      else if (error instanceof Superseded) log(() => taskLog.info({ ...fields, reason: 'superseded' }, LINE.turnRequeued));
      else log(() => taskLog.warn({ ...fields, reason: 'fault', err: error }, LINE.turnRequeued));
      throw error;
    }
  });
  return {
    stop: async () => {
      stop.abort();
      waits.stop();
      await taking;
    },
  };
}
