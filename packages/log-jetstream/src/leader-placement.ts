import { hasPreferredLeaders } from './capabilities.ts';
import type { Connection } from './connection.ts';
import type { PlacementOptions } from './options.ts';
import { checkPeriodically } from './periodic-check.ts';

/**
 * Spreads the leaders of the streams over the nodes of NATS. The server elects a leader on any node, so after nodes have restarted one of
 * them may lead every stream, and every append then passes through it.
 */

/** Time between two checks, and so between two moves: a stream accepts nothing while its leader moves. */
const LEADERS_CHECK_MS = 10_000;
/** A user without the permission tries again after this time, because the permission may be granted in the meantime. */
const DENIED_MS = 10 * 60_000;

/** `followers`: the other nodes with a replica. `isWhole`: all replicas are connected and have everything. */
export type PlacedStream = { name: string; leader: string; followers: readonly string[]; isWhole: boolean };
type LeaderMove = { stream: string; from: string; to: string };

/** Checks the leaders until the log is closed. */
export function placeLeaders(connection: Connection, { isPlacer, checkMs = LEADERS_CHECK_MS }: PlacementOptions): void {
  if (!hasPreferredLeaders(connection.nc.info?.version ?? '')) return;
  let deniedUntil = 0;
  const check = async () => {
    if (!connection.connected || performance.now() < deniedUntil || !isPlacer()) return;
    // A failed check is repeated by the next one: a stream may have no leader.
    await moveOne(connection).catch(error => {
      if (connection.toDenied(error) !== undefined) deniedUntil = performance.now() + DENIED_MS;
      else throw error;
    });
  };
  checkPeriodically(connection, checkMs, 'leaders', check);
}

async function moveOne(connection: Connection): Promise<void> {
  const { names } = connection;
  const placed: PlacedStream[] = [];
  for (const name of names.allStreams()) {
    const { cluster } = await connection.jsm.streams.info(name);
    if (!cluster?.leader) return;
    const replicas = cluster.replicas ?? [];
    const isWhole = replicas.every(({ current, offline }) => current && offline !== true);
    placed.push({ name, leader: cluster.leader, followers: replicas.map(replica => replica.name), isWhole });
  }
  const records = new Set([...names.inputsStreams, ...names.factsStreams]);
  // The streams of records have nearly all the load, so they are spread first, without the others.
  const move = nextMove(placed.filter(({ name }) => records.has(name))) ?? nextMove(placed, ({ name }) => !records.has(name));
  if (move === undefined) return;
  await connection.api(`STREAM.LEADER.STEPDOWN.${move.stream}`, { placement: { preferred: move.to } });
  connection.onEvent({ type: 'leader-moved', ...move });
}

/**
 * The next move towards an even spread. Undefined unless a node leads at least two streams more than another node that could take one of
 * them. `mayMove`: the streams that may move; the others only count. If a stream can move only after another one has made room, the other
 * one moves first, so that no node ever leads more streams than before.
 */
export function nextMove(
  streams: readonly PlacedStream[],
  mayMove: (stream: PlacedStream) => boolean = () => true,
): LeaderMove | undefined {
  const counts = new Map<string, number>();
  for (const { leader, followers } of streams) {
    for (const node of followers) counts.set(node, counts.get(node) ?? 0);
    counts.set(leader, (counts.get(leader) ?? 0) + 1);
  }
  const movable = streams.filter(stream => stream.isWhole && mayMove(stream));
  for (const [start, most] of [...counts].sort(([a, one], [b, other]) => other - one || (a < b ? -1 : 1))) {
    // Breadth first along the moves, so that the shortest way is found.
    const waysTo = new Map<string, LeaderMove | undefined>([[start, undefined]]);
    for (const [node] of waysTo)
      for (const { name, leader, followers } of movable)
        for (const to of leader === node ? followers : []) {
          if (waysTo.has(to)) continue;
          const move = { stream: name, from: node, to };
          if (counts.get(to)! <= most - 2) return move;
          waysTo.set(to, move);
        }
  }
  return undefined;
}
