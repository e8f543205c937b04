import { stateWord } from '@hopline/a2a';
import { formatCursor } from '@hopline/events';
import { ATTR, COUNT, type Hop, inTrace, SPAN, spanContextFrom, startHop, type TraceCarrier } from '@hopline/telemetry';
import type { PendingDelivery } from './pending-delivery.ts';
import type { AttemptFailure } from './webhook-client.ts';

type DeliveryHopOptions = {
  taskId: string;
  dialect: string;
  host: string;
  /** Number of the webhook's failures before this run of deliveries. */
  failures: number;
};

/**
 * The span of one run of deliveries to a webhook: one span with counts for each segment, not one for each notification. It belongs to the
 * trace of the task, below the relay that stored the events. A later turn has its own trace.
 */
export class DeliveryHop {
  readonly #options: DeliveryHopOptions;
  #hop: Hop | undefined;
  #traceId: string | undefined;
  /** Trace of the last notification, even after its span has ended. */
  #trace: TraceCarrier | undefined;

  constructor(options: DeliveryHopOptions) {
    this.#options = options;
  }

  /** Trace context for the request, so that the receiver joins the trace of the task. */
  carrier(): TraceCarrier {
    return this.#hop?.carrier() ?? {};
  }

  /** Called before a notification is sent. */
  begin(delivery: PendingDelivery): void {
    const { trace = {}, lastTrace, event, generation, seq } = delivery;
    const traceId = spanContextFrom(trace)?.traceId;
    if (this.#hop !== undefined && traceId !== undefined && traceId !== this.#traceId) this.end();
    this.#hop ??= this.#start(trace);
    this.#traceId = traceId ?? this.#traceId;
    this.#trace = this.#hop.carrier();
    this.#hop.link(lastTrace ?? trace);
    const state = 'statusUpdate' in event ? stateWord(event.statusUpdate.status.state) : undefined;
    this.#hop.set({
      [ATTR.generation]: generation,
      [ATTR.cursor]: formatCursor({ generation, seq }),
      ...(state !== undefined && { [ATTR.a2aState]: state }),
    });
  }

  /** Runs `fn` in the trace of the last notification, so that its log lines have the trace id. */
  run(fn: () => void): void {
    inTrace(this.#trace, fn);
  }

  sent(bytes: number): void {
    this.#hop?.count(COUNT.bytesOut, bytes);
  }

  delivered({ count }: PendingDelivery, status: number | undefined): void {
    this.#hop?.count(COUNT.delivered);
    this.#hop?.count(COUNT.events, count);
    this.#hop?.set({ [ATTR.httpStatus]: status, [ATTR.outcome]: 'delivered' });
  }

  failed({ reason, status }: AttemptFailure): void {
    this.#hop?.count(COUNT.failed);
    this.#hop?.set({ [ATTR.httpStatus]: status, [ATTR.outcome]: reason });
    this.#hop?.fail(reason);
    this.#hop = undefined;
  }

  end(): void {
    this.#hop?.end();
    this.#hop = undefined;
  }

  #start(trace: TraceCarrier): Hop {
    const { taskId, dialect, host, failures } = this.#options;
    const { hostname = host, port = '' } = URL.parse(`http://${host}`) ?? {};
    return startHop(SPAN.sendPushNotification, {
      kind: 'client',
      parent: trace,
      attributes: {
        [ATTR.a2aTask]: taskId,
        [ATTR.a2aVersion]: dialect,
        [ATTR.serverAddress]: hostname,
        ...(port !== '' && { [ATTR.serverPort]: Number(port) }),
        [ATTR.attempt]: failures + 1,
      },
    });
  }
}
