import { jetstreamManager } from '@nats-io/jetstream';
import { connect, type NatsConnection } from '@nats-io/transport-node';

/** Streams that services write without requests, such as heartbeats. */
const OWN = /^KV_.*(lease|agent)/i;

/** The last sequence of each stream and bucket. */
export class LogState {
  readonly #connection: NatsConnection;

  private constructor(connection: NatsConnection) {
    this.#connection = connection;
  }

  static async open(url: string): Promise<LogState> {
    return new LogState(await connect({ servers: url }));
  }

  /** All last sequences as one string. */
  async now(): Promise<string> {
    const streams: string[] = [];
    for await (const { config, state } of (await jetstreamManager(this.#connection)).streams.list()) {
      if (!OWN.test(config.name)) streams.push(`${config.name} ${state.last_seq}`);
    }
    return streams.sort().join('\n');
  }

  /** The state after `quietMs` without a change. */
  async quiet(quietMs: number): Promise<string> {
    for (let before = await this.now(); ; ) {
      await new Promise(resolve => setTimeout(resolve, quietMs));
      const after = await this.now();
      if (after === before) return after;
      before = after;
    }
  }

  close(): Promise<void> {
    return this.#connection.close();
  }
}
