import { BUCKETS, INPUTS_STREAM } from '@hopline/log-jetstream';
import { jetstreamManager } from '@nats-io/jetstream';
import { connect, type NatsConnection } from '@nats-io/transport-node';

/** Streams that services write without requests, such as heartbeats. */
const OWN = /^KV_.*(lease|agent)/i;
/** Inputs of clients: the only ones that a server appends. */
const CLIENT_INPUTS = 'a2a.raw.*.*.client';
const TASK_TOKEN = 3;
/** Entries of open tasks in the lists. A server adds them, a relay changes and removes them. Their last token is the task id. */
const LISTED_TASKS = `$KV.${BUCKETS.taskLists}.*.*.*.t.*`;
/** Buckets that only servers write. */
const OF_SERVERS = [BUCKETS.messageIds, BUCKETS.pushConfigs];

/** Traces that requests have left in the log. */
export class LogState {
  readonly #connection: NatsConnection;

  private constructor(connection: NatsConnection) {
    this.#connection = connection;
  }

  static async open(url: string): Promise<LogState> {
    return new LogState(await connect({ servers: url }));
  }

  /**
   * The writes of servers as one string; every other write follows from one of them. Writes that an earlier request caused in other
   * services do not count, however late they are. `hopline_tasks` is not in it, because only relays write it.
   */
  async ofServers(): Promise<string> {
    const { streams } = await jetstreamManager(this.#connection);
    const subjectsOf = async (stream: string, filter: string) =>
      (await streams.info(stream, { subjects_filter: filter })).state.subjects ?? {};
    const stateOf = async (bucket: string) => (await streams.info(`KV_${bucket}`)).state;
    const inputs = await subjectsOf(INPUTS_STREAM, CLIENT_INPUTS);
    const asked = new Set(Object.keys(inputs).map(subject => subject.split('.')[TASK_TOKEN]));
    const listed = Object.keys(await subjectsOf(`KV_${BUCKETS.taskLists}`, LISTED_TASKS)).map(key => key.split('.').at(-1));
    const buckets = [
      ...OF_SERVERS.map(async bucket => `${bucket} ${(await stateOf(bucket)).last_seq}`),
      stateOf(BUCKETS.contexts).then(({ num_subjects }) => `${BUCKETS.contexts} ${num_subjects ?? 0}`),
    ];
    return [
      `${CLIENT_INPUTS} ${Object.values(inputs).reduce((sum, count) => sum + count, 0)}`,
      ...(await Promise.all(buckets)),
      `listed without a message: ${listed.filter(id => !asked.has(id)).sort()}`,
    ].join('\n');
  }

  /** Waits until no stream or bucket has changed for `quietMs`. */
  async quiet(quietMs: number): Promise<void> {
    for (let before = await this.#sequences(); ; ) {
      await new Promise(resolve => setTimeout(resolve, quietMs));
      const after = await this.#sequences();
      if (after === before) return;
      before = after;
    }
  }

  close(): Promise<void> {
    return this.#connection.close();
  }

  /** The last sequence of each stream and bucket. */
  async #sequences(): Promise<string> {
    const found: string[] = [];
    for await (const { config, state } of (await jetstreamManager(this.#connection)).streams.list()) {
      if (!OWN.test(config.name)) found.push(`${config.name} ${state.last_seq}`);
    }
    return found.sort().join('\n');
  }
}
