import { type Role, workFilter } from '@hopline/events';
import {
  AckPolicy,
  type ConsumerConfig,
  type ConsumerInfo,
  DeliverPolicy,
  JetStreamApiError,
  type JetStreamManager,
  type StreamInfo,
} from '@nats-io/jetstream';
import { nanos } from '@nats-io/nats-core';
import { consumerName, type LogNames, type Queue } from './names.ts';

/** Waiting pulls of one queue, one per process. */
const WORK_PULLS_MAX = 4_096;
/**
 * The server removes a consumer that has had no worker for the age limit of its items plus this time. None of its items is left then (ADR
 * 147).
 */
const UNUSED_MS = 24 * 60 * 60_000;
/** 2.10 and newer reject the creation of an existing consumer with other settings; older servers update it. */
const CONSUMER_EXISTS = 10148;
const CONSUMER_NOT_FOUND = 10014;

/** `deliveriesMax`: the server limits all deliveries, because only workers know which of them are attempts. */
export type ConsumerSettings = { ackWaitMs: number; deliveriesMax: number; turnsMax: number };

/**
 * Requests about streams and about the consumers of the work stream. Each is sent once, and rejects with an error that `retry` understands.
 */
export type StreamRequests = {
  /** `filter`: the subjects that `state.subjects` lists and counts. */
  info(stream: string, filter?: string): Promise<StreamInfo>;
  consumer(role: Role, queue: Queue): Promise<ConsumerInfo>;
  /** Creates the consumer of a queue, or updates it to these settings. */
  ensureConsumer(role: Role, queue: Queue, settings: ConsumerSettings): Promise<void>;
};

/** Asks NATS. */
export class DirectStreams implements StreamRequests {
  readonly #connection: { readonly jsm: JetStreamManager; readonly names: LogNames };

  constructor(connection: { readonly jsm: JetStreamManager; readonly names: LogNames }) {
    this.#connection = connection;
  }

  info(stream: string, filter?: string): Promise<StreamInfo> {
    return this.#connection.jsm.streams.info(stream, filter === undefined ? undefined : { subjects_filter: filter });
  }

  consumer(role: Role, queue: Queue): Promise<ConsumerInfo> {
    const { jsm, names } = this.#connection;
    return jsm.consumers.info(names.workStream, consumerName(role, queue));
  }

  async ensureConsumer(role: Role, queue: Queue, { ackWaitMs, deliveriesMax, turnsMax }: ConsumerSettings): Promise<void> {
    const { names, jsm } = this.#connection;
    const name = consumerName(role, queue);
    const updatable = {
      ack_wait: nanos(ackWaitMs),
      max_deliver: deliveriesMax,
      max_ack_pending: turnsMax,
      inactive_threshold: unusedNanos((await this.info(names.workStream)).config.max_age),
    };
    const fixed: Partial<ConsumerConfig> = {
      durable_name: name,
      filter_subject: names.subject(workFilter(role, queue)),
      deliver_policy: DeliverPolicy.All,
      ack_policy: AckPolicy.Explicit,
      max_waiting: WORK_PULLS_MAX,
    };
    try {
      await jsm.consumers.add(names.workStream, { ...fixed, ...updatable });
    } catch (error) {
      if (!(error instanceof JetStreamApiError) || error.code !== CONSUMER_EXISTS) throw error;
      await jsm.consumers.update(names.workStream, name, updatable);
    }
  }
}

/** 0, which is never, if items have no age limit. */
function unusedNanos(maxAgeNanos: number): number {
  return maxAgeNanos === 0 ? 0 : maxAgeNanos + nanos(UNUSED_MS);
}

export function isConsumerNotFound(error: unknown): boolean {
  return error instanceof JetStreamApiError && error.code === CONSUMER_NOT_FOUND;
}
