import { FACTS_STREAM, INPUTS_STREAM, openJetStreamLog } from '@hopline/log-jetstream';
import { jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';

/** Records of the log after a run, read from the server itself. */

/** `bytes`: of both streams, in one replica. */
export type RecordCounts = { inputs: number; facts: number; bytes: number };

export async function countRecords(servers: string): Promise<RecordCounts> {
  const nc = await connect({ servers });
  try {
    const { streams } = await jetstreamManager(nc);
    const [inputs, facts] = [(await streams.info(INPUTS_STREAM)).state, (await streams.info(FACTS_STREAM)).state];
    return { inputs: inputs.messages, facts: facts.messages, bytes: inputs.bytes + facts.bytes };
  } finally {
    await nc.close();
  }
}

/** Store times of these fact records, epoch milliseconds with the server's fraction. */
export async function storedAtMs(servers: string, seqs: Iterable<number>): Promise<Map<number, number>> {
  const nc = await connect({ servers });
  try {
    const { streams } = await jetstreamManager(nc);
    const times = new Map<number, number>();
    for (const seq of seqs) {
      const found = await streams.getMessage(FACTS_STREAM, { seq });
      if (found) times.set(seq, epochMs(found.timestamp));
    }
    return times;
  } finally {
    await nc.close();
  }
}

/** Parses RFC 3339 with nanoseconds; Date.parse alone drops the fraction of a millisecond. */
function epochMs(timestamp: string): number {
  const fraction = /\.(\d+)/.exec(timestamp)?.[1] ?? '';
  return Math.floor(Date.parse(timestamp) / 1000) * 1000 + Number(`0.${fraction || '0'}`) * 1000;
}

const READ_MS_MAX = 30_000;

export type AgentTokens = { agent: string; taskIds: readonly string[]; tokens: number };

/** Publish time of each token of these tasks in the agent's newest attempt, epoch milliseconds, in order. Reads until each task has `tokens`. */
export async function publishedAtMs(servers: string, { agent, taskIds, tokens }: AgentTokens): Promise<Map<string, number[]>> {
  const log = await openJetStreamLog({ servers, name: 'bench-reader' });
  const published = new Map(taskIds.map(taskId => [taskId, { attempt: 0, times: [] as number[] }]));
  const done = new AbortController();
  const late = setTimeout(() => done.abort(), READ_MS_MAX);
  let missing = taskIds.length * tokens;
  if (missing === 0) done.abort();
  const readShard = async (shard: number) => {
    for await (const { taskId, record } of log.inputs.readShard(shard, 0, done.signal)) {
      const task = published.get(taskId);
      if (task === undefined || record.from === 'client' || record.from === 'relay' || record.from.agent !== agent) continue;
      if (record.from.attempt > task.attempt) {
        missing += task.times.length;
        published.set(taskId, { attempt: record.from.attempt, times: [] });
      }
      const { times } = published.get(taskId)!;
      for (const input of record.inputs) {
        if (input.kind !== 'text') continue;
        for (const index of input.tokens.keys()) times.push(record.at + (input.dt?.[index] ?? 0));
        missing -= input.tokens.length;
      }
      if (missing <= 0) done.abort();
    }
  };
  try {
    await Promise.all(Array.from({ length: log.shards }, (_, shard) => readShard(shard)));
  } finally {
    clearTimeout(late);
    await log.close();
  }
  return new Map([...published].map(([taskId, { times }]) => [taskId, times]));
}
