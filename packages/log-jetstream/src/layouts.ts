import { type Layout, Layouts, LOG_PREFIX, logShardFilter, RAW_PREFIX, rawShardFilter } from '@hopline/events';
import { LogMismatch, LogUnavailable } from '@hopline/log';
import { JetStreamApiError, type StreamConfig } from '@nats-io/jetstream';
import type { Connection } from './connection.ts';
import { isStreamNotFound, STREAM_MISSING } from './missing-stream.ts';
import type { LogNames } from './names.ts';
import { GROUP_BYTES_MIN, type LayoutSize, type LayoutTimes } from './options.ts';
import { checkPeriodically } from './periodic-check.ts';
import { retry } from './retry.ts';

/**
 * The layouts of a log are stored in the description of its first stream of inputs, which every service may read. Processes read them at
 * start, after each reconnect and every LAYOUT_POLL_MS, and a layout begins LAYOUT_AHEAD_MS after it was stored. So each process either
 * knows a layout long before a task can be in it, or accepts no new tasks because it cannot read the layouts. PROTOCOL.md section 2.5.
 */

/** Version of subjects and payloads. Different versions are incompatible. The charts have it as an annotation. */
export const FORMAT = 1;

const LAYOUT_POLL_MS = 30_000;
export const LAYOUT_AHEAD_MS = 10 * 60_000;
/**
 * Share of LAYOUT_AHEAD_MS during which a process relies on the layouts that it read. The rest (2 minutes) allows for clocks that differ
 * and for the time to store a layout.
 */
const KNOWN_SHARE = 0.8;

export const LAYOUT_TIMES: LayoutTimes = { pollMs: LAYOUT_POLL_MS, aheadMs: LAYOUT_AHEAD_MS };

const DESCRIPTION = /^hopline format=\d+ shards=(\d+)(?: groups=(\d+))?(?: layouts=([\d/@,]+))?$/;

/**
 * An earlier version expects exactly this description of a log with one group. It refuses a log with several groups or layouts, of which it
 * would read only the first. `layouts=` has the later layouts: `<shards>/<groups>@<begins>`, separated by commas.
 */
export function descriptionOf({ list: [first, ...later] }: Layouts): string {
  const { shards, groups } = first!;
  const added = later.map(layout => `${layout.shards}/${layout.groups}@${layout.begins}`).join();
  return `hopline format=${FORMAT} shards=${shards}${groups === 1 ? '' : ` groups=${groups}`}${added === '' ? '' : ` layouts=${added}`}`;
}

/**
 * The description without the layouts after the first one. This part never changes. It is also the description of the other streams and
 * buckets.
 */
export function firstLayoutIn(description: string): string {
  return description.replace(/ layouts=\S*$/, '');
}

/** Undefined for a stream that is not Hopline's. */
export function parseDescription(description: string): Layouts | undefined {
  const found = DESCRIPTION.exec(description);
  if (found === null) return undefined;
  const later = found[3]?.split(',').map(layout => layout.split(/[/@]/).map(Number)) ?? [];
  try {
    const first = { begins: 0, shards: Number(found[1]), groups: Number(found[2] ?? 1) };
    return new Layouts([first, ...later.map(([shards = 0, groups = 0, begins = 0]) => ({ begins, shards, groups }))]);
  } catch {
    return undefined;
  }
}

/** The subjects of a group's stream of inputs. The streams of a log with one group bind all shards by one subject, as they always did. */
export function inputsSubjects(names: LogNames, layouts: Layouts, group: number): string[] {
  const subjects = layouts.groups === 1 ? [`${RAW_PREFIX}.>`] : layouts.shardsOf(group).map(rawShardFilter);
  return subjects.map(subject => names.subject(subject));
}

export function factsSubjects(names: LogNames, layouts: Layouts, group: number): string[] {
  const subjects = layouts.groups === 1 ? [`${LOG_PREFIX}.>`] : layouts.shardsOf(group).map(logShardFilter);
  return subjects.map(subject => names.subject(subject));
}

