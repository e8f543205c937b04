import { setTimeout as sleep } from 'node:timers/promises';
import type { InputWriter, Log } from '@hopline/log';
import type { TurnView } from './turn-view.ts';

/** Time between two checks of a turn, milliseconds. */
export const LOST_INPUTS_CHECK_MS = 60_000;

export type LostInputsContext = {
  log: Pick<Log, 'inputs'>;
  view: Pick<TurnView, 'aggregate'>;
  writer: InputWriter;
  signal: AbortSignal;
  checkMs: number;
};

/**
 * A supervisor waits for facts of what it wrote. When its last input was removed before a relay read it, no fact follows, and no
 * record shows the gap. So it writes one more: an input that changes nothing (no lane has the name), and takes an ordinal. Without
 * a gap it is rejected and does no harm.
 */
export async function showLostInputs({ log, view, writer, signal, checkMs }: LostInputsContext): Promise<void> {
  for (;;) {
    await sleep(checkMs, undefined, { signal });
    const { lastSeq } = writer;
    if (lastSeq === undefined || lastSeq <= (view.aggregate?.foldedSeq ?? 0)) continue;
    // While the log is away, the next check decides.
    const extent = await log.inputs.extent().catch(() => undefined);
    if (extent !== undefined && extent.firstSeq > lastSeq) writer.add({ kind: 'close', lane: 'lost inputs' });
  }
}
