import type { Role } from '@hopline/events';
import { type ConsumerInfo, JetStreamApiError, type StreamInfo } from '@nats-io/jetstream';
import type { Queue } from '../names.ts';
import type { ConsumerSettings, StreamRequests } from '../stream-requests.ts';
import type { ReadClient } from './read-client.ts';
import type { ReadRequest } from './requests.ts';

/**
 * A sub-agent asks relays for what other services ask the JetStream API. NATS stores an answer of its API wherever the request asks for it.
 * An agent may therefore not use the API, whose answers could fill the streams that all share. The role in these requests is always that of
 * the agent.
 */
export class RelayedStreams implements StreamRequests {
  readonly #client: ReadClient;

  constructor(client: ReadClient) {
    this.#client = client;
  }

  info(stream: string, filter?: string): Promise<StreamInfo> {
    return this.#ask<StreamInfo>({ op: 'stream', stream, ...(filter !== undefined && { filter }) });
  }

  consumer(_role: Role, queue: Queue): Promise<ConsumerInfo> {
    return this.#ask<ConsumerInfo>({ op: 'consumer', ...(queue !== undefined && { queue }) });
  }

  async ensureConsumer(_role: Role, queue: Queue, settings: ConsumerSettings): Promise<void> {
    await this.#ask({ op: 'ensure-consumer', ...settings, ...(queue !== undefined && { queue }) });
  }

  async #ask<T>(request: ReadRequest): Promise<T> {
    const { messages, end } = await this.#client.askOnce(request);
    if (end.apiError !== undefined) throw new JetStreamApiError(end.apiError);
    const json = Buffer.concat(messages.map(({ data }) => data)).toString();
    return json === '' ? (undefined as T) : JSON.parse(json);
  }
}
