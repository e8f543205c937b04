/** The sequence of a delivery, and the sequence of its message in the stream. */
export type Sequences = { dseq: number; sseq: number };

/**
 * The state of a consumer as nats-server stores it (consumerFileStore) and the API reports it. After a purge, or after deliveries are
 * exhausted, it may differ from the state that the consumer itself uses.
 */
export class StoredState {
  delivered: Sequences;
  floor: Sequences;
  /** The first delivery of each message without an acknowledgement, by its sequence in the stream. */
  #pending = new Map<number, number>();

  constructor(newest: Sequences) {
    this.delivered = { ...newest };
    this.floor = { ...newest };
  }

  onDeliveredWithoutAck({ dseq, sseq }: Sequences): void {
    this.delivered = { dseq: Math.max(this.delivered.dseq, dseq), sseq: Math.max(this.delivered.sseq, sseq) };
    this.floor = { ...this.delivered };
  }

  /** `isExhausted`: the message would be delivered too often, and is not waited for any more. */
  onDelivered({ dseq, sseq }: Sequences, isExhausted = false): void {
    if (dseq <= this.floor.dseq) return;
    if (sseq > this.delivered.sseq) this.#pending.set(sseq, dseq);
    this.delivered = { dseq: Math.max(this.delivered.dseq, dseq), sseq: Math.max(this.delivered.sseq, sseq) };
    if (isExhausted) this.#pending.delete(sseq);
  }

  onAck({ dseq, sseq }: Sequences): void {
    const first = this.#pending.get(sseq);
    if (dseq <= this.floor.dseq || first === undefined) return;
    this.#pending.delete(sseq);
    this.floor = movedFloor(this.floor, this.delivered, { dseq: Math.min(dseq, first), sseq }, this.#pending);
  }

  /** Takes the state of the consumer, unless its parts do not fit each other or it is older. */
  replace(delivered: Sequences, floor: Sequences, pending: ReadonlyMap<number, number>): void {
    if (floor.dseq > delivered.dseq || floor.sseq > delivered.sseq) return;
    if ([...pending.keys()].some(sseq => sseq <= floor.sseq || sseq > delivered.sseq)) return;
    if (delivered.dseq < this.delivered.dseq || floor.sseq < this.floor.sseq) return;
    this.delivered = { ...delivered };
    this.floor = { ...floor };
    this.#pending = new Map(pending);
  }
}

/**
 * The sequence below which everything is acknowledged after an acknowledgement. `pending`: first deliveries by sequence, without the acknowledged
 * one.
 */
export function movedFloor(
  floor: Sequences,
  newest: Sequences,
  { dseq, sseq }: Sequences,
  pending: ReadonlyMap<number, number>,
): Sequences {
  if (pending.size === 0) return { ...newest };
  if (dseq !== floor.dseq + 1) return floor;
  const after = [...pending.keys()].filter(seq => seq > sseq && seq <= newest.sseq);
  const first = after.length === 0 ? undefined : Math.min(...after);
  return first === undefined ? { dseq, sseq } : { dseq: pending.get(first)! - 1, sseq: first - 1 };
}
