import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, open, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type LeaseValue, LogMismatch, LogUnavailable } from '@hopline/log';
import { jetstream, type StreamConfig, type StreamInfo, type StreamState } from '@nats-io/jetstream';
import type { Msg, Subscription } from '@nats-io/nats-core';
import { decodeValue } from './codec.ts';
import type { Connection } from './connection.ts';
import { headersOf } from './message-headers.ts';
import { isStreamNotFound } from './missing-stream.ts';
import { BUCKETS, type LogNames } from './names.ts';
import { retry } from './retry.ts';
import { useStoredLayouts } from './streams.ts';

/**
 * Backup of the log in a folder. For each stream it has the files of `nats stream backup` (`backup.json`, `stream.tar.s2`), made by the
 * snapshot API of the server while the cluster runs. A list of the streams is written last.
 */

const LIST_FILE = 'hopline-backup.json';
const CONFIG_FILE = 'backup.json';
const DATA_FILE = 'stream.tar.s2';
/** Only their owner may read the files, because they contain the texts of all tasks. */
const FOLDER_MODE = 0o700;
const FILE_MODE = 0o600;
/** Version of the folder's form. */
const FORM = 1;
const CHUNK_BYTES = 128 * 1024;
/** Longest wait for the next part of a snapshot, or for the server to take one. */
const PART_MS_MAX = 30_000;
/** Time limit for the answer to the request to restore a stream. A repetition would be refused, because the stream then exists. */
const RESTORE_MS_MAX = 30_000;
/** Time limit after the last part, when the server unpacks the stream. */
const UNPACK_MS_MAX = 600_000;
/** Time to wait for an item that is not delivered because its consumer already has the maximum number of items in delivery. */
const DELIVERY_MS_MAX = 2_000;
/** Time limit for the consumers of a restored stream, which a cluster creates within a second. */
const CONSUMERS_MS_MAX = 15_000;
const CONSUMERS_POLL_MS = 100;
const API_ERROR_MIN = 400;

/** `configSha256` is absent in backups of earlier versions. */
export type BackedUpStream = { name: string; messages: number; bytes: number; sha256: string; configSha256?: string };
type BackupList = { form: number; prefix: string; createdAt: string; server: string; streams: BackedUpStream[] };
type StoredStream = { config: StreamConfig; state: StreamState };

/**
 * The order in which streams are backed up. No stream is newer than a stream that it refers to: facts and queued work refer to inputs,
 * deliveries to facts. A restored cluster then folds, delivers or indexes again what is missing.
 */
function streamsInOrder(names: LogNames): string[] {
  const buckets = Object.values(BUCKETS).map(name => `KV_${names.bucket(name)}`);
  return [...buckets, ...names.factsStreams, names.workStream, ...names.inputsStreams];
}

/** Writes a backup into `folder`, which must be absent or empty. Rejects with LogMismatch or LogUnavailable. */
export async function backUp(
  connection: Connection,
  folder: string,
  onStream: (stream: BackedUpStream) => void,
): Promise<BackedUpStream[]> {
  const streams: BackedUpStream[] = [];
  await requireEmpty(folder);
  await useStoredLayouts(connection);
  for (const name of streamsInOrder(connection.names)) {
    const stream = await backUpStream(connection, name, join(folder, name));
    streams.push(stream);
    onStream(stream);
  }
  const { prefix } = connection.names;
  const list: BackupList = {
    form: FORM,
    prefix,
    createdAt: new Date().toISOString(),
    server: connection.nc.info?.version ?? 'unknown',
    streams,
  };
  await writeFile(join(folder, LIST_FILE), `${JSON.stringify(list, null, 2)}\n`, { flag: 'wx', mode: FILE_MODE, flush: true });
  return streams;
}

async function requireEmpty(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true, mode: FOLDER_MODE });
  if ((await readdir(folder)).length > 0) throw new LogMismatch(`${folder} is not empty: name a new folder for each backup`);
}

async function backUpStream(connection: Connection, name: string, folder: string): Promise<BackedUpStream> {
  await mkdir(folder, { recursive: true, mode: FOLDER_MODE });
  const file = await open(join(folder, DATA_FILE), 'wx', FILE_MODE);
  const parts = new Parts(connection);
  try {
    const stored = await connection.api<StoredStream>(`STREAM.SNAPSHOT.${name}`, {
      deliver_subject: parts.subject,
      // Readers create their consumers again. The consumers of the work queue count deliveries, which number the attempts.
      no_consumers: name !== connection.names.workStream,
      chunk_size: CHUNK_BYTES,
    });
    const hash = createHash('sha256');
    for await (const part of parts) {
      // Unlike `write`, `appendFile` writes the whole part or rejects.
      await file.appendFile(part);
      hash.update(part);
    }
    await file.sync();
    const { config, state } = stored;
    const text = `${JSON.stringify({ config, state }, null, 2)}\n`;
    await writeFile(join(folder, CONFIG_FILE), text, { flag: 'wx', mode: FILE_MODE, flush: true });
    const configSha256 = createHash('sha256').update(text).digest('hex');
    return { name, messages: state.messages, bytes: state.bytes, sha256: hash.digest('hex'), configSha256 };
  } finally {
    parts.close();
    await file.close();
  }
}

