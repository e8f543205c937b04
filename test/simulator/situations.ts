import type { LogEvent } from '@hopline/log-jetstream';

/** Situations that the simulator exists for. `wire`: only log-jetstream over the double meets it. */
export const SITUATIONS = {
  'the shard of a dead relay is taken over while an agent writes': 'any',
  'an append of a former owner is refused': 'any',
  'a relay folds lost facts again': 'any',
  'another attempt begins after text of the first one': 'any',
  'a viewer gets a gap': 'any',
  'a stream fails and its client comes back': 'any',
  'a client resumes at another ingress process': 'any',
  'a list has several pages': 'wire',
  'a list shows two tasks of one context': 'wire',
  'an item is delivered again': 'wire',
  'an item is delivered again while its task is canceled': 'wire',
  'an attempt runs twice at once after its deliveries were forgotten': 'wire',
  'the items of a dead worker are queued again': 'wire',
  'a replica without the newest record answers': 'wire',
  'a deposed leader answers a read': 'wire',
  'a message is stored again after its id was forgotten': 'wire',
  'a slow consumer is cut': 'wire',
  'a publish is sent again': 'wire',
  'a follower reads after a gap': 'wire',
  'a follower reads after a quiet time': 'wire',
  'a follower reads after its buffer was full': 'wire',
  'a reader loses its consumer': 'wire',
  'a stream refuses a write': 'wire',
  'the stream of inputs is created again': 'wire',
  'a layout is added during a run': 'wire',
} as const satisfies Record<string, 'any' | 'wire'>;

export type Situation = keyof typeof SITUATIONS;

/** With fewer seeds, a situation may be missing by chance. */
const SEEDS_MIN = 1_000;

/** The situations that a run has met. */
export class Situations {
  readonly met = new Set<Situation>();
  /** Tasks whose clients have sent a cancel and wait for its answer. */
  readonly canceling = new Set<string>();

  add(situation: Situation): void {
    this.met.add(situation);
  }

  onDelivery(taskId: string, deliveries: number): void {
    if (deliveries < 2) return;
    this.add('an item is delivered again');
    if (this.canceling.has(taskId)) this.add('an item is delivered again while its task is canceled');
  }

  onLogEvent(event: LogEvent): void {
    if (event.type === 'reread') {
      const { why } = event;
      if (why === 'gap') this.add('a follower reads after a gap');
      else this.add(why === 'tail' ? 'a follower reads after a quiet time' : 'a follower reads after its buffer was full');
      return;
    }
    const situation = OF_EVENTS[event.type];
    if (situation !== undefined) this.add(situation);
  }
}

const OF_EVENTS: Partial<Record<LogEvent['type'], Situation>> = {
  republished: 'a publish is sent again',
  'reader-restarted': 'a reader loses its consumer',
  full: 'a stream refuses a write',
  'worker-dead': 'the items of a dead worker are queued again',
  'inputs-rebuilt': 'the stream of inputs is created again',
  'layout-added': 'a layout is added during a run',
};

/** How many seeds of a command have met each situation. */
export class SituationCounts {
  readonly #counts = new Map<Situation, number>();
  readonly #isWire: boolean;
  #seeds = 0;

  constructor(isWire: boolean) {
    this.#isWire = isWire;
  }

  add(met: ReadonlySet<Situation>): void {
    this.#seeds += 1;
    for (const situation of met) this.#counts.set(situation, (this.#counts.get(situation) ?? 0) + 1);
  }

  get #expected(): Situation[] {
    return (Object.keys(SITUATIONS) as Situation[]).filter(name => this.#isWire || SITUATIONS[name] === 'any');
  }

  /** Lines for the summary: the number of seeds that met each situation. */
  lines(): string[] {
    return this.#expected.map(name => `  ${String(this.#counts.get(name) ?? 0).padStart(6)}  ${name}`);
  }

  /** Situations that so many seeds should have met and never did; none after fewer than SEEDS_MIN seeds. */
  missing(): Situation[] {
    return this.#seeds < SEEDS_MIN ? [] : this.#expected.filter(name => !this.#counts.has(name));
  }
}
