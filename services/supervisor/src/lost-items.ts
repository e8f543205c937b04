import type { TaskAggregate } from '@hopline/events';
import { type Log, sleepUnlessAborted } from '@hopline/log';
import type { TurnContext } from './turn-runner.ts';

/** Time between two checks of the open calls of a turn. */
export const LOST_ITEMS_CHECK_MS = 60_000;

export type LostItemsOptions = Pick<TurnContext, 'view' | 'writer' | 'signal'> & {
  log: Pick<Log, 'work'>;
  taskId: string;
  /** Calls whose items this supervisor has queued, or found delivered. */
  delegated: ReadonlySet<string>;
  checkMs: number;
};

/**
 * Ends the calls whose work item is gone: no worker has it or will get it, and the task would stay open for as long as the log keeps it.
 * An item is gone after a loss or purge of the work stream, or after its expiry as a dead letter.
 *
 * A call is checked if its agent has written nothing from one check to the next. An agent that has just finished cannot lose its answer
 * to this: its inputs were stored before its item was done, so relays fold them before the end that is written here. Resolves when `signal`
 * aborts, rejects when the writer has failed.
 */
export async function abandonLostItems(options: LostItemsOptions): Promise<void> {
  const { view, writer, signal, log, taskId, delegated, checkMs } = options;
  const abandoned = new Set<string>();
  let written = new Map<string, string>();
  while (!signal.aborted) {
    await sleepUnlessAborted(checkMs, signal);
    const before = written;
    written = new Map();
    for (const call of view.calls) {
      if (signal.aborted) return;
      if (view.ended(call) !== undefined || abandoned.has(call) || !delegated.has(call)) continue;
      written.set(call, producerOf(view.aggregate, call));
      if (before.get(call) !== written.get(call)) continue;
      // While the log is away, the next check decides.
      const isGone = await log.work.hasItem(`agent.${view.agentOf(call)}`, taskId).then(
        hasItem => !hasItem,
        () => false,
      );
      if (!isGone || signal.aborted) continue;
      abandoned.add(call);
      // Ends its wait for credentials as well.
      if (view.needsCredentials(call)) writer.add({ kind: 'status', state: 'TASK_STATE_WORKING' });
      writer.add({ kind: 'ended', call, state: 'TASK_STATE_FAILED', reason: ITEM_LOST, retryable: true });
    }
  }
}

/** Reason of a call whose work item is gone. */
export const ITEM_LOST = 'the work item of the call is gone';

function producerOf(aggregate: TaskAggregate | undefined, call: string): string {
  return JSON.stringify(aggregate?.producers[call] ?? null);
}
