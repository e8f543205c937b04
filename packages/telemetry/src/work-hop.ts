import { type Hop, type HopAttributes, type HopOptions, startHop } from './hop-span.ts';
import { messagingAttributes } from './messaging.ts';
import { ATTR, DESTINATION, SPAN, type SpanName } from './names.ts';
import { carrierOf, spanContextFrom, type TraceCarrier } from './propagation.ts';
import { deliverySpanId } from './span-ids.ts';

/** One delivery of a work item. */
export type WorkDelivery = {
  readonly taskId: string;
  readonly role: string;
  /** Stream sequence of the item. */
  readonly item: number;
  /** Delivery count of the item, 1-based. */
  readonly attempt: number;
  /** Earlier deliveries that were returned in order. */
  readonly requeues: number;
  /** Epoch milliseconds at which it was queued; absent when unknown. */
  readonly queuedAt?: number | undefined;
  /** Epoch milliseconds at which this process took it. */
  readonly takenAt: number;
  readonly trace?: TraceCarrier | undefined;
};

/** Why an item is delivered again: it was returned in order, or its worker failed or died. Undefined for the first delivery. */
export function redeliveryCause({
  attempt,
  requeues,
}: Pick<WorkDelivery, 'attempt' | 'requeues'>): 'requeue' | 'redelivery' | undefined {
  if (attempt === 1) return undefined;
  return requeues === attempt - 1 ? 'requeue' : 'redelivery';
}

/** When and why a worker took an item, for the first record that it writes. */
export function takenWork({
  queuedAt,
  takenAt,
  ...delivery
}: Pick<WorkDelivery, 'attempt' | 'requeues' | 'queuedAt' | 'takenAt'>) {
  const cause = redeliveryCause(delivery);
  return { ...(queuedAt !== undefined && { queuedAt }), at: takenAt, ...(cause && { cause }) };
}

/**
 * The hop of a worker over one work item. The span of its receipt is exported at once; a later delivery links to the span of the previous
 * one, whose process may have died.
 */
export function startWorkHop(name: SpanName, kind: HopOptions['kind'], delivery: WorkDelivery, attributes: HopAttributes): Hop {
  const { taskId, role, item, attempt, queuedAt, takenAt, trace = {} } = delivery;
  const subject = { destination: `a2a.work.${role}.${taskId}`, consumer: role.replace('.', '-') };
  const parent = spanContextFrom(trace);
  const links =
    parent !== undefined && attempt > 1
      ? [carrierOf({ ...parent, spanId: deliverySpanId(taskId, role, item, attempt - 1) })]
      : [];
  return startHop(name, {
    kind,
    parent: trace,
    links,
    attributes: {
      ...(name === SPAN.processWork && messagingAttributes(DESTINATION.work, { operation: 'process', ...subject })),
      [ATTR.a2aTask]: taskId,
      [ATTR.attempt]: attempt,
      [ATTR.cause]: redeliveryCause(delivery),
      ...attributes,
    },
    receive: {
      name: SPAN.receiveWork,
      // A later delivery did not wait for a free worker, so its waiting time is not measured.
      ...(attempt === 1 && { queuedAt }),
      takenAt,
      spanId: deliverySpanId(taskId, role, item, attempt),
      attributes: messagingAttributes(DESTINATION.work, { operation: 'receive', ...subject }),
    },
  });
}
