import type { TaskAggregate } from '@hopline/events';
import { type Log, sleepUnlessAborted } from '@hopline/log';
import type { CallItems } from './call-items.ts';
import type { TurnContext } from './turn-runner.ts';

/** Time between two checks of the open calls of a turn. */
export const LOST_ITEMS_CHECK_MS = 60_000;

type LostItemsOptions = Pick<TurnContext, 'view' | 'writer' | 'signal'> & {
  log: Pick<Log, 'work' | 'facts'>;
  taskId: string;
  items: Pick<CallItems, 'queueLost'>;
  checkMs: number;
};

/**
 * Finds calls whose work item no longer exists, so that no worker would ever run them, and the task would stay open for as long as the log
 * keeps it. Each such item is queued again once. If the item is gone again, or if the agent has already written, the call is ended. An item
 * is gone after the loss of the work stream, a purge, or its expiry as a dead letter; it never existed if relays of two versions died and
 * took over at the wrong moment.
 *
 * A call is checked if its agent has written nothing from one check to the next. An agent that has just finished cannot lose its answer,
 * because its inputs were stored before its item was done, so relays fold them before the end that is written here. Resolves when `signal`
 * aborts; rejects when the writer has failed.
 */
export async function abandonLostItems(options: LostItemsOptions): Promise<void> {
  const { view, writer, signal, items, checkMs } = options;
  const abandoned = new Set<string>();
  let written = new Map<string, string>();
  while (!signal.aborted) {
    await sleepUnlessAborted(checkMs, signal);
    const before = written;
    written = new Map();
    for (const call of view.calls) {
      if (signal.aborted) return;
      if (view.ended(call) !== undefined || abandoned.has(call)) continue;
      written.set(call, producerOf(view.aggregate, call));
      if (before.get(call) !== written.get(call)) continue;
      // If the log is unavailable, the next check tries again.
      const isGone = await isItemGone(options, call, written.get(call)).catch(() => false);
      if (!isGone || signal.aborted) continue;
      // If the log is unavailable, the next check will queue the item.
      if (await items.queueLost(call).catch(() => true)) continue;
      abandoned.add(call);
      // Also ends the task's wait for credentials.
      if (view.needsCredentials(call)) writer.add({ kind: 'status', state: 'TASK_STATE_WORKING' });
      writer.add({ kind: 'ended', call, state: 'TASK_STATE_FAILED', reason: ITEM_LOST, retryable: true });
    }
  }
}

/**
 * Whether the queue has no item of a call, and the log has nothing from its agent beyond `written`. The log is read because a process that
 * was suspended does not know what the agent wrote in the meantime. The item of a finished agent is done only after the log shows the end.
 */
async function isItemGone({ log, taskId, view }: LostItemsOptions, call: string, written: string | undefined): Promise<boolean> {
  if (await log.work.hasItem(`agent.${view.agentOf(call)}`, taskId)) return false;
  const newest = await log.facts.last(taskId);
  return newest !== undefined && producerOf(newest.record.aggregate, call) === written;
}

/** Reason of a call whose work item is gone. */
export const ITEM_LOST = 'the work item of the call is gone';

function producerOf(aggregate: TaskAggregate | undefined, call: string): string {
  return JSON.stringify(aggregate?.producers[call] ?? null);
}
