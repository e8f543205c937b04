import { isInProgress, isInterrupted } from '@hopline/a2a';
import type { Fact, MessageReceived, TaskCreated } from '@hopline/events';
import type { StoredFacts, StoredInput } from '@hopline/log';
import { ROOT_AGENT, SUPERVISOR } from '@hopline/task';
import { inputsOf } from './event-inputs.ts';
import type { ProducerActivity } from './producers.ts';
import type { TurnHop } from './turn-hops.ts';

/** The hops of docs/reference/hops.md that can delay a turn's end. `client`: the task waited for its client, which is not a cost. */
export type PathHop =
  | TurnHop['hop']
  | 'talk'
  | 'finish'
  | 'compose'
  | 'publish'
  | 'hold'
  | 'wait_for_append'
  | 'append'
  | 'redelivery'
  | 'takeover'
  | 'silence'
  | 'client';

/**
 * A part of the critical path: in this time nothing else delayed the event to which the path leads. Milliseconds after the task's first
 * input.
 */
export type PathPart = { hop: PathHop; fromMs: number; toMs: number; agent?: string; name?: string };

/** `isStored`: the supervisor has stored its decision, and the relay still has to queue the work. */
type WalkedPart = PathPart & { isStored?: boolean };

/** A fact in the order of the log. `index` is its place in that order. */
type PlacedFact = {
  fact: Fact;
  index: number;
  turn: number;
  atMs: number;
  storedMs: number;
  input: () => StoredInput | undefined;
  /** Represents the present in a turn that is still running. `fact` is then the newest one. */
  isNow?: boolean;
};

type Interval = { fromMs: number; toMs: number };

/**
 * A relay took over at `takenMs`: its predecessor's last record was stored at `fromMs`, and its own first record was made at `toMs`.
 */
type TakenOver = Interval & { takenMs: number };

type PathRecords = {
  facts: readonly StoredFacts[];
  inputs: readonly StoredInput[];
  producers: readonly ProducerActivity[];
  startMs: number;
  /**
   * When the records of a task in progress were read, in milliseconds after its first input. The path of its running turn ends at that
   * time.
   */
  nowMs?: number | undefined;
};

/** The path of one turn. */
export type TurnPath = { turn: number; fromMs: number; toMs: number; path: readonly PathPart[] };

/** Time of one hop, of one agent, on the critical paths of all turns. `share`: its share of the turns' time, not counting the client's. */
export type HopCost = { hop: Exclude<PathHop, 'client'>; agent?: string; ms: number; share: number };

/** The hops of some paths, the most costly first. */
export function costsOf(turns: readonly TurnPath[]): HopCost[] {
  const costs = new Map<string, Omit<HopCost, 'share'>>();
  let waitedMs = 0;
  for (const { hop, agent, fromMs, toMs } of turns.flatMap(({ path }) => path)) {
    if (hop === 'client') {
      waitedMs += toMs - fromMs;
      continue;
    }
    const key = JSON.stringify([hop, agent]);
    const { ms } = costs.get(key) ?? { ms: 0 };
    costs.set(key, { hop, ...(agent !== undefined && { agent }), ms: ms + toMs - fromMs });
  }
  const totalMs = turns.reduce((sum, { fromMs, toMs }) => sum + toMs - fromMs, -waitedMs);
  return [...costs.values()].toSorted((a, b) => b.ms - a.ms).map(cost => ({ ...cost, share: cost.ms / totalMs }));
}

/**
 * Follows a turn from one of its events back to the question. The next part waited for each part. The order of the log determines which
 * event waited for which, so the clocks of the processes need not agree. Parts never overlap, and each ends where the next one begins.
 */
export class CriticalPaths {
  readonly #records: PathRecords;
  readonly #facts: PlacedFact[];
  readonly #turns: ReadonlyMap<number, PlacedFact[]>;
  readonly #takeovers: readonly TakenOver[];

  constructor(records: PathRecords) {
    this.#records = records;
    this.#facts = placedFacts(records);
    this.#turns = Map.groupBy(this.#facts, ({ turn }) => turn);
    this.#takeovers = takeoversOf(records);
  }