/** The parts of one snapshot. Each is acknowledged when the next one is requested, so that the disk sets the pace. */
class Parts implements AsyncIterable<Uint8Array> {
  readonly subject: string;
  readonly #subscription: Subscription;

  constructor(connection: Connection) {
    this.subject = connection.createInbox();
    this.#subscription = connection.nc.subscribe(this.subject);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    const received = this.#subscription[Symbol.asyncIterator]();
    for (;;) {
      const message = await withinTime(received.next());
      const { data } = message;
      const headers = headersOf(message);
      if (headers !== undefined && headers.code >= API_ERROR_MIN) {
        throw new LogUnavailable(`NATS ended the snapshot: ${headers.description}`);
      }
      if (data.length === 0) return;
      yield data;
      message.respond();
    }
  }

  close(): void {
    this.#subscription.unsubscribe();
  }
}

async function withinTime(next: Promise<IteratorResult<Msg>>): Promise<Msg> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () => reject(new LogUnavailable(`NATS sent no further part of the snapshot within ${PART_MS_MAX} ms`)),
      PART_MS_MAX,
    );
  });
  try {
    const { done, value } = await Promise.race([next, late]);
    if (done) throw new LogUnavailable('the connection to NATS ended during the snapshot');
    return value;
  } finally {
    clearTimeout(timer);
  }
}

/** The list of a complete backup. Rejects with LogMismatch for a folder without one. */
async function readList(folder: string): Promise<BackupList> {
  const path = join(folder, LIST_FILE);
  const text = await readFile(path, 'utf8').catch(cause => {
    throw new LogMismatch(`${path} cannot be read (${cause.code}): the folder does not contain a complete backup`, { cause });
  });
  const list = parseList(path, text);
  if (list.form !== FORM) throw new LogMismatch(`${path} has form ${list.form}; this version reads form ${FORM}`);
  return list;
}

/** Ignores a list that was cut off while it was written, for example on a full disk. */
function parseList(path: string, text: string): BackupList {
  try {
    return JSON.parse(text) as BackupList;
  } catch (cause) {
    throw new LogMismatch(`${path} is not JSON: the folder does not contain a complete backup`, { cause });
  }
}

/**
 * Restores a backup into a server that has none of its streams, with `replicas` for each. Rejects with LogMismatch before anything is changed; a
 * restore that fails later removes what it has restored.
 */
export async function restore(
  connection: Connection,
  { folder, replicas }: { folder: string; replicas: number },
  onStream: (stream: BackedUpStream) => void,
): Promise<BackedUpStream[]> {
  const list = await readList(folder);
  if (list.prefix !== connection.names.prefix) {
    throw new LogMismatch(`the backup has HOPLINE_PREFIX "${list.prefix}", the settings have "${connection.names.prefix}"`);
  }
  for (const stream of list.streams) await requireIntact(folder, stream);
  for (const { name } of list.streams) await requireAbsent(connection, name);
  const restored: string[] = [];
  try {
    // Inputs come first, so that a relay that starts in between finds no facts whose inputs are missing.
    for (const stream of list.streams.toReversed()) {
      const options = { folder: join(folder, stream.name), replicas, onStored: () => restored.push(stream.name) };
      const { consumer_count: consumers } = await restoreStream(connection, stream, options);
      // Runs before the other streams exist, because workers that start in the meantime wait for those.
      if (stream.name === connection.names.workStream) await countDeliveries(connection, consumers);
      onStream(stream);
    }
    await useStoredLayouts(connection);
    await leapOverLostTime(connection, restored);
  } catch (error) {
    for (const name of restored) await connection.jsm.streams.delete(name).catch(() => {});
    throw error;
  }
  return list.streams;
}

async function requireIntact(folder: string, { name, sha256, configSha256 }: BackedUpStream): Promise<void> {
  await requireHash(join(folder, name, DATA_FILE), sha256);
  if (configSha256 !== undefined) await requireHash(join(folder, name, CONFIG_FILE), configSha256);
}

async function requireHash(path: string, sha256: string): Promise<void> {
  const hash = createHash('sha256');
  try {
    for await (const part of createReadStream(path)) hash.update(part);
  } catch (cause) {
    throw new LogMismatch(`${path} cannot be read`, { cause });
  }
  if (hash.digest('hex') !== sha256) throw new LogMismatch(`${path} was changed or is incomplete: its SHA-256 differs`);
}

async function requireAbsent(connection: Connection, name: string): Promise<void> {
  const exists = await connection.jsm.streams.info(name).then(
    () => true,
    error => {
      if (isStreamNotFound(error)) return false;
      throw error;
    },
  );
  if (exists)
    throw new LogMismatch(`stream ${name} exists: a restore needs a NATS account without it; stop the relays and delete it`);
}

