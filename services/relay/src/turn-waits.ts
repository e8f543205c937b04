import { isInProgress } from '@hopline/a2a';
import { entryOf, queueNotice, type Role, shardOf } from '@hopline/events';
import { type Log, QueueWaits } from '@hopline/log';
import { rootProducer } from '@hopline/task';
import { type HopMetrics, type Logger, taskLogger } from '@hopline/telemetry';
import type { StoredChange } from './pipeline-context.ts';

type TurnWaitsOptions = {
  log: Pick<Log, 'work' | 'inputs' | 'layouts'>;
  owns: (shard: number) => boolean;
  metrics: Pick<HopMetrics, 'queueWaiting'>;
  logger: Logger;
};

/**
 * The turns whose first work item this relay has queued and whose worker has written nothing yet. The worker is the supervisor, or the
 * agent that is addressed directly. A client whose turn waits for a slot reads how many requests are ahead.
 */
export class TurnWaits {
  readonly #options: TurnWaitsOptions;
  readonly #waits: QueueWaits;

  constructor(options: TurnWaitsOptions) {
    const { log, metrics } = options;
    this.#options = options;
    this.#waits = new QueueWaits({
      work: log.work,
      onWaiting: (change, role) => metrics.queueWaiting.add(change, { agent: role.replace(/^agent\./, '') }),
      now: () => performance.now(),
    });
  }

  /** The work of the step is queued. */
  queued({ facts, aggregate }: StoredChange): void {
    if (!facts.some(({ kind }) => kind === 'task.created' || kind === 'message.received')) return;
    const { taskId, role, turn, owner } = aggregate;
    this.#waits.drop(taskId);
    const show = (ahead: number) => void this.#show({ taskId, role, turn }, ahead);
    // The first status of the turn replaces the notice.
    this.#waits.add(taskId, { role, taskId, ...(owner && { owner }), show, clear: () => {} });
  }

  /** Ends the wait of a turn that has begun, or is over. */
  stored({ aggregate }: StoredChange): void {
    const hasBegun = entryOf(aggregate.producers, rootProducer(aggregate)) !== undefined;
    if (hasBegun || !isInProgress(aggregate.state)) this.#waits.drop(aggregate.taskId);
  }

  stop(): void {
    this.#waits.stop();
  }

  async #show({ taskId, role, turn }: { taskId: string; role: Role; turn: number }, ahead: number): Promise<void> {
    const { log, owns, logger } = this.#options;
    if (!owns(shardOf(taskId, log.layouts))) {
      this.#waits.drop(taskId);
      return;
    }
    const message = queueNotice(`${turn}/queue-${ahead}-${taskId}`, { role, ahead });
    const record = { v: 1, at: Date.now(), from: 'relay', input: { kind: 'queued', turn, message } } as const;
    try {
      await log.inputs.append(taskId, record, { id: `${taskId}:queued:${turn}:${ahead}` });
    } catch (error) {
      taskLogger(logger, taskId).warn({ err: error, reason: 'queued' }, 'queue notice could not be appended');
    }
  }
}
