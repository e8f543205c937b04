import { COUNT } from '@hopline/telemetry';
import type { A2AServer, OperationContext } from '../a2a-server.ts';
import type { VisibleEntry } from '../feed/visible-entry.ts';
import { Viewer } from './viewer.ts';

/**
 * Turns the response into an event stream and sends its head; later errors are frames. `onClose` runs once, however the stream
 * ends.
 */
export function openViewer(
  server: A2AServer,
  context: OperationContext,
  endsAtInputRequired: boolean,
  onClose: () => void,
): Viewer {
  const sink = context.openSink(context.dialect, context.extensions);
  const viewer = new Viewer({
    sink,
    facts: server.log.facts,
    limits: server.limits,
    endsAtInputRequired,
    onEntry: deliveryMeter(server, context),
    onCut: reason => {
      server.metrics?.viewersCut.add(1, { reason });
      server.logger.info({ reason, bytes: sink.backlog }, 'stream cut');
      context.hop.set({ 'hopline.outcome': reason });
    },
  });
  const remove = server.streams.add({
    keepAlive: () => sink.keepAlive(),
    drain: () => viewer.drain(),
    cut: () => sink.cut(),
  });
  sink.onClose(() => {
    remove();
    server.metrics?.bytesOut.add(sink.written);
    context.hop.count(COUNT.bytesOut, sink.written);
    onClose();
  });
  sink.open();
  return viewer;
}

/** Counts the frames of this stream, and measures each live fact once, at the first socket it reaches. */
function deliveryMeter(server: A2AServer, context: OperationContext): (entry: VisibleEntry) => void {
  let text = false;
  return entry => {
    context.hop.count(COUNT.events);
    const { fact } = entry;
    const now = Date.now();
    const isText = fact.kind === 'artifact.updated' && fact.chunk !== undefined;
    if (isText && !text) {
      text = true;
      context.hop.max(COUNT.firstTokenMs, now - context.receivedAt);
      server.metrics?.timeToFirstToken.recordMs(now - context.receivedAt);
    }
    if (!entry.takeFirstDelivery()) return;
    server.metrics?.logToSocket.recordMs(now - fact.at);
    if (isText) server.metrics?.endToEnd.recordMs(now - fact.chunk!.firstAt);
  };
}
