import { fnv1a32, GROUPS_MAX, SHARDS_MAX } from './subjects.ts';

/** Maximum number of layouts of a log. The shards and streams of earlier layouts stay, so this also bounds the number of idle ones. */
export const LAYOUTS_MAX = 8;
/** Stream groups of all layouts together. */
export const GROUPS_TOTAL_MAX = 64;
/** Maximum number of shards of all layouts together. Shards from 256 on have three digits in subjects. */
export const SHARDS_TOTAL_MAX = 1_024;

/** `begins`: epoch milliseconds; 0 for the first layout. */
export type Layout = { begins: number; shards: number; groups: number };

type PlacedLayout = Layout & { firstShard: number; firstGroup: number };

/** Hex digits and hyphens of a UUID before its version. */
const VERSION_AT = 14;
const UUID_V7 = /^([0-9a-f]{8})-([0-9a-f]{4})-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** Epoch milliseconds at which a server made the id of a task (UUID version 7). Undefined for an id without a time. */
export function timeOfTaskId(taskId: string): number | undefined {
  if (taskId[VERSION_AT] !== '7') return undefined;
  const found = UUID_V7.exec(taskId);
  return found === null ? undefined : Number.parseInt(`${found[1]}${found[2]}`, 16);
}

/**
 * The numbers of shards and stream groups of a log over time. A task stays in the layout that was valid at the time in its id or, if its id
 * has no time, in the first one. The shards and groups of a layout have numbers above those of earlier layouts. PROTOCOL.md section 2.5.
 */
export class Layouts {
  /** In the order in which they begin. */
  readonly list: readonly Layout[];
  /** The shards and groups of all layouts together. */
  readonly shards: number;
  readonly groups: number;
  readonly #placed: readonly PlacedLayout[];
  readonly #first: PlacedLayout;

  /** Throws RangeError for impossible layouts. */
  constructor(list: readonly Layout[]) {
    let [shards, groups] = [0, 0];
    const placed = list.map(layout => {
      const at = { ...layout, firstShard: shards, firstGroup: groups };
      shards += layout.shards;
      groups += layout.groups;
      return at;
    });
    const fault = faultOf(list);
    if (fault !== undefined) throw new RangeError(fault);
    this.list = list;
    this.#placed = placed;
    this.#first = placed[0]!;
    this.shards = shards;
    this.groups = groups;
  }

  static one(shards: number, groups = 1): Layouts {
    return new Layouts([{ begins: 0, shards, groups }]);
  }

  get newest(): Layout {
    return this.list.at(-1)!;
  }

  shardOf(taskId: string): number {
    const { firstShard, shards } = this.#layoutOf(taskId);
    return firstShard + (fnv1a32(taskId) % shards);
  }

  /** The stream group of a shard. */
  groupOf(shard: number): number {
    const { firstShard, firstGroup, groups } = this.#placed.findLast(layout => layout.firstShard <= shard) ?? this.#first;
    return firstGroup + ((shard - firstShard) % groups);
  }

  layoutOfGroup(group: number): PlacedLayout {
    return this.#placed.findLast(layout => layout.firstGroup <= group)!;
  }

  /** The shards of a stream group, in order. */
  shardsOf(group: number): number[] {
    const { firstShard, shards } = this.layoutOfGroup(group);
    return Array.from({ length: shards }, (_, n) => firstShard + n).filter(shard => this.groupOf(shard) === group);
  }

  /** Whether a log with these layouts had `shards` shards at some time. */
  hadShards(shards: number): boolean {
    return this.#placed.some(layout => layout.firstShard + layout.shards === shards);
  }

  #layoutOf(taskId: string): PlacedLayout {
    if (this.#placed.length === 1) return this.#first;
    const time = timeOfTaskId(taskId);
    return (time === undefined ? undefined : this.#placed.findLast(({ begins }) => begins <= time)) ?? this.#first;
  }
}

function faultOf(list: readonly Layout[]): string | undefined {
  const isWithin = (value: number, max: number) => Number.isInteger(value) && value >= 1 && value <= max;
  const sum = (member: 'shards' | 'groups') => list.reduce((total, layout) => total + layout[member], 0);
  if (list.length < 1 || list.length > LAYOUTS_MAX) return `a log has 1 to ${LAYOUTS_MAX} layouts, not ${list.length}`;
  for (const [at, { begins, shards, groups }] of list.entries()) {
    if (!isWithin(shards, SHARDS_MAX)) return `shards must be a whole number from 1 to ${SHARDS_MAX}`;
    if (!isWithin(groups, GROUPS_MAX)) return `stream groups must be a whole number from 1 to ${GROUPS_MAX}`;
    if (groups > shards) return `${groups} stream groups need at least as many shards, and the layout has ${shards}`;
    const before = list[at - 1]?.begins;
    if (before === undefined ? begins !== 0 : !(begins > before)) return 'each layout must begin after the one before it';
  }
  if (sum('shards') > SHARDS_TOTAL_MAX) return `all layouts together may have ${SHARDS_TOTAL_MAX} shards, not ${sum('shards')}`;
  if (sum('groups') > GROUPS_TOTAL_MAX) return `all layouts together may have ${GROUPS_TOTAL_MAX} groups, not ${sum('groups')}`;
  return undefined;
}
