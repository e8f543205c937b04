import { stateWord, TASK_STATES, type TaskState } from '@hopline/a2a';
import type { Fact, FactRecord } from '@hopline/events';
import { LogConflict, LogFull, RecordTooLarge } from '@hopline/log';
import type { LogEvent } from '@hopline/log-jetstream';
import { allows } from '@hopline/task';
import type { Met } from './situations.ts';

const PARTS = ['task', 'fold', 'lease', 'follower', 'writer', 'work'] as const;
type Part = (typeof PARTS)[number];

/** `isWire`: it occurs only in log-jetstream over the double. `unmet`: why no seed can meet it. */
type Expected = { isWire?: true; unmet?: string };

const NO_REJECTION = 'the scripted agents never reject';
const NO_STEPS = 'agents have steps only in the theme `stored steps`, which seeds do not choose';
const SHORT_FAULT = 'a stream is full for 10 s at most, and writes are repeated for 20 s';
const wire: Expected = { isWire: true };

/** With fewer seeds, a transition may be missing by chance. */
const SEEDS_MIN = 10_000;

/** The transitions that a run may meet, by part. Other transitions that a run met are also printed. */
const EXPECTED: Readonly<Record<Part, Readonly<Record<string, Expected>>>> = {
  task: Object.fromEntries(taskTransitions()),
  fold: {
    'a task begins': {},
    'a later message begins a turn': {},
    'a lane opens': {},
    'a lane opens again for a later attempt': {},
    'text is appended': {},
    'a lane closes': {},
    'a step is recorded': { unmet: 'the scripted agents record none' },
    'a step of an agent is reached': { unmet: NO_STEPS },
    'a step of an agent is stored': { unmet: NO_STEPS },
    'a step of an agent is reused': { unmet: NO_STEPS },
    'a failed step of an agent is open again': { unmet: NO_STEPS },
    'a remote run is recorded': { unmet: 'agents behind adapters are not simulated' },
    'a call starts': {},
    'a call ends as completed': {},
    'a call ends as failed': {},
    'a call ends as canceled': { unmet: 'the scripted agents never end so, and the end of a canceled task ends its calls' },
    'a call ends as rejected': { unmet: NO_REJECTION },
    'a call ends as input-required': {},
    'a call ends as auth-required': {},
    'a task is copied forward': {},
    'generations continue after a loss': {},
    'a task fails because inputs are lost': {},
  },
  lease: {
    'a shard without an owner is taken': {},
    'another process was faster to take a shard without an owner': {},
    'a released shard is taken': {},
    'a shard is taken from another process': {},
    'another process was faster to take a shard': {},
    'a lease is renewed': {},
    'a renewal is refused: another process has the lease': {},
    'a lease is released': {},
    'a release is refused': {},
    'a take has no answer': {},
    'a renewal has no answer': {},
    'a release has no answer': {},
    'a leaving process shows it': {},
  },
  follower: {
    'opened for a new task': {},
    'opened from the beginning': {},
    'opened after a sequence': {},
    'opened after the newest record': {},
    'opened after the newest record, without text': {},
    'could not open': {},
    'reads again after a gap': wire,
    'reads again after a quiet time': wire,
    'reads again after its buffer was full': wire,
    'closed by its reader': {},
    'reset: the log has lost records': {},
    'ended: the log is unavailable': {},
  },
  writer: {
    'facts stored': {},
    'facts refused: another writer was first': {},
    'facts refused: the stream is full': { unmet: SHORT_FAULT },
    'facts refused: the record is too large': { unmet: 'the decider bounds what a task may have' },
    'facts without an answer': {},
    'an input stored': {},
    'an input stored by an earlier try': {},
    'an input refused: the stream is full': { unmet: SHORT_FAULT },
    'an input refused: it is too large': { unmet: 'no scripted agent or client writes so much at once' },
    'an input without an answer': {},
    'a publish is sent again': wire,
  },
  work: {
    'an item is requested': {},
    'a request is refused: no room': { unmet: SHORT_FAULT },
    'a request has no answer': {},
    'delivered for the first time': {},
    'delivered again as another attempt': {},
    'delivered again after a requeue': {},
    'delivered after the last attempt': {},
    'acknowledged: done': {},
    'returned: the handler failed': {},
    'requeued: the worker stops': {},
    'left to a newer attempt': {},
    'items of a dead worker are queued again': wire,
    'a dead letter': { ...wire, unmet: 'an exhausted item would have to fail three times more' },
  },
};