  /** The path to the end of each turn or, if a turn is still running, to its newest fact. */
  turns(): TurnPath[] {
    return [...this.#turns].map(([turn, turnFacts]) => {
      const last = turnFacts.findLast(({ fact }) => isEnd(fact));
      const isRunning = last === undefined && turnFacts.at(-1)!.index === this.#facts.length - 1;
      if (isRunning && this.#records.nowMs !== undefined) return this.#openTurn(turn, turnFacts, this.#records.nowMs);
      // The next message ends a turn that still runs.
      const end = last ?? this.#facts[turnFacts.at(-1)!.index + 1] ?? turnFacts.at(-1)!;
      const fromMs = this.#beginMs(turnFacts);
      return { turn, fromMs, toMs: Math.max(fromMs, end.storedMs), path: this.#pathTo(end, turn) };
    });
  }

  /** The path to one event, from the question of its turn. */
  pathTo(generation: number): readonly PathPart[] {
    const placed = this.#facts.find(({ fact }) => 'event' in fact && fact.generation === generation);
    return placed === undefined ? [] : this.#pathTo(placed, placed.turn);
  }

  #openTurn(turn: number, turnFacts: readonly PlacedFact[], nowMs: number): TurnPath {
    const newest = turnFacts.at(-1)!;
    const fromMs = this.#beginMs(turnFacts);
    const toMs = Math.max(fromMs, newest.storedMs, nowMs);
    const now = { ...newest, index: newest.index + 1, atMs: toMs, storedMs: toMs, isNow: true };
    return { turn, fromMs, toMs, path: this.#pathTo(now, turn) };
  }

  #pathTo(end: PlacedFact, turn: number): readonly PathPart[] {
    const { producers, startMs } = this.#records;
    const all = this.#turns.get(turn)!;
    const facts = all.filter(({ index }) => index <= end.index);
    const runs = producers.filter(run => run.turn === turn);
    const parts = new Walk({ facts, runs, beginMs: this.#beginMs(all), startMs }, end).parts();
    const withTakeovers = replaced(parts, this.#takeovers, { hop: 'takeover' }, waitedForRelay);
    return merged(replaced(withTakeovers, waitsForClient(facts), { hop: 'client' }));
  }

  /** When the client sent the message of a turn; if retention has removed the message, when its fact was made. */
  #beginMs([first]: readonly PlacedFact[]): number {
    const sent = isMessage(first!.fact) ? first!.input() : undefined;
    return sent === undefined ? first!.atMs : sent.record.at - this.#records.startMs;
  }
}

/** Hops that a relay ends, so that they last as long as there is no relay. A relay also ends the second part of `plan`. */
const ENDED_BY_RELAY: ReadonlySet<PathHop> = new Set(['accept', 'publish', 'hold', 'wait_for_append', 'append']);

/** A part waited for a takeover if it began before the takeover and ended after it. The relay's first record may belong to a later part. */
const waitedForRelay = ({ hop, fromMs, toMs, isStored = false }: WalkedPart, { takenMs }: TakenOver) =>
  (ENDED_BY_RELAY.has(hop) || isStored) && fromMs < takenMs && toMs > takenMs;

function takeoversOf({ facts, startMs }: PathRecords): TakenOver[] {
  return facts.flatMap(({ record: { takeover, facts: recorded, aggregate } }, index) => {
    const before = facts[index - 1];
    if (takeover === undefined || before === undefined) return [];
    const { storedAt = before.record.aggregate.at } = before;
    const toMs = (recorded[0]?.at ?? aggregate.at) - startMs;
    return [{ fromMs: storedAt - startMs, takenMs: takeover.at - startMs, toMs }];
  });
}

function placedFacts({ facts, inputs, startMs }: PathRecords): PlacedFact[] {
  const messages = messagesOf(inputs);
  const calls = callsOf(inputs);
  const [first] = facts;
  const begun = first?.record.facts.filter(({ kind }) => kind === 'message.received').length ?? 0;
  let turn = (first?.record.aggregate.turn ?? 1) - begun;
  const placed: PlacedFact[] = [];
  for (const [record, stored] of facts.entries())
    for (const fact of stored.record.facts) {
      if (fact.kind === 'message.received') turn = fact.turn;
      const { at } = fact;
      const placedTurn = turn;
      const storedMs = Math.max(at, stored.storedAt ?? at) - startMs;
      const origin = { stored, before: facts[record - 1], inputs };
      const input = () => {
        if (isMessage(fact)) return messages.get(messageIdOf(fact));
        if (fact.kind === 'call.started') return calls.get(`${placedTurn}/${fact.call}`);
        return 'event' in fact ? inputsOf(fact, origin)[0] : undefined;
      };
      placed.push({ fact, index: placed.length, turn, atMs: at - startMs, storedMs, input });
    }
  return placed;
}

/** The first input with each message, because a client may send a message again. */
function messagesOf(inputs: readonly StoredInput[]): Map<string, StoredInput> {
  const messages = new Map<string, StoredInput>();
  for (const stored of inputs) {
    const { record } = stored;
    if (record.from !== 'client' || record.input.kind !== 'message') continue;
    const { messageId } = record.input.message;
    if (!messages.has(messageId)) messages.set(messageId, stored);
  }
  return messages;
}

/** The first record with each call, by turn and call. */
function callsOf(inputs: readonly StoredInput[]): Map<string, StoredInput> {
  const calls = new Map<string, StoredInput>();
  for (const stored of inputs) {
    const { record } = stored;
    if ('input' in record) continue;
    for (const input of record.inputs) {
      const key = input.kind === 'call' ? `${record.from.turn}/${input.call}` : '';
      if (input.kind === 'call' && !calls.has(key)) calls.set(key, stored);
    }
  }
  return calls;
}

/** Whether a fact begins a turn. */
const isMessage = (fact: Fact): fact is TaskCreated | MessageReceived =>
  fact.kind === 'task.created' || fact.kind === 'message.received';

function messageIdOf(fact: TaskCreated | MessageReceived): string {
  return (fact.kind === 'task.created' ? fact.event.task.history?.at(-1)?.messageId : fact.message.messageId) ?? '';
}

/** Whether a turn ends with a fact. It does not if its agent continues once the client has answered. */
function isEnd(fact: Fact): boolean {
  return fact.kind === 'status.changed' && !isInProgress(fact.event.statusUpdate.status.state);
}

/** The times from a request for the client's input or credentials to the next state of the same turn. */
function waitsForClient(facts: readonly PlacedFact[]): Interval[] {
  const states = facts.filter(({ fact }) => fact.kind === 'status.changed');
  return states.flatMap(({ fact, storedMs }, index) => {
    const next = states[index + 1];
    if (next === undefined || fact.kind !== 'status.changed' || !isInterrupted(fact.event.statusUpdate.status.state)) return [];
    return [{ fromMs: storedMs, toMs: next.atMs }];
  });
}

/** Gives the times that lie in `intervals` to another part. */
function replaced<I extends Interval>(
  parts: readonly WalkedPart[],
  intervals: readonly I[],
  by: Omit<PathPart, 'fromMs' | 'toMs'>,
  isReplaced: (part: WalkedPart, interval: I) => boolean = () => true,
): readonly WalkedPart[] {
  return intervals.reduce((all, interval) => {
    return all.flatMap(part => {
      const fromMs = Math.max(part.fromMs, interval.fromMs);
      const toMs = Math.min(part.toMs, interval.toMs);
      if (toMs <= fromMs || !isReplaced(part, interval)) return [part];
      return [
        { ...part, toMs: fromMs },
        { ...by, fromMs, toMs },
        { ...part, fromMs: toMs },
      ].filter(hasTime);
    });
  }, parts);
}

/** One part for consecutive parts of one hop. */
function merged(parts: readonly WalkedPart[]): PathPart[] {
  const all: PathPart[] = [];
  for (const { isStored: _isStored, ...part } of parts) {
    const last = all.at(-1);
    const isSame = last !== undefined && last.hop === part.hop && last.agent === part.agent && last.name === part.name;
    if (isSame) last.toMs = part.toMs;
    else all.push(part);
  }
  return all;
}

const hasTime = ({ fromMs, toMs }: PathPart) => toMs > fromMs;

type WalkRecords = {
  /** The facts of the turn up to the event. */
  facts: readonly PlacedFact[];
  runs: readonly ProducerActivity[];
  beginMs: number;
  startMs: number;
};

/** One walk from an event back to the question of its turn. */
class Walk {
  readonly #records: WalkRecords;
  /** The parts from the newest to the oldest, and the beginning of the oldest part. */
  readonly #parts: WalkedPart[] = [];
  #atMs: number;

  constructor(records: WalkRecords, end: PlacedFact) {
    this.#records = records;
    this.#atMs = Math.max(records.beginMs, end.storedMs);
    if (end.isNow === true) this.#followOpen(end);
    else this.#followFact(end);
  }

  parts(): WalkedPart[] {
    return this.#parts.toReversed();
  }

  /** A part from `fromMs` to the beginning of the path so far. */
  #add(hop: PathHop, fromMs: number, more: Omit<WalkedPart, 'hop' | 'fromMs' | 'toMs'> = {}): void {
    const begin = Math.max(this.#records.beginMs, fromMs);
    if (begin >= this.#atMs) return;
    this.#parts.push({ hop, fromMs: begin, toMs: this.#atMs, ...more });
    this.#atMs = begin;
  }

  #followFact(placed: PlacedFact): void {
    const { fact, atMs } = placed;
    if (fact.kind === 'task.created') {
      this.#add('accept', this.#records.beginMs);
      return;
    }
    this.#add('append', atMs);
    if (fact.kind === 'artifact.updated' && fact.chunk !== undefined) {
      const { waitMs = 0, heldMs, firstAt } = fact.chunk;
      const run = this.#records.runs.find(({ id, attempt }) => id === fact.producer && attempt === fact.attempt);
      this.#add('wait_for_append', atMs - waitMs);
      this.#add('hold', atMs - waitMs - heldMs);
      this.#add('publish', firstAt - this.#records.startMs);
      this.#followRun(run, placed);
      return;
    }
    const ended = this.#endedBy(placed);
    if (ended !== undefined) {
      this.#add('publish', ended.endMs!);
      this.#followRun(ended, placed);
      return;
    }
    if (fact.kind === 'call.ended') {
      this.#followCall(fact.call, placed);
      return;
    }
    this.#followInput(placed);
  }

  /** The run whose last input became the fact. */
  #endedBy({ fact, input }: PlacedFact): ProducerActivity | undefined {
    if (fact.kind !== 'call.ended' && !isEnd(fact)) return undefined;
    const record = input()?.record;
    if (record !== undefined && 'input' in record) return undefined;
    const call = 'call' in fact ? fact.call : undefined;
    const ended = this.#records.runs.filter(
      run => run.endMs !== undefined && (call === undefined ? isRoot(run) : run.id === call),
    );
    // A run that the relay has rejected may have ended later.
    return ended.findLast(({ endMs }) => endMs! <= fact.at - this.#records.startMs) ?? ended.at(0);
  }

  /** Follows the record from which the relay decided an event. */
  #followInput(placed: PlacedFact): void {
    const record = placed.input()?.record;
    if (record === undefined) {
      this.#followWait(placed);
      return;
    }
    const atMs = record.at - this.#records.startMs;
    if ('inputs' in record) {
      const { id, attempt } = record.from;
      this.#add('publish', atMs);
      const run = this.#records.runs.findLast(one => one.id === id && one.attempt === attempt);
      this.#followRun(run, placed);
      return;
    }
    this.#add('publish', atMs);
    const isTimeout = record.input.kind === 'timeout' || record.input.kind === 'auth-timeout';
    const asked = isTimeout ? this.#before(placed).findLast(({ fact }) => isEnd(fact)) : undefined;
    if (asked === undefined) {
      this.#followWait(placed);
      return;
    }
    this.#add('client', asked.storedMs);
    this.#followFact(asked);
  }

