import { isTerminal } from '@hopline/a2a';
import type { Fact, FactRecord } from '@hopline/events';
import type { Job } from '@hopline/log';
import type { LogEvent } from '@hopline/log-jetstream';
import { AUTH_TIMEOUT } from '@hopline/task';

/**
 * Situations that the simulator exists for. `wire`: it occurs only in log-jetstream over the double. `clients`: it occurs only with seeds
 * that draw dialects, callers, forks and bursts (`CLIENTS_SEED_MIN`).
 */
export const SITUATIONS = {
  'the shard of a dead relay is taken over while an agent writes': 'any',
  'an append of a former owner is refused': 'any',
  'a relay folds lost facts again': 'any',
  'another attempt begins after text of the first one': 'any',
  'a viewer gets a gap': 'any',
  'a stream fails and its client comes back': 'any',
  'a client resumes at another ingress process': 'any',
  'an agent continues because its credentials have arrived': 'any',
  'a client answers a request for credentials': 'any',
  'a client answers a request for credentials too late': 'any',
  'a request for credentials times out': 'any',
  'a task is canceled while an agent waits for credentials': 'any',
  'an agent writes while another one waits for credentials': 'any',
  'two agents wait for credentials at once': 'any',
  'an agent dies while it waits for credentials': 'any',
  'a supervisor dies while an agent waits for credentials': 'any',
  'another supervisor takes a turn over whose agent waits for credentials': 'any',
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
  'a bucket loses its newest entries': 'wire',
  'the work queue loses its newest items': 'wire',
  'a task begins and ends while a process outside of it is parted': 'wire',
  'a publish is sent again': 'wire',
  'a follower reads after a gap': 'wire',
  'a follower reads after a quiet time': 'wire',
  'a follower reads after its buffer was full': 'wire',
  'a reader loses its consumer': 'wire',
  'a stream refuses a write': 'wire',
  'the stream of inputs is created again': 'wire',
  'a layout is added during a run': 'wire',
  'a client of A2A 0.3 resumes': 'clients',
  'a client of April 2025 resumes': 'clients',
  'a request without a version gets the dialect of its task': 'clients',
  'the quota of open tasks refuses a message': 'clients',
  'the quota of streams refuses a request': 'clients',
  'the quota of messages refuses one': 'clients',
  'the budget of sent bytes refuses a request': 'clients',
  'a request about the task of another caller is refused': 'clients',
  'a task is forked': 'clients',
  'a task is forked before its end': 'clients',
  'the agents of a fork get text of its origin': 'clients',
  'an exported task is imported': 'clients',
  'an agent writes 300 tokens at once': 'clients',
  'an agent writes nothing for 15 s in the middle of its text': 'clients',
} as const satisfies Record<string, 'any' | 'wire' | 'clients'>;

export type Situation = keyof typeof SITUATIONS;

/** With fewer seeds, a situation may be missing by chance. */
const SEEDS_MIN = 1_000;

/** The situations that a run has met. */
export class Situations {
  readonly met = new Set<Situation>();
  /** Tasks whose clients have sent a cancel and wait for its answer. */
  readonly canceling = new Set<string>();

  /** Tasks whose newest stored state is auth-required. */
  readonly #authorizing = new Set<string>();
  /** Tasks that the supervisors of each process work on. */
  readonly #supervised = new Map<string, Set<string>>();

  add(situation: Situation): void {
    this.met.add(situation);
  }

  onFactsStored({ aggregate: { taskId, state } }: FactRecord): void {
    if (state === 'TASK_STATE_AUTH_REQUIRED') this.#authorizing.add(taskId);
    else this.#authorizing.delete(taskId);
  }

  /** A supervisor begins a turn. `handled`: settled when the process is done with it. */
  onSupervised(process: string, { work: { taskId }, attempt }: Job, handled: Promise<void>): void {
    if (attempt > 1 && this.#authorizing.has(taskId))
      this.add('another supervisor takes a turn over whose agent waits for credentials');
    const supervised = this.#supervised.get(process) ?? new Set();
    this.#supervised.set(process, supervised.add(taskId));
    const done = () => void supervised.delete(taskId);
    handled.then(done, done);
  }

  killed(process: string): void {
    for (const taskId of this.#supervised.get(process) ?? [])
      if (this.#authorizing.has(taskId)) this.add('a supervisor dies while an agent waits for credentials');
    this.#supervised.delete(process);
  }

  /** The facts of a task, as the log has them at the end. */
  addTask(facts: readonly Fact[]): void {
    /** Calls that wait for credentials; empty if an agent was addressed directly. */
    const waiting = new Set<string>();
    for (const fact of facts) {
      if (fact.kind === 'message.received') {
        if (waiting.size > 0) this.add('a client answers a request for credentials');
        waiting.clear();
      } else if (fact.kind === 'artifact.updated') {
        const isOther = fact.producer.startsWith('call-') && !waiting.has(fact.producer);
        if (waiting.size > 0 && isOther) this.add('an agent writes while another one waits for credentials');
      } else if (fact.kind === 'status.changed') this.#addStatus(fact, waiting);
    }
  }

  #addStatus({ event, call = '' }: Extract<Fact, { kind: 'status.changed' }>, waiting: Set<string>): void {
    const { status, metadata } = event.statusUpdate;
    if (status.state === 'TASK_STATE_AUTH_REQUIRED') waiting.add(call);
    if (waiting.size > 1) this.add('two agents wait for credentials at once');
    if (status.state === 'TASK_STATE_WORKING' && waiting.delete(call))
      this.add('an agent continues because its credentials have arrived');
    if (!isTerminal(status.state)) return;
    if (metadata?.reason === AUTH_TIMEOUT) this.add('a request for credentials times out');
    if (status.state === 'TASK_STATE_CANCELED' && waiting.size > 0)
      this.add('a task is canceled while an agent waits for credentials');
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

/** How many seeds met something, by its name, and the first of them. */
export type Met = Record<string, { seeds: number; first: number }>;

/** How many seeds can meet a situation of each kind. */
export type SeedCounts = Record<(typeof SITUATIONS)[Situation], number>;

function expectedSituations(counts: SeedCounts, seedsMin: number): Situation[] {
  return (Object.keys(SITUATIONS) as Situation[]).filter(name => counts[SITUATIONS[name]] >= seedsMin);
}

/** Lines for the summary: the number of seeds that met each situation. */
export function situationLines(met: Met, counts: SeedCounts): string[] {
  return expectedSituations(counts, 1).map(name => `  ${String(met[name]?.seeds ?? 0).padStart(6)}  ${name}`);
}

/** Situations that this many seeds should have met and never did; empty below SEEDS_MIN seeds. */
export function missingSituations(met: Met, counts: SeedCounts): Situation[] {
  return expectedSituations(counts, SEEDS_MIN).filter(name => met[name] === undefined);
}
