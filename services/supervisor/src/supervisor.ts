import { LiveAgents, type Log } from '@hopline/log';
import type { Profiles } from '@hopline/profiles';
import { type HopMetrics, type Logger, taskLogger } from '@hopline/telemetry';
import type { ModelSettings } from './model-turn.ts';
import type { Planner } from './planner.ts';
import { supervise } from './supervise.ts';

export type SupervisorDeps = {
  log: Log;
  planner: Planner;
  model?: ModelSettings | undefined;
  profiles: Profiles;
  displayName: string;
  /** A call is abandoned when its agent has been out of the registry for this long, milliseconds. */
  agentGoneMs: number;
  slots: number;
  /** As in SuperviseDeps. */
  lostInputsCheckMs?: number;
  metrics: HopMetrics;
  logger: Logger;
};

export type Supervisor = { stop(): Promise<void> };

/** Takes tasks from the supervisors' queue until it is stopped; unfinished ones are requeued at once. */
export async function createSupervisor(deps: SupervisorDeps): Promise<Supervisor> {
  const { log, logger, slots } = deps;
  const stop = new AbortController();
  const agents = new LiveAgents(() => performance.now());
  await agents.follow(log.agents, stop.signal, error => logger.warn({ err: error }, 'agent registry lost'));
  const taking = log.work.take('supervisor', { slots, signal: stop.signal }, async job => {
    const taskLog = taskLogger(logger, job.work.taskId);
    try {
      await supervise({ ...deps, model: deps.model, agents, signal: stop.signal }, job);
    } catch (error) {
      if (!stop.signal.aborted) taskLog.warn({ err: error, attempt: job.attempt }, 'turn requeued');
      throw error;
    }
  });
  return {
    stop: async () => {
      stop.abort();
      await taking;
    },
  };
}
