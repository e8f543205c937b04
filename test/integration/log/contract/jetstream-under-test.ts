import { logSubject, rawSubject, rawTaskFilter, shardOf } from '@hopline/events';
import type { Log } from '@hopline/log';
import { type JetStreamLogOptions, LogNames, openJetStreamLog } from '@hopline/log-jetstream';
import { jetstreamManager } from '@nats-io/jetstream';
import { connect as connectBySocket } from '@nats-io/transport-node';
import {
  CONTRACT_ACK_WAIT_MS,
  CONTRACT_ATTEMPTS_MAX,
  CONTRACT_FOLLOW_BUFFER_RECORDS_MAX,
  CONTRACT_LAYOUTS,
  CONTRACT_REQUEUES_MAX,
  CONTRACT_ROLE_ITEMS_MAX,
  CONTRACT_SHARDS,
  CONTRACT_TENANT_ITEMS_MAX,
  type LogUnderTest,
} from './log-under-test.ts';

/** A nats-server for one log under test. */
export type Broker = {
  /** An address for fault injection that no fault reaches. */
  url: string;
  /** Its address for the log under test, where messages are dropped and connections are cut. */
  port: {
    url: string;
    lose: ((message: { subject: string; header: string; payload: Buffer }) => boolean) | undefined;
    cut(): void;
    mend(): void;
  };
  /** Default: by a socket. */
  connect?: NonNullable<JetStreamLogOptions['connect']>;
  close(): Promise<void>;
};

const ACK_TIMEOUT_MS = 250;
const SUBJECTS = { inputs: rawTaskFilter, facts: logSubject };

/** The log under test connects through a port that drops selected messages; fault injection uses a separate connection. */
export async function jetStreamUnderTest(
  broker: Broker,
  { groups = 1, tailCheckMs }: { groups?: number; tailCheckMs: number },
): Promise<LogUnderTest> {
  const names = new LogNames('', groups);
  const { url, port, connect = connectBySocket } = broker;
  const options = {
    name: 'contract',
    connect,
    shards: CONTRACT_SHARDS,
    groups,
    attemptsMax: CONTRACT_ATTEMPTS_MAX,
    requeuesMax: CONTRACT_REQUEUES_MAX,
    roleItemsMax: CONTRACT_ROLE_ITEMS_MAX,
    tenantItemsMax: CONTRACT_TENANT_ITEMS_MAX,
    ackWaitMs: CONTRACT_ACK_WAIT_MS,
    ackTimeoutMs: ACK_TIMEOUT_MS,
    follow: { tailCheckMs, bufferRecordsMax: CONTRACT_FOLLOW_BUFFER_RECORDS_MAX },
  };
  let reconnected: (() => void) | undefined;
  const onEvent = ({ type }: { type: string }) => void (type === 'reconnected' && reconnected?.());
  const log = await openJetStreamLog({ ...options, servers: port.url, onEvent });
  const others: Log[] = [];
  const nc = await connect({ servers: url, noAsyncTraces: true });
  const jsm = await jetstreamManager(nc);
  const losing = { acks: 0, live: 0 };
  port.lose = ({ subject, payload }) => {
    const what = subject.startsWith('a2a.live.') ? 'live' : isPublishAnswer(payload) ? 'acks' : undefined;
    if (!what || losing[what] <= 0) return false;
    losing[what] -= 1;
    return true;
  };
  return {
    log,
    async another() {
      const other = await openJetStreamLog({ ...options, servers: url });
      others.push(other);
      return other;
    },
    loseAcks: count => {
      losing.acks = count;
    },
    loseLive: count => {
      losing.live = count;
    },
    async cut(during) {
      const back = new Promise<void>(resolve => {
        reconnected = resolve;
      });
      port.cut();
      await during();
      port.mend();
      await back;
    },
    async expire(what, taskId, below) {
      const shard = shardOf(taskId, CONTRACT_LAYOUTS);
      const stream = what === 'inputs' ? names.inputsStreamOf(shard) : names.factsStreamOf(shard);
      await jsm.streams.purge(stream, { filter: SUBJECTS[what](taskId, CONTRACT_LAYOUTS), seq: below });
    },
    async lose(taskId, lastSeq) {
      const stream = names.factsStreamOf(shardOf(taskId, CONTRACT_LAYOUTS));
      const { config } = await jsm.streams.info(stream);
      await jsm.streams.delete(stream);
      await jsm.streams.add({ ...config, first_seq: lastSeq + 1 });
    },
    async garbage(what, taskId) {
      const subject = what === 'facts' ? logSubject(taskId, CONTRACT_LAYOUTS) : rawSubject(taskId, CONTRACT_LAYOUTS, 'client');
      await nc.request(subject, 'not json');
    },
    async readersLeft() {
      const streams = [...names.inputsStreams, ...names.factsStreams];
      const left = await Promise.all(streams.map(stream => jsm.streams.info(stream)));
      return left.reduce((sum, { state }) => sum + state.consumer_count, 0);
    },
    async close() {
      for (const opened of [...others, log]) await opened.close();
      await nc.close();
      await broker.close();
    },
  };
}

function isPublishAnswer(payload: Buffer): boolean {
  const start = payload.toString('latin1', 0, 10);
  return start === '{"stream":' || start.startsWith('{"error":');
}