/** Epoch milliseconds until which a new task can only be in a layout that was read at `readAtMs`. */
export function knownUntil(readAtMs: number, { aheadMs }: LayoutTimes): number {
  return readAtMs + aheadMs * KNOWN_SHARE;
}

type WatchLayoutsOptions = {
  times: LayoutTimes;
  onAdded: (layouts: Layouts) => void;
  /** The layouts after the first one that the log should have, and whether this process adds the missing ones. */
  wanted?: readonly LayoutSize[];
  isAdder?: () => boolean;
};

/** Picks up layouts that are added while the process runs, and adds those that HOPLINE_LAYOUTS asks for, until the log is closed. */
export function watchLayouts(connection: Connection, { times, onAdded, wanted = [], isAdder }: WatchLayoutsOptions): void {
  const take = async () => {
    const readAtMs = Date.now();
    const stored = await readLayouts(connection);
    // If another layout has begun, this is a different log: new tasks are refused until the process is restarted.
    const { layouts } = connection;
    const isSame = ({ begins, shards, groups }: Layout, at: number) => {
      const other = stored.list[at];
      return begins > readAtMs || (other?.begins === begins && other.shards === shards && other.groups === groups);
    };
    if (!layouts.list.every(isSame)) return;
    const isChanged = descriptionOf(stored) !== descriptionOf(layouts);
    connection.useLayouts(isChanged ? stored : layouts, knownUntil(readAtMs, times));
    if (isChanged) {
      onAdded(stored);
      connection.onEvent({ type: 'layout-added', ...stored.newest });
    }
    const next = wanted[stored.list.length - 1];
    if (next === undefined || stored.newest.begins > Date.now() || !isAdder?.()) return;
    await addLayout(connection, next, times.aheadMs).catch(error => {
      connection.onEvent({ type: 'layout-refused', message: error instanceof Error ? error.message : String(error) });
    });
  };
  const check = checkPeriodically(connection, times.pollMs, 'layouts', take);
  const unlisten = connection.onReconnect(check);
  connection.onUnknownLayout(check);
  connection.closed.addEventListener('abort', unlisten, { once: true });
}

/**
 * The layouts of the log. Rejects with LogMismatch if the stream is not Hopline's, and at once with LogUnavailable if there is no stream.
 */
export async function readLayouts(connection: Connection): Promise<Layouts> {
  const name = connection.names.inputsStreams[0]!;
  const info = () =>
    connection.streams.info(name).catch(error => {
      throw isStreamNotFound(error)
        ? new LogUnavailable(`${name}: ${STREAM_MISSING}: a relay creates it when it starts, or within 15 s if it runs`)
        : error;
    });
  const { config } = await retry(connection, name, info);
  const layouts = parseDescription(config.description ?? '');
  if (layouts === undefined) throw new LogMismatch(`stream ${name} was not created by this version of Hopline`);
  return layouts;
}

/** HOPLINE_LAYOUTS: layouts as `<shards>/<groups>`, separated by commas. */
export const LAYOUTS_FORM = /^\d{1,3}\/\d{1,2}(,\d{1,3}\/\d{1,2})*$/;

export function layoutSizesOf(setting: string): LayoutSize[] {
  const layouts = setting === '' ? [] : setting.split(',');
  return layouts.map(layout => {
    const [shards = 0, groups = 0] = layout.split('/').map(Number);
    return { shards, groups };
  });
}

/** Throws LogMismatch if the log's layouts after the first one contradict the wanted ones. It may have fewer or more. */
export function requireWanted({ list }: Layouts, wanted: readonly LayoutSize[]): void {
  const sizeOf = ({ shards, groups }: LayoutSize) => `${shards}/${groups}`;
  const stored = list.slice(1).map(sizeOf);
  const isOther = wanted.map(sizeOf).some((size, at) => stored[at] !== undefined && stored[at] !== size);
  if (isOther)
    throw new LogMismatch(
      `HOPLINE_LAYOUTS is ${wanted.map(sizeOf).join()}, and the log has ${stored.join()}: layouts are never changed, so add new ones at the end`,
    );
}

