import { foldedOrdinal, type Producer } from '@hopline/events';
import { type InputWriter, type Job, type Log, Superseded, sleepUnlessAborted } from '@hopline/log';
import type { TurnView } from './turn-view.ts';

/** Time between two checks of a turn. */
export const LOST_INPUTS_CHECK_MS = 60_000;
/** An input that uses up an ordinal and changes nothing, because no lane has its name. */
export const NO_CHANGE = { kind: 'close', lane: 'no change' } as const;

type LostInputsContext = {
  log: Pick<Log, 'inputs'>;
  taskId: string;
  view: Pick<TurnView, 'aggregate'>;
  writer: InputWriter;
  producer: Pick<Producer, 'id' | 'item' | 'attempt'>;
  /** The function of the job. */
  isTakenOver?: Job['isTakenOver'];
  signal: AbortSignal;
  checkMs: number;
};

/**
 * A supervisor waits for the facts of its inputs. If its last input was removed before a relay read it, no fact follows, and no record
 * shows the gap. So the supervisor writes one more input, NO_CHANGE, which shows the gap. If there is no gap, the input is rejected and
 * does no harm.
 *
 * There is also no fact if relays reject the inputs in favor of a newer attempt, which may be dead by now. This function then rejects with
 * Superseded, so that the item can continue. Resolves when `signal` aborts.
 */
export async function showLostInputs(context: LostInputsContext): Promise<void> {
  const { log, taskId, view, writer, producer, isTakenOver = async () => false, signal, checkMs } = context;
  while (!signal.aborted) {
    await sleepUnlessAborted(checkMs, signal);
    if (signal.aborted) return;
    const { lastSeq, nextN } = writer;
    // Does not use `foldedSeq`, which moves past a removed record when another producer writes.
    if (lastSeq === undefined || foldedIn(view, producer) >= nextN - 1) continue;
    // If the log is unavailable, the next check tries again.
    if (await isTakenOver().catch(() => false)) throw new Superseded();
    const extent = await log.inputs.extent().catch(() => undefined);
    if (extent !== undefined && extent.of(taskId).firstSeq > lastSeq) writer.add(NO_CHANGE);
  }
}

function foldedIn({ aggregate }: LostInputsContext['view'], producer: LostInputsContext['producer']): number {
  return aggregate === undefined ? 0 : foldedOrdinal(aggregate, producer);
}
