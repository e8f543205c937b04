import { isInterrupted, isTerminal, stateWord } from '@hopline/a2a';
import type { TraceCarrier } from '@hopline/events';
import { inTrace, type Logger, taskLogger } from '@hopline/telemetry';
import type { StoredStep } from './pipeline-context.ts';

/** Logs one line for each change of a task's state in a stored record; text is not logged. */
export function logStored(
  logger: Logger,
  step: StoredStep,
  { trace, isTakeover }: { trace: TraceCarrier; isTakeover: boolean },
): void {
  // Most records change no state, so they need neither a logger nor a context.
  if (!isTakeover && step.facts.every(({ kind }) => kind === 'artifact.updated')) return;
  inTrace(trace, () => logLines(logger, step, isTakeover));
}

function logLines(logger: Logger, { facts, aggregate }: StoredStep, isTakeover: boolean): void {
  const log = taskLogger(logger, aggregate.taskId, aggregate.owner);
  const { contextId, turn, role, profile, generation } = aggregate;
  if (isTakeover) log.info({ turn, generation }, 'task taken over');
  for (const fact of facts) {
    if (fact.kind === 'task.created') log.info({ context_id: contextId, role, profile }, 'task created');
    if (fact.kind === 'message.received') log.info({ turn: fact.turn }, 'task continued');
    if (fact.kind === 'call.ended') log.info({ call_id: fact.call, state: stateWord(fact.state) }, 'call ended');
    if (fact.kind !== 'status.changed') continue;
    const { state } = fact.event.statusUpdate.status;
    const isEnd = isTerminal(state);
    if (isEnd || isInterrupted(state))
      log.info({ turn, state: stateWord(state), generation }, isEnd ? 'task ended' : 'task waits');
  }
}