/**
 * Adds a layout, which begins after `aheadMs`: makes its streams like those of the first layout, and then stores it. A call that fails
 * halfway can be repeated. Resolves with all layouts. Rejects with LogMismatch if the layout is impossible, or if the newest one has not
 * begun.
 */
export async function addLayout(connection: Connection, size: LayoutSize, aheadMs: number = LAYOUT_AHEAD_MS): Promise<Layouts> {
  const stored = await readLayouts(connection);
  const { newest } = stored;
  if (newest.begins > Date.now())
    throw new LogMismatch(`the newest layout begins at ${new Date(newest.begins).toISOString()}: add another one after that`);
  const layouts = withNext(stored, size, aheadMs);
  const names = connection.names.with(layouts);
  // So far the streams of a log with one group bind the subjects of all shards, and the subjects of two streams must not overlap.
  if (stored.groups === 1) {
    const [inputs, facts] = [names.inputsStreams[0]!, names.factsStreams[0]!];
    await update(connection, inputs, { subjects: inputsSubjects(names, layouts, 0) });
    await update(connection, facts, { subjects: factsSubjects(names, layouts, 0) });
  }
  for (let group = stored.groups; group < layouts.groups; group += 1) {
    const bytesOf = (bytes: number) => shareOf(bytes * layouts.list[0]!.groups, size.groups);
    const inputs = { name: names.inputsStreams[group]!, subjects: inputsSubjects(names, layouts, group) };
    const facts = { name: names.factsStreams[group]!, subjects: factsSubjects(names, layouts, group) };
    await createLike(connection, names.inputsStreams[0]!, inputs, bytesOf);
    await createLike(connection, names.factsStreams[0]!, facts, bytesOf);
  }
  // Read again, because another process may have stored the same layout in the meantime.
  const before = await readLayouts(connection);
  if (before.list.length > stored.list.length) return before;
  const added = withNext(before, size, aheadMs);
  for (const name of [names.inputsStreams[0]!, names.factsStreams[0]!, names.workStream])
    await update(connection, name, { description: descriptionOf(added) });
  return added;
}

function withNext({ list }: Layouts, { shards, groups }: LayoutSize, aheadMs: number): Layouts {
  try {
    return new Layouts([...list, { begins: Date.now() + aheadMs, shards, groups }]);
  } catch (error) {
    throw new LogMismatch((error as Error).message, { cause: error });
  }
}

/** The bytes of each stream if `groups` groups have `bytes` together. */
export function shareOf(bytes: number, groups: number): number {
  return groups === 1 || bytes <= 0 ? bytes : Math.max(Math.min(bytes, GROUP_BYTES_MIN), Math.floor(bytes / groups));
}

async function update(connection: Connection, name: string, changes: Partial<StreamConfig>): Promise<void> {
  await retry(connection, name, () => connection.jsm.streams.update(name, changes));
}

const STREAM_NAME_IN_USE = 10058;

async function createLike(
  connection: Connection,
  model: string,
  { name, subjects }: { name: string; subjects: string[] },
  bytesOf: (bytes: number) => number,
): Promise<void> {
  const { streams } = connection.jsm;
  const { config } = await retry(connection, model, () => streams.info(model));
  const description = firstLayoutIn(config.description ?? '');
  const { placement: _, first_seq: __, ...same } = config;
  const spec = { ...same, name, subjects, description, max_bytes: bytesOf(config.max_bytes) };
  try {
    await retry(connection, name, () => streams.add({ ...spec }));
  } catch (error) {
    // An earlier call created the stream, and the limits of the first stream have changed since then.
    if (!(error instanceof JetStreamApiError) || error.code !== STREAM_NAME_IN_USE) throw error;
    const found = await retry(connection, name, () => streams.info(name));
    if (found.state.messages > 0 || `${found.config.subjects}` !== `${subjects}`)
      throw new LogMismatch(`stream ${name} exists with other subjects or with messages: remove it, or use another prefix`);
  }
}