  /** The turn is still running: it waits for the open call that has been silent the longest. */
  #followOpen(placed: PlacedFact): void {
    const silences = this.#openCalls(placed).map(call => {
      const run = this.#records.runs.findLast(({ id }) => id === call);
      const started = this.#startOf(call, placed)!;
      const agent = started.fact.kind === 'call.started' ? started.fact.agent : call;
      return { agent, call, lastMs: run?.lastMs ?? started.storedMs };
    });
    const [silent] = silences.toSorted((a, b) => a.lastMs - b.lastMs);
    if (silent === undefined) {
      this.#followWait(placed);
      return;
    }
    this.#add('silence', silent.lastMs, { agent: silent.agent });
    this.#followCall(silent.call, placed);
  }

  /** The calls that began before `placed` and had not ended then. */
  #openCalls(placed: PlacedFact): string[] {
    const before = this.#before(placed);
    return before.flatMap(({ fact }) => {
      if (fact.kind !== 'call.started') return [];
      return before.some(other => other.fact.kind === 'call.ended' && other.fact.call === fact.call) ? [] : [fact.call];
    });
  }

  /** The client, the relay or the supervisor ended a wait. Follows the work that had not yet ended. */
  #followWait(placed: PlacedFact): void {
    const before = this.#before(placed);
    const open = this.#openCalls(placed);
    const newest = this.#records.runs.filter(({ id }) => open.includes(id)).toSorted((a, b) => a.lastMs - b.lastMs);
    const call = newest.at(-1)?.id ?? open[0];
    if (call !== undefined) {
      this.#followCall(call, placed);
      return;
    }
    const root = this.#records.runs.findLast(isRoot);
    if (root !== undefined) {
      this.#followRun(root, placed);
      return;
    }
    const begun = before[0];
    this.#add('work_queue', begun?.storedMs ?? this.#records.beginMs);
    this.#add('accept', this.#records.beginMs);
  }

  /** Follows a call that is still running, or that the supervisor or a relay ended. */
  #followCall(call: string, placed: PlacedFact): void {
    const run = this.#records.runs.findLast(({ id }) => id === call);
    if (run !== undefined) {
      this.#followRun(run, placed);
      return;
    }
    const started = this.#startOf(call, placed);
    if (started === undefined) return;
    const agent = started.fact.kind === 'call.started' ? { agent: started.fact.agent } : {};
    this.#add('agent_queue', started.storedMs, agent);
    this.#followStart(started);
  }

  /** If a run is undefined, it left no record, or retention has removed all its records. */
  #followRun(run: ProducerActivity | undefined, placed: PlacedFact): void {
    if (run === undefined) this.#followWait(placed);
    else if (run.id === SUPERVISOR) this.#followSupervisor(run, placed);
    else this.#followAgent(run, placed);
  }

  #followAgent(run: ProducerActivity, placed: PlacedFact): void {
    const { id, agent, takenMs, firstMs, firstTokenMs, lastTokenMs, lastMs, endMs } = run;
    const labels = { agent };
    const toMs = this.#atMs;
    const first = this.#parts.length;
    if (endMs === undefined && firstTokenMs !== undefined) this.#add('silence', lastMs, labels);
    if (lastTokenMs !== undefined) this.#add('finish', lastTokenMs, labels);
    if (firstTokenMs !== undefined) this.#add('talk', firstTokenMs, labels);
    this.#add('agent', takenMs ?? firstMs, labels);
    this.#splitTools(run, first, toMs);
    if (this.#followEarlier(run, placed)) return;
    const started = isRoot(run) ? this.#begun() : this.#startOf(id, placed);
    const queuedMs = run.queuedMs ?? started?.storedMs ?? this.#records.beginMs;
    this.#add(run.attempt > 1 ? 'redelivery' : isRoot(run) ? 'work_queue' : 'agent_queue', queuedMs, labels);
    if (isRoot(run)) this.#add('accept', this.#records.beginMs);
    else if (started !== undefined) this.#followStart(started);
  }

  /** Continues with the attempt before a run. The worker of that attempt failed, died or returned the work item. */
  #followEarlier(run: ProducerActivity, placed: PlacedFact): boolean {
    const earlier = this.#records.runs.filter(({ id, attempt }) => id === run.id && attempt < run.attempt);
    const before = earlier.toSorted((a, b) => a.attempt - b.attempt).at(-1);
    if (before === undefined) return false;
    this.#add('redelivery', before.lastMs, { agent: run.agent });
    this.#followRun(before, placed);
    return true;
  }

  /** The supervisor waits for its calls. Its own time begins when the end of its last call was stored. */
  #followSupervisor(run: ProducerActivity, placed: PlacedFact): void {
    const ended = this.#before(placed).findLast(({ fact }) => fact.kind === 'call.ended');
    const isPlan = placed.fact.kind === 'call.started' || ended === undefined;
    const hop = isPlan ? 'plan' : 'compose';
    const takenMs = run.takenMs ?? run.firstMs;
    const labels = { agent: run.agent };
    if (ended !== undefined && ended.storedMs >= takenMs) {
      this.#add(hop, ended.storedMs, labels);
      this.#followFact(ended);
      return;
    }
    this.#add(hop, takenMs, labels);
    const before = this.#records.runs.findLast(one => one.id === run.id && one.attempt < run.attempt);
    if (ended !== undefined && (before === undefined || before.lastMs <= ended.storedMs)) {
      this.#add('redelivery', ended.storedMs, labels);
      this.#followFact(ended);
      return;
    }
    if (this.#followEarlier(run, placed)) return;
    this.#add(
      run.attempt > 1 ? 'redelivery' : 'work_queue',
      run.queuedMs ?? this.#begun()?.storedMs ?? this.#records.beginMs,
      labels,
    );
    this.#add('accept', this.#records.beginMs);
  }

  /** Follows the attempt of the supervisor that planned a call. */
  #followStart(started: PlacedFact): void {
    const record = started.input()?.record;
    const planner = record !== undefined && 'inputs' in record ? record.from.attempt : undefined;
    const supervisors = this.#records.runs.filter(({ id }) => id === SUPERVISOR);
    const run = supervisors.find(({ attempt }) => attempt === planner) ?? supervisors[0];
    if (run === undefined) return;
    const storedMs = record === undefined ? started.atMs : record.at - this.#records.startMs;
    this.#add('plan', storedMs, { agent: run.agent, isStored: true });
    this.#followSupervisor(run, started);
  }

  #startOf(call: string, placed: PlacedFact): PlacedFact | undefined {
    return this.#before(placed).findLast(({ fact }) => fact.kind === 'call.started' && fact.call === call);
  }

  #begun(): PlacedFact | undefined {
    return this.#records.facts.find(({ fact }) => isMessage(fact));
  }

  #before({ index }: PlacedFact): PlacedFact[] {
    return this.#records.facts.filter(other => other.index < index);
  }

  /** Assigns the time in tools to the tools. If tools overlap, the one that began first gets the time. */
  #splitTools({ agent, tools }: ProducerActivity, first: number, toMs: number): void {
    const parts = this.#parts.splice(first);
    const disjoint: PathPart[] = [];
    let freeMs = Number.NEGATIVE_INFINITY;
    for (const { name, fromMs, ms } of tools.toSorted((a, b) => a.fromMs - b.fromMs)) {
      const part = { hop: 'tool', agent, name, fromMs: Math.max(freeMs, fromMs), toMs: Math.min(toMs, fromMs + ms) } as const;
      if (part.toMs <= part.fromMs) continue;
      disjoint.push(part);
      freeMs = part.toMs;
    }
    this.#parts.push(...parts.flatMap(part => withTools(part, disjoint).toReversed()));
  }
}

/** Splits a part where tools ran. `tools` are disjoint and in the order of time. */
function withTools(part: WalkedPart, tools: readonly PathPart[]): WalkedPart[] {
  const split: WalkedPart[] = [];
  let fromMs = part.fromMs;
  for (const tool of tools) {
    const begin = Math.max(part.fromMs, tool.fromMs);
    const end = Math.min(part.toMs, tool.toMs);
    if (end <= begin) continue;
    split.push({ ...part, fromMs, toMs: begin }, { ...tool, fromMs: begin, toMs: end });
    fromMs = end;
  }
  return [...split, { ...part, fromMs }].filter(hasTime);
}

const isRoot = ({ id }: ProducerActivity) => id === SUPERVISOR || id === ROOT_AGENT;