function* taskTransitions(): Generator<[string, Expected]> {
  yield ['begins as submitted', {}];
  yield [pairOf('TASK_STATE_SUBMITTED', 'TASK_STATE_SUBMITTED'), {}];
  for (const from of TASK_STATES)
    for (const to of TASK_STATES) if (allows(from, to)) yield [pairOf(from, to), unmetPair(from, to)];
}

function unmetPair(from: TaskState, to: TaskState): Expected {
  return [from, to].includes('TASK_STATE_REJECTED') ? { unmet: NO_REJECTION } : {};
}

function pairOf(from: TaskState, to: TaskState): string {
  return `${stateWord(from)} → ${stateWord(to)}`;
}

/** How a request to the log failed. */
function failureOf(error: unknown): 'conflict' | 'full' | 'too large' | 'no answer' {
  if (error instanceof LogConflict) return 'conflict';
  if (error instanceof LogFull) return 'full';
  return error instanceof RecordTooLarge ? 'too large' : 'no answer';
}

/** The transitions that a run has met. It observes what the log stores and does, and changes nothing. */
export class Coverage {
  readonly met = new Set<string>();
  /** The owner of each shard's lease as it was stored last; empty: released. */
  readonly #owners = new Map<string, string>();

  add(part: Part, transition: string): void {
    this.met.add(`${part}: ${transition}`);
  }

  onLogEvent(event: LogEvent): void {
    if (event.type === 'reread') {
      const why = { gap: 'a gap', tail: 'a quiet time', overflow: 'its buffer was full' }[event.why];
      this.add('follower', `reads again after ${why}`);
    } else if (event.type === 'republished') this.add('writer', 'a publish is sent again');
    else if (event.type === 'worker-dead') this.add('work', 'items of a dead worker are queued again');
    else if (event.type === 'dead-letter') this.add('work', 'a dead letter');
  }

  /** The facts of a task, as the log has them at the end. */
  addTask(facts: readonly Fact[]): void {
    let state: TaskState | undefined;
    for (const fact of facts) {
      if ('lostAfter' in fact) this.add('fold', 'generations continue after a loss');
      const next = fact.kind === 'task.created' ? fact.event.task.status.state : stateAfter(fact);
      if (next === undefined) continue;
      if (state === undefined) this.add('task', `begins as ${stateWord(next)}`);
      else this.add('task', pairOf(state, next));
      state = next;
    }
  }

  onFactsStored({ facts, copied }: FactRecord): void {
    this.add('writer', 'facts stored');
    if (copied !== undefined) this.add('fold', 'a task is copied forward');
    for (const fact of facts) {
      const folded = foldOf(fact);
      if (folded !== undefined) this.add('fold', folded);
    }
  }

  onFactsFailed(error: unknown): void {
    const failure = failureOf(error);
    if (failure === 'conflict') this.add('writer', 'facts refused: another writer was first');
    else if (failure === 'full') this.add('writer', 'facts refused: the stream is full');
    else if (failure === 'too large') this.add('writer', 'facts refused: the record is too large');
    else this.add('writer', 'facts without an answer');
  }

  onInputFailed(error: unknown): void {
    const failure = failureOf(error);
    if (failure === 'full') this.add('writer', 'an input refused: the stream is full');
    else if (failure === 'too large') this.add('writer', 'an input refused: it is too large');
    else this.add('writer', 'an input without an answer');
  }

