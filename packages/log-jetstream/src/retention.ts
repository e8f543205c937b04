import type { Layouts } from '@hopline/events';
import { type LogExtent, type StreamExtent, toLogExtent } from '@hopline/log';
import type { Connection } from './connection.ts';
import type { JetStreamLogOptions, LogEvent } from './options.ts';
import { checkPeriodically, reportFailedCheck } from './periodic-check.ts';
import { retry } from './retry.ts';

/** Time between two checks of the retention of the streams. */
const RETENTION_CHECK_MS = 60_000;
/** A stream is checked when it uses this share of its bytes or more. */
const NEARLY_FULL_SHARE = 0.9;
const NANOS_PER_MS = 1_000_000;

type StreamState = {
  config: { name: string; max_bytes: number; max_age: number; discard: string };
  state: { bytes: number; messages: number; first_ts: string };
};

/**
 * A condition that the operator must know about: either the stream's limit in bytes removes entries before they reach their age limit
 * (discard policy `old`), or the stream will soon refuse writes (`new`).
 */
export function shortageOf({ config, state }: StreamState, nowMs: number): LogEvent | undefined {
  const { name: stream, max_bytes, max_age, discard } = config;
  if (max_bytes <= 0 || state.messages === 0 || state.bytes < max_bytes * NEARLY_FULL_SHARE) return undefined;
  if (discard === 'new') return { type: 'nearly-full', stream };
  const keptMs = Math.max(0, nowMs - Date.parse(state.first_ts));
  const ageMs = max_age === 0 ? Number.POSITIVE_INFINITY : max_age / NANOS_PER_MS;
  return keptMs < ageMs * NEARLY_FULL_SHARE ? { type: 'removes-by-bytes', stream, keptMs } : undefined;
}

/** Reads the extent of the stream from its leader, because only the leader answers this request. */
export async function readExtent(connection: Connection, stream: string): Promise<StreamExtent> {
  const { config, state, cluster, created } = await retry(connection, stream, () => connection.streams.info(stream));
  const bytesMax = config.max_bytes > 0 ? config.max_bytes : undefined;
  const firstSeq = state.messages === 0 ? state.last_seq + 1 : state.first_seq;
  const fill = bytesMax === undefined ? 0 : state.bytes / bytesMax;
  const leadership = leadershipOf(cluster, connection.nc.info?.server_id);
  return {
    firstSeq,
    lastSeq: state.last_seq,
    fill,
    created: Date.parse(String(created)),
    ...(bytesMax !== undefined && { bytesMax }),
    ...(leadership !== undefined && { leadership }),
  };
}

type LeaderInfo = { name?: string; leader?: string; leader_since?: string };

/**
 * Identifies a period in which no acknowledged record is lost. With replicas that is the time in which one server leads; servers report its
 * beginning from 2.12 on. A server without a cluster loses none while it runs, and has a new id after each start. Undefined for one replica
 * in a cluster.
 */
export function leadershipOf(cluster: LeaderInfo | undefined, serverId: string | undefined): string | undefined {
  const { name = '', leader, leader_since: since } = cluster ?? {};
  if (since !== undefined) return `${leader} ${since}`;
  return name === '' ? serverId : undefined;
}

/** Reads the extents of the streams of all groups. */
export async function readExtents(connection: Connection, streams: readonly string[], layouts: Layouts): Promise<LogExtent> {
  return toLogExtent(await Promise.all(streams.map(stream => readExtent(connection, stream))), layouts);
}

/** Checks the streams until the log is closed. */
export function watchRetention(connection: Connection, onFirstEntry?: JetStreamLogOptions['onFirstEntry']): void {
  const check = async () => {
    for (const stream of connection.names.allStreams()) {
      const info = await connection.jsm.streams.info(stream).catch(error => reportFailedCheck(connection, stream, error));
      if (info && info.state.messages > 0) {
        const { max_age } = info.config;
        onFirstEntry?.(stream, Date.parse(info.state.first_ts), max_age > 0 ? max_age / NANOS_PER_MS : undefined);
      }
      const shortage = info && shortageOf(info, Date.now());
      if (shortage !== undefined && !connection.closed.aborted) connection.onEvent(shortage);
    }
  };
  checkPeriodically(connection, RETENTION_CHECK_MS, 'retention', check)();
}