async function restoreStream(
  connection: Connection,
  { name }: BackedUpStream,
  { folder, replicas, onStored }: { folder: string; replicas: number; onStored: () => void },
): Promise<StreamState> {
  const { config, state } = JSON.parse(await readFile(join(folder, CONFIG_FILE), 'utf8')) as StoredStream;
  const { placement: _, ...kept } = config;
  const request = { config: { ...kept, num_replicas: replicas }, state };
  const call = `STREAM.RESTORE.${name}`;
  const { deliver_subject: subject } = await connection.api<{ deliver_subject: string }>(call, request, RESTORE_MS_MAX);
  for await (const part of createReadStream(join(folder, DATA_FILE), { highWaterMark: CHUNK_BYTES })) {
    requireTaken(name, await connection.nc.request(subject, part, { timeout: PART_MS_MAX }));
  }
  const end = await connection.nc.request(subject, '', { timeout: UNPACK_MS_MAX });
  requireTaken(name, end);
  // Not called earlier: until now the name may have belonged to a stream that another process created.
  onStored();
  const { state: found } = end.json<StreamInfo>();
  if (found.messages !== state.messages || found.last_seq !== state.last_seq) {
    throw new LogUnavailable(`stream ${name} was restored with ${found.messages} of ${state.messages} messages`);
  }
  return state;
}

/**
 * Clients may have cursors of events that were stored after the backup. A task that continued from its restored facts would reuse the
 * generations of those events for other ones, so every restored task leaps at its next event (ADR 267). The leadership of the facts stream
 * does not reveal a restore: on a server that did not restart it is unchanged, and a relay does not check it for a released lease.
 */
async function leapOverLostTime(connection: Connection, restored: readonly string[]): Promise<void> {
  const { jsm, names } = connection;
  const bucket = names.bucket(BUCKETS.leases);
  const lastInputs = new Map<string, number>();
  // A layout that was added during the backup has no streams in the backup, and no tasks.
  for (const stream of names.inputsStreams)
    if (restored.includes(stream))
      lastInputs.set(stream, (await retry(connection, stream, () => jsm.streams.info(stream))).state.last_seq);
  for (let shard = 0; shard < names.layouts.shards; shard += 1) {
    const leapTo = lastInputs.get(names.inputsStreamOf(shard));
    if (leapTo === undefined) continue;
    const subject = `$KV.${bucket}.shard.${shard}`;
    const stored = await retry(connection, subject, () => jsm.streams.getMessage(`KV_${bucket}`, { last_by_subj: subject }));
    const lease = stored === null ? undefined : decodeValue(stored.data);
    const value: LeaseValue = { owner: '', ...lease, leapTo };
    const expect = { lastSubjectSequence: stored?.seq ?? 0 };
    await jetstream(connection.nc)
      .publish(subject, JSON.stringify(value), { expect })
      .catch(cause => {
        throw new LogUnavailable(`the lease of shard ${shard} cannot be written; if relays run, stop them and restore again`, {
          cause,
        });
      });
  }
}

/**
 * A server stores deliveries of items with a delay, so a backup may lack the delivery of an attempt that has already written. If that
 * attempt number ran again, its inputs would be mistaken for those of the first run, and the turn would never end. Therefore items that
 * count as not delivered are delivered once here, and after the ack wait again as the next attempt.
 */
async function countDeliveries(connection: Connection, consumers: number): Promise<void> {
  const { workStream } = connection.names;
  for (const name of await restoredConsumers(connection, workStream, consumers)) {
    // Answered by the consumer's leader. A consumer that has just been restored with replicas delivers nothing until it has a leader, and
    // is missing from lists with details.
    const info = await retry(connection, `${workStream} ${name}`, () => connection.jsm.consumers.info(workStream, name));
    const { num_pending: pending } = info;
    if (pending === 0) continue;
    const js = jetstream(connection.nc);
    const consumer = await retry(connection, `${workStream} ${name}`, () => js.consumers.get(workStream, name));
    const items = await consumer.fetch({ max_messages: pending, expires: DELIVERY_MS_MAX });
    for await (const _ of items);
  }
}

/**
 * With replicas the server creates the consumers of a stream after it has answered that the stream is restored. `count`: number of
 * consumers at the time of the backup, which leaves out those in memory.
 */
async function restoredConsumers(connection: Connection, stream: string, count: number): Promise<string[]> {
  const deadline = performance.now() + CONSUMERS_MS_MAX;
  for (;;) {
    const names = await consumersOf(connection, stream);
    if (names.length >= count || performance.now() >= deadline) return names;
    await sleep(CONSUMERS_POLL_MS);
  }
}

async function consumersOf(connection: Connection, stream: string): Promise<string[]> {
  const names: string[] = [];
  for (;;) {
    const request = { offset: names.length };
    const call = () => connection.api<{ consumers: string[] | null; total: number }>(`CONSUMER.NAMES.${stream}`, request);
    const { consumers, total } = await retry(connection, stream, call);
    names.push(...(consumers ?? []));
    if (names.length >= total || !consumers?.length) return names;
  }
}

/** Rejects if the server did not accept a part: its answer to an accepted part is empty. */
function requireTaken(name: string, answer: Msg): void {
  if (answer.data.length === 0) return;
  const { error } = answer.json<{ error?: { description: string } }>();
  if (error !== undefined) throw new LogUnavailable(`NATS refused to restore stream ${name}: ${error.description}`);
}