  /** A process has written the lease of a shard, or could not. `owner`: empty to release it. */
  onLease(shard: string, owner: string, isFirst: boolean, error?: unknown): void {
    const before = this.#owners.get(shard) ?? '';
    const what = owner === '' ? 'release' : before === owner ? 'renewal' : 'take';
    if (error === undefined) {
      this.#owners.set(shard, owner);
      if (what === 'release') this.add('lease', 'a lease is released');
      else if (what === 'renewal') this.add('lease', 'a lease is renewed');
      else if (isFirst) this.add('lease', 'a shard without an owner is taken');
      else this.add('lease', before === '' ? 'a released shard is taken' : 'a shard is taken from another process');
    } else if (failureOf(error) !== 'conflict') this.add('lease', `a ${what} has no answer`);
    else if (what === 'release') this.add('lease', 'a release is refused');
    else if (isFirst) this.add('lease', 'another process was faster to take a shard without an owner');
    else if (what === 'renewal') this.add('lease', 'a renewal is refused: another process has the lease');
    else this.add('lease', 'another process was faster to take a shard');
  }
}

function stateAfter(fact: Fact): TaskState | undefined {
  return fact.kind === 'status.changed' ? fact.event.statusUpdate.status.state : undefined;
}

function foldOf(fact: Fact): string | undefined {
  switch (fact.kind) {
    case 'task.created':
      return 'a task begins';
    case 'message.received':
      return 'a later message begins a turn';
    case 'lane.opened':
      return fact.attempt > 1 ? 'a lane opens again for a later attempt' : 'a lane opens';
    case 'artifact.updated':
      return fact.event.artifactUpdate.lastChunk === true ? 'a lane closes' : 'text is appended';
    case 'step.recorded':
      return 'a step is recorded';
    case 'remote-run.started':
      return 'a remote run is recorded';
    case 'agent-step.recorded':
      return `a step of an agent is ${fact.phase}`;
    case 'call.started':
      return 'a call starts';
    case 'call.ended':
      return `a call ends as ${stateWord(fact.state)}`;
    case 'status.changed': {
      const { status, metadata } = fact.event.statusUpdate;
      const isLost = status.state === 'TASK_STATE_FAILED' && /lost|missing|gap|removed/i.test(String(metadata?.reason ?? ''));
      return isLost ? 'a task fails because inputs are lost' : undefined;
    }
  }
}

function expectedTransitions(): Map<string, Expected> {
  return new Map(PARTS.flatMap(part => Object.entries(EXPECTED[part]).map(([name, one]) => [`${part}: ${name}`, one])));
}

/** Lines for the summary: the number of seeds that met each transition, and why none can have. */
export function transitionLines(met: Met, isWire: boolean): string[] {
  const expected = expectedTransitions();
  const names = [
    ...expected.keys(),
    ...Object.keys(met)
      .filter(name => !expected.has(name))
      .sort(),
  ];
  return names.map(name => {
    const count = met[name]?.seeds ?? 0;
    const { unmet, isWire: needsWire = false } = expected.get(name) ?? {};
    const why = count > 0 ? '' : needsWire && !isWire ? 'only over the wire' : (unmet ?? 'no seed met it');
    return `  ${String(count).padStart(6)}  ${name}${why && ` (${why})`}`;
  });
}

/**
 * Transitions that a run of this many seeds should have met and did not, and for which no reason is given; empty for fewer than SEEDS_MIN
 * seeds.
 */
export function missingTransitions(met: Met, seeds: number, isWire: boolean): string[] {
  if (seeds < SEEDS_MIN) return [];
  const missing = [...expectedTransitions()].filter(
    ([name, one]) => met[name] === undefined && one.unmet === undefined && (isWire || !one.isWire),
  );
  return missing.map(([name]) => name);
}
