import { ATTR, COUNT } from '@hopline/telemetry';
import type { A2AServer, OperationContext } from '../a2a-server.ts';
import { DeliveryMeter } from './delivery-meter.ts';
import { type StreamEnd, Viewer } from './viewer.ts';

/**
 * Turns the response into an event stream and sends its head; later errors are frames. `onClose` runs once, however the stream
 * ends. `endsAtInputRequired`: of a message's turn; false for subscriptions.
 */
export function openViewer(
  server: A2AServer,
  context: OperationContext,
  endsAtInputRequired: boolean,
  onClose: () => void,
): Viewer {
  const sink = context.openSink(context.dialect, context.extensions);
  const meter = new DeliveryMeter(server, context, endsAtInputRequired);
  const viewer = new Viewer({
    sink,
    facts: server.log.facts,
    limits: server.limits,
    endsAtInputRequired,
    onEntry: (entry, feed) => meter.add(entry, feed),
    onWritten: () => meter.written(),
    onGap: () => {
      server.metrics?.gaps.add(1);
      context.hop.count(COUNT.gaps);
    },
    onCut: () => server.logger.info({ reason: 'slow_viewer', bytes: sink.backlog }, 'stream cut'),
  });
  const remove = server.streams.add({
    keepAlive: () => sink.keepAlive(),
    drain: () => viewer.drain(),
    cut: () => sink.cut(),
  });
  sink.onClose(() => {
    remove();
    server.metrics?.sent.add(sink.written);
    context.hop.count(COUNT.bytesOut, sink.written);
    endHop(server, context, viewer.outcome);
    onClose();
  });
  sink.open();
  return viewer;
}

function endHop({ metrics }: A2AServer, { hop }: OperationContext, outcome: StreamEnd | undefined): void {
  hop.set({ [ATTR.outcome]: outcome ?? 'client_gone' });
  if (outcome === 'slow_viewer' || outcome === 'drain') metrics?.viewersCut.add(1, { reason: outcome });
  if (outcome === 'UNAVAILABLE' || outcome === 'INTERNAL_ERROR') {
    metrics?.viewersCut.add(1, { reason: 'log_fault' });
    hop.fail(outcome);
  } else hop.end();
}
