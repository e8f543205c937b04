import { logSubject } from '@hopline/events';
import { addEnded, type EndedTask, endedKey, isEndedTasks, listPrefixOf, type TaskIndexEntry } from '@hopline/log';
import { BUCKETS, FACTS_STREAM, openJetStreamLog } from '@hopline/log-jetstream';
import { jetstreamManager } from '@nats-io/jetstream';
import { headers, type NatsConnection } from '@nats-io/nats-core';
import { connect } from '@nats-io/transport-node';
import { until } from '../../kit/until.ts';
import { answerCalls } from '../measure/load-process.ts';
import { CopiedTask, type StoredTask } from './copied-task.ts';
import { populationTask } from './stored-population.ts';

/** Fills a log with copies of an ended task, and their index entries and lists. */

/** Tasks between two that are acknowledged. nats-server drops the messages of a stream that has 10,000 waiting. */
const ACK_EVERY_TASKS = 128;
const ACKS_IN_FLIGHT_MAX = 4;
/** Number of rows that a relay adds to a list at once: those that become one page. */
const ROWS_AT_ONCE = 192;
const LISTS_AT_ONCE_MAX = 64;
const ACK_MS_MAX = 30_000;
/** A relay moves an ended task into the list of its owner after half a minute. */
const MOVE_MS_MAX = 120_000;

export type FillParams = { servers: string; stored: StoredTask; total: number; untilMs: number };

/** Stores the population, and resolves with its first log sequence. No other process may append facts during this time. */
async function fill({ servers, stored, total, untilMs }: FillParams): Promise<{ firstSeq: number; records: number }> {
  const nc = await connect({ servers });
  const log = await openJetStreamLog({ servers, name: 'loader' });
  const copied = new CopiedTask(stored);
  const lists = new Map<string, EndedTask[]>();
  const acks = new Set<Promise<void>>();
  let seq = await lastSeqOf(nc);
  const firstSeq = seq + 1;
  for (let k = 0; k < total; k += 1) {
    const copy = populationTask(k, total, untilMs);
    const startSeq = seq + 1;
    const entry: TaskIndexEntry = copied.entry(copy, startSeq);
    const isAcknowledged = k % ACK_EVERY_TASKS === 0 || k === total - 1;
    for (const [index, payload] of copied.facts(copy, startSeq).entries()) {
      const header = headers();
      header.set('Nats-Msg-Id', copied.factsId(copy, index + 1));
      header.set('Nats-Expected-Last-Subject-Sequence', String(index === 0 ? 0 : seq));
      seq += 1;
      const subject = logSubject(copy.taskId, log.layouts);
      if (isAcknowledged && index === copied.records - 1) track(acks, stores(nc, subject, payload, seq, header));
      else nc.publish(subject, payload, { headers: header });
    }
    const key = `$KV.${BUCKETS.tasks}.${copy.taskId}`;
    if (isAcknowledged) track(acks, stores(nc, key, JSON.stringify(entry)));
    else nc.publish(key, JSON.stringify(entry));
    const prefix = listPrefixOf(copy.taskId, entry, log.layouts);
    const rows = lists.get(prefix) ?? [];
    lists.set(prefix, rows);
    rows.push(copied.row(copy, startSeq));
    while (acks.size >= 2 * ACKS_IN_FLIGHT_MAX) await Promise.race(acks);
  }
  await Promise.all(acks);
  await addLists(log, [...lists]);
  await log.close();
  await nc.close();
  return { firstSeq, records: copied.records };
}

/** Resolves when the stream has stored the message, and with it all that were sent to it before. */
async function stores(
  nc: NatsConnection,
  subject: string,
  payload: string,
  seq?: number,
  header?: ReturnType<typeof headers>,
): Promise<void> {
  const answer = await nc.request(subject, payload, { timeout: ACK_MS_MAX, ...(header && { headers: header }) });
  const ack = answer.json<{ seq?: number; error?: { description: string } }>();
  if (ack.error !== undefined) throw new Error(`${subject}: ${ack.error.description}`);
  if (seq !== undefined && ack.seq !== seq) throw new Error(`${subject} was stored as ${ack.seq}, not as ${seq}`);
}

function track(open: Set<Promise<void>>, work: Promise<void>): void {
  const settled = work.finally(() => open.delete(settled));
  open.add(settled);
}

async function addLists(log: Awaited<ReturnType<typeof openJetStreamLog>>, lists: [string, EndedTask[]][]): Promise<void> {
  let next = 0;
  const work = async () => {
    for (let list = lists[next++]; list !== undefined; list = lists[next++]) {
      const [prefix, rows] = list;
      for (let at = 0; at < rows.length; at += ROWS_AT_ONCE)
        await addEnded(log.taskLists, prefix, rows.slice(at, at + ROWS_AT_ONCE));
    }
  };
  await Promise.all(Array.from({ length: LISTS_AT_ONCE_MAX }, work));
}

async function lastSeqOf(nc: NatsConnection): Promise<number> {
  const { streams } = await jetstreamManager(nc);
  return (await streams.info(FACTS_STREAM)).state.last_seq;
}

/** Reads the records of an ended task of the cluster. */
async function read({ servers, taskId, subject }: { servers: string; taskId: string; subject: string }): Promise<StoredTask> {
  const nc = await connect({ servers });
  const log = await openJetStreamLog({ servers, name: 'loader' });
  try {
    const found = await log.tasks.get(taskId);
    if (found === undefined) throw new Error('the task has no entry');
    const entry = found.value;
    const { streams } = await jetstreamManager(nc);
    const facts: string[] = [];
    let relay = '';
    for (let seq = entry.startSeq; seq <= (entry.seq ?? 0); seq += 1) {
      const stored = await streams.getMessage(FACTS_STREAM, { seq });
      if (stored?.subject !== logSubject(taskId, log.layouts)) continue;
      facts.push(new TextDecoder().decode(stored.data));
      relay = /^[^:]+:(.+):\d+$/.exec(stored.header.get('Nats-Msg-Id'))![1]!;
    }
    const last = await log.facts.last(taskId);
    const messageId = last!.record.aggregate.messageIds[0]!;
    const { contextId, generation, at: endedAt } = entry;
    const key = endedKey(listPrefixOf(taskId, entry, log.layouts));
    const listedInRow = async () => {
      const list = (await log.taskLists.get(key))?.value;
      return list !== undefined && isEndedTasks(list) ? list.ended.find(([id]) => id === taskId)?.[6] : undefined;
    };
    const listed = await until(listedInRow, 'the task moves into the list of its owner', MOVE_MS_MAX);
    return { taskId, contextId, messageId, subject, endedAt, generation, facts, relay, entry, listed };
  } finally {
    await log.close();
    await nc.close();
  }
}

const methods = { fill, read };
export type LoaderMethods = typeof methods;

answerCalls(methods);
