import { type CallInput, type WorkingCall, workingCall, workOfCall } from '@hopline/events';
import { type InputWriter, type Job, type Log, newestForWork, requestLost } from '@hopline/log';
import type { Hop, HopMetrics, Logger } from '@hopline/telemetry';
import type { CallWaits } from './call-waits.ts';
import type { TurnView } from './turn-view.ts';

/**
 * UTF-8 bytes of a call's content as JSON. Larger content (a message with files) is not stored again with each call; the supervisor queues
 * the items of such calls itself.
 */
export const CALL_CONTENT_BYTES_MAX = 64 * 1024;

type CallItemsOptions = {
  log: Pick<Log, 'work'>;
  job: Pick<Job, 'work' | 'attempt'>;
  view: TurnView;
  writer: InputWriter;
  waits: Pick<CallWaits, 'begin'>;
  hop: Hop;
  /** Epoch milliseconds at which the supervisor took its own work item. */
  takenAt: number;
  metrics: Pick<HopMetrics, 'hopDuration'>;
  logger: Pick<Logger, 'info'>;
};

/**
 * The calls of a turn and their work items. The relay that stores a call with its content queues the item. The supervisor queues two kinds
 * itself: items of calls that are stored without content, because the content is too large or the relay is of an earlier version, and lost
 * items.
 */
export class CallItems {
  readonly #options: CallItemsOptions;
  readonly #calls = new Map<string, WorkingCall>();
  /** Calls that this supervisor began, and whether each followed from its plan rather than from the end of another call. */
  readonly #begun = new Map<string, { isPlanned: boolean }>();
  readonly #seen = new Set<string>();
  readonly #requestedAgain = new Set<string>();

  constructor(options: CallItemsOptions) {
    this.#options = options;
  }

  /** Stores a call, unless an earlier supervisor did. */
  begin(call: WorkingCall): void {
    const { view, writer, job, hop, logger } = this.#options;
    this.#calls.set(call.call, call);
    if (view.calls.includes(call.call)) return;
    this.#begun.set(call.call, { isPlanned: job.attempt === 1 && view.ends.length === 0 });
    writer.add(inputOf(call));
    hop.run(() => logger.info({ agent: call.agent, call_id: call.call, turn: job.work.turn }, 'call delegated'));
  }

  /** Queues the items of calls that are stored without content. Call it after every record, and after `begin`. */
  async queueCallsWithoutContent(): Promise<void> {
    const { view, takenAt, metrics, waits } = this.#options;
    for (const name of view.calls) {
      const call = this.#calls.get(name);
      const started = view.started(name);
      if (call === undefined || started === undefined || this.#seen.has(name)) continue;
      this.#seen.add(name);
      waits.begin(call);
      const begun = this.#begun.get(name);
      if (begun?.isPlanned) metrics.hopDuration.recordMs(started.at - takenAt, { hop: 'plan', agent: call.agent });
      if (workingCall(started) !== undefined || view.ended(name) !== undefined) continue;
      // An earlier supervisor may have queued the item, and the agent may have been silent for longer than the queue remembers the id of
      // the item.
      if (begun !== undefined || !(await this.#isQueued(call))) await this.#request(call);
    }
  }

  /**
   * Queues the missing item of a call again, if the relay died before queueing it and its successor did not queue it, or if the stream lost
   * it. Resolves with false if that cannot help, because it was done before or because the agent has written.
   */
  async queueLost(name: string): Promise<boolean> {
    const call = this.#calls.get(name);
    if (call === undefined) return true;
    if (this.#requestedAgain.has(name) || this.#hasWritten(call)) return false;
    const { log, hop } = this.#options;
    const { role, item, id } = this.#itemOf(call);
    await requestLost(log.work, role, item, { id, trace: hop.carrier() });
    this.#requestedAgain.add(name);
    return true;
  }

  async #isQueued(call: WorkingCall): Promise<boolean> {
    const { log, job } = this.#options;
    return this.#hasWritten(call) || log.work.hasItem(`agent.${call.agent}`, job.work.taskId);
  }

  #hasWritten({ call }: WorkingCall): boolean {
    return this.#options.view.aggregate?.producers[call] !== undefined;
  }

  async #request(call: WorkingCall): Promise<void> {
    const { log, hop } = this.#options;
    const { role, item, id } = this.#itemOf(call);
    await log.work.request(role, item, { id, trace: hop.carrier() });
  }

  #itemOf(call: WorkingCall) {
    const { job, view } = this.#options;
    const newest = view.newest && newestForWork(view.newest);
    const item = { ...workOfCall(job.work, call), queuedAt: Date.now(), ...newest };
    return { role: `agent.${call.agent}` as const, item, id: `${job.work.taskId}:${call.call}` };
  }
}

function inputOf({ call, agent, ...content }: WorkingCall): CallInput {
  const statusPasses = content.presentation.progress === 'status' && { statusPasses: true as const };
  const hasContent = Buffer.byteLength(JSON.stringify(content)) <= CALL_CONTENT_BYTES_MAX;
  return { kind: 'call', call, agent, ...statusPasses, ...(hasContent && content) };
}
