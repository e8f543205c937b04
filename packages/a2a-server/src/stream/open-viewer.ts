import type { Dialect } from '@hopline/a2a';
import { ATTR, COUNT } from '@hopline/telemetry';
import type { A2AServer, OperationContext } from '../a2a-server.ts';
import { DeliveryMeter } from './delivery-meter.ts';
import { showsTimeline } from './generation-form.ts';
import { type StreamEnd, Viewer } from './viewer.ts';

/**
 * Turns the response into an event stream and sends its head; later errors are frames. `onClose` runs once, however the stream
 * ends. `isTurn`: the stream of a message, which also ends at INPUT_REQUIRED; false for subscriptions. `historyLength`: newest messages of the
 * history in the task. Absent: all.
 */
export function openViewer(
  server: A2AServer,
  context: OperationContext,
  { dialect, isTurn, historyLength }: { dialect: Dialect; isTurn: boolean; historyLength?: number | undefined },
  onClose: () => void,
): Viewer {
  const sink = context.openSink(dialect, context.extensions);
  // There may be many idle streams, so each keeps only this part of the context, not the request.
  const { hop } = context;
  const viewer = new Viewer(server, {
    sink,
    meter: new DeliveryMeter(server, context, isTurn),
    budget: server.quotas.sentBudget(context.caller),
    endsAtInputRequired: isTurn,
    showsTimeline: showsTimeline(context.extensions),
    historyLength,
  });
  server.streams.add(viewer);
  sink.onClose(() => {
    server.streams.remove(viewer);
    viewer.stop();
    server.metrics?.sent.add(sink.written);
    hop.count(COUNT.bytesOut, sink.written);
    endHop(server, hop, viewer.outcome);
    onClose();
  });
  sink.open();
  // The process may have begun to drain after the request got its slot.
  if (server.streams.draining.aborted) viewer.drain();
  return viewer;
}

function endHop({ metrics }: A2AServer, hop: OperationContext['hop'], outcome: StreamEnd | undefined): void {
  hop.set({ [ATTR.outcome]: outcome ?? 'client_gone' });
  if (outcome === 'slow_viewer' || outcome === 'drain') metrics?.viewersCut.add(1, { reason: outcome });
  if (outcome === 'UNAVAILABLE' || outcome === 'INTERNAL_ERROR') {
    metrics?.viewersCut.add(1, { reason: 'log_fault' });
    hop.fail(outcome);
  } else hop.end();
}
