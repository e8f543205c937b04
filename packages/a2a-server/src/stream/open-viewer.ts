import { COUNT } from '@hopline/telemetry';
import type { A2AServer, OperationContext } from '../a2a-server.ts';
import type { VisibleEntry } from '../feed/visible-entry.ts';
import { Viewer } from './viewer.ts';

/** Takes the response over as an event stream and flushes its head. From here on errors are frames. `onClose` runs once, however the stream ends. */
export function openViewer(door: A2AServer, ask: OperationContext, endsAtQuestion: boolean, onClose: () => void): Viewer {
  const sink = ask.openSink(ask.dialect, ask.extensions);
  const viewer = new Viewer({
    sink,
    facts: door.log.facts,
    limits: door.limits,
    endsAtQuestion,
    onEntry: deliveryMeter(door, ask),
    onCut: reason => {
      door.metrics?.viewersCut.add(1, { reason });
      door.logger.info({ reason, bytes: sink.backlog }, 'stream cut');
      ask.hop.set({ 'hopline.outcome': reason });
    },
  });
  const forget = door.streams.add({
    keepAlive: () => sink.keepAlive(),
    drain: () => viewer.drain(),
    cut: () => sink.cut(),
  });
  sink.onClose(() => {
    forget();
    door.metrics?.bytesOut.add(sink.written);
    ask.hop.count(COUNT.bytesOut, sink.written);
    onClose();
  });
  sink.open();
  return viewer;
}

/** Counts frames of this stream, and measures each live fact once, at the first socket it reaches. */
function deliveryMeter(door: A2AServer, ask: OperationContext): (entry: VisibleEntry) => void {
  let text = false;
  return entry => {
    ask.hop.count(COUNT.events);
    const { fact } = entry;
    const now = Date.now();
    const isText = fact.kind === 'artifact.updated' && fact.chunk !== undefined;
    if (isText && !text) {
      text = true;
      ask.hop.max(COUNT.firstTokenMs, now - ask.receivedAt);
      door.metrics?.timeToFirstToken.recordMs(now - ask.receivedAt);
    }
    if (!entry.takeFirstDelivery()) return;
    door.metrics?.logToSocket.recordMs(now - fact.at);
    if (isText) door.metrics?.endToEnd.recordMs(now - fact.chunk!.firstAt);
  };
}
