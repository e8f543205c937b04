import { foldedOrdinal, type Producer } from '@hopline/events';
import { type InputWriter, type Job, type Log, Superseded, sleepUnlessAborted } from '@hopline/log';
import type { TurnView } from './turn-view.ts';

/** Time between two checks of a turn, milliseconds. */
export const LOST_INPUTS_CHECK_MS = 60_000;

export type LostInputsContext = {
  log: Pick<Log, 'inputs'>;
  view: Pick<TurnView, 'aggregate'>;
  writer: InputWriter;
  producer: Pick<Producer, 'id' | 'item' | 'attempt'>;
  /** As of the job. */
  isTakenOver?: Job['isTakenOver'];
  signal: AbortSignal;
  checkMs: number;
};

/**
 * A supervisor waits for facts of what it wrote. When its last input was removed before a relay read it, no fact follows, and no
 * record shows the gap. So it writes one more: an input that changes nothing (no lane has the name), and takes an ordinal. Without
 * a gap it is rejected and does no harm.
 *
 * Nor does a fact follow when relays reject its inputs for those of a newer attempt, which may be dead by now. Rejects with Superseded then, so
 * that the item goes on. Resolves when `signal` aborts.
 */
export async function showLostInputs(context: LostInputsContext): Promise<void> {
  const { log, view, writer, producer, isTakenOver = async () => false, signal, checkMs } = context;
  while (!signal.aborted) {
    await sleepUnlessAborted(checkMs, signal);
    if (signal.aborted) return;
    const { lastSeq, nextN } = writer;
    // Not `foldedSeq`: it passes a removed record when another producer writes on.
    if (lastSeq === undefined || foldedIn(view, producer) >= nextN - 1) continue;
    // While the log is away, the next check decides.
    if (await isTakenOver().catch(() => false)) throw new Superseded();
    const extent = await log.inputs.extent().catch(() => undefined);
    if (extent !== undefined && extent.firstSeq > lastSeq) writer.add({ kind: 'close', lane: 'lost inputs' });
  }
}

function foldedIn({ aggregate }: LostInputsContext['view'], producer: LostInputsContext['producer']): number {
  return aggregate === undefined ? 0 : foldedOrdinal(aggregate, producer);
}
