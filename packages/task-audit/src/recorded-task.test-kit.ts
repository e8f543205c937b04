import type { AgentInput, AgentRecord, Producer, Role, TakenWork, ToolTiming } from '@hopline/events';
import type { StoredFacts, StoredInput } from '@hopline/log';
import { ROOT_AGENT } from '@hopline/task';
import { Scenario } from '@hopline/task/test-kit';
import type { Random } from '../../../test/simulator/random.ts';
import type { TaskRecords } from './task-records.ts';

const START = 1_000_000;
/** Time that the log takes to store an input. It is the same for all inputs, because a producer has only one record in flight. */
const STORE_MS = 3;
const AGENTS = ['argocd', 'github', 'jira'];

/** Names the hop for which the task waited in each millisecond of a turn, up to the event that follows. */
type Timeline = string[];

type Fold = { record: StoredInput['record']; writer: StoredInput['writer']; timeline: Timeline; then?: (stored: Stored) => void };
/** When a fact was stored, and the hops for which its turn had waited until then. */
type Stored = { atMs: number; timeline: Timeline };

type Queued = { queuedMs: number; timeline: Timeline };
type AgentWork = { id: string; agent: string; turn: number; queue: string; end: AgentInput };
/** `seen`: the hops for which the turn had waited up to the last record of earlier attempts, or until the work item was queued. */
type Attempt = AgentWork & { attempt: number; deaths: number; queuedMs: number; seen: Timeline };

/**
 * A task of random agents, tools, deaths and takeovers, run on a virtual clock by a model of the services. The model knows why each
 * millisecond passed (`expected`); the trace has to find it from the records.
 */
export class RecordedTask {
  readonly #random: Random;
  readonly #scenario = new Scenario('t', () => START + this.#foldMs);
  readonly #inputs: StoredInput[] = [];
  readonly #facts: StoredFacts[] = [];
  readonly #events: { atMs: number; run: () => void }[] = [];
  readonly #expected: Timeline[] = [];
  readonly #outage: { diesMs: number; takenMs: number; firstMs: number } | undefined;
  #outageIsOver = false;
  /** The time from the last record of the relay that died to the first record of its successor. */
  #takeover: { fromMs: number; toMs: number } | undefined;
  #nowMs = 0;
  #foldMs = 0;
  #relayFreeMs = 0;
  #turnStartMs = 0;
  #appended = 0;

  constructor(random: Random) {
    this.#random = random;
    const diesMs = this.#ms(2_000);
    const takenMs = diesMs + this.#ms(4_000);
    this.#outage = random.chance(0.5) ? { diesMs, takenMs, firstMs: takenMs + this.#ms(20) } : undefined;
  }

  run(): { records: TaskRecords; expected: Timeline[] } {
    this.#turn(1, this.#random.between(1, 2));
    for (;;) {
      this.#events.sort((a, b) => a.atMs - b.atMs);
      const next = this.#events.shift();
      if (next === undefined) break;
      this.#nowMs = next.atMs;
      next.run();
    }
    const aggregate = this.#scenario.aggregate!;
    return { records: { taskId: 't', aggregate, facts: this.#facts, inputs: this.#inputs }, expected: this.#expected };
  }

  #ms(max: number): number {
    return this.#random.between(1, max);
  }

  #at(atMs: number, run: () => void): void {
    this.#events.push({ atMs, run });
  }

  /** The time up to `atMs`, with a name for the time since the end of the timeline. */
  #until(timeline: Timeline, atMs: number, name: string): Timeline {
    const missing = Math.max(0, atMs - this.#turnStartMs - timeline.length);
    return [...timeline, ...Array.from({ length: missing }, () => name)];
  }

  /** Appends a record to the inputs now. A relay folds one record after another. `then` runs when this one is stored. */
  #append({ record, writer, timeline, then }: Fold): void {
    const storedMs = this.#nowMs + STORE_MS;
    this.#at(storedMs, () => {
      const seq = this.#inputs.length + 1;
      this.#inputs.push({ seq, taskId: 't', record, writer, bytes: 1, storedAt: START + storedMs });
      this.#fold({ record, writer, timeline, ...(then && { then }) }, seq);
    });
  }

  #fold({ record, timeline, then }: Fold, seq: number): void {
    const readMs = Math.max(this.#nowMs + this.#ms(3), this.#relayFreeMs);
    const outage = this.#outage;
    const waits = outage !== undefined && !this.#outageIsOver && readMs >= outage.diesMs;
    const beforeMs = this.#relayFreeMs;
    const foldMs = waits ? Math.max(readMs, outage.firstMs) : readMs;
    const storedMs = foldMs + this.#ms(8);
    this.#relayFreeMs = storedMs;
    this.#outageIsOver ||= waits;
    this.#foldMs = foldMs;
    this.#apply(record, seq);
    const facts = this.#scenario.facts.slice(this.#appended);
    this.#appended = this.#scenario.facts.length;
    if (facts.length > 0) {
      const aggregate = { ...this.#scenario.aggregate!, foldedSeq: seq };
      const takeover = waits && beforeMs > 0 && { takeover: { at: START + outage.takenMs, cause: 'lost' as const } };
      const own = { v: 1 as const, facts, aggregate, startSeq: 1, startStoredAt: 0, ...takeover };
      this.#facts.push({ seq: seq + 1_000, record: own, storedAt: START + storedMs, relay: this.#outageIsOver ? 'b' : 'a' });
    }
    if (waits && beforeMs > 0) this.#takeover = { fromMs: beforeMs, toMs: foldMs };
    then?.({ atMs: storedMs, timeline: this.#until(this.#beforeFold(timeline, foldMs), storedMs, 'append') });
  }

  /** Adds the time for which the record waited for its relay and, after the last record of a relay that died, for the successor. */
  #beforeFold(timeline: Timeline, foldMs: number): Timeline {
    const createdMs = this.#turnStartMs + timeline.length;
    const takeover = this.#takeover;
    if (takeover === undefined || createdMs >= this.#outage!.takenMs) return this.#until(timeline, foldMs, 'publish');
    const before = this.#until(timeline, Math.min(foldMs, takeover.fromMs), 'publish');
    return this.#until(this.#until(before, Math.min(foldMs, takeover.toMs), 'takeover'), foldMs, 'publish');
  }

  #apply(record: StoredInput['record'], seq: number): void {
    if (record.from === 'client') {
      this.#scenario.when({ kind: 'client', taskId: 't', input: record.input });
      return;
    }
    if (record.from === 'relay') return;
    for (const input of record.inputs) {
      if (input.kind !== 'text') this.#scenario.input(record.from, input);
      else {
        const { lane, tokens } = input;
        const times = { firstSeq: seq, lastSeq: seq, heldMs: 0, firstAt: record.at, lastAt: record.at };
        const chunk = { ...times, count: tokens.length, n: record.n, reason: 'ready' };
        this.#scenario.when({ kind: 'run', from: record.from, lane, text: tokens.join(''), last: false, n: record.n, chunk });
      }
    }
  }

  #turn(turn: number, turns: number): void {
    this.#turnStartMs = this.#nowMs;
    const isDirect = this.#random.chance(0.3);
    const role: Role = turn === 1 ? (isDirect ? 'agent.argocd' : 'supervisor') : this.#scenario.aggregate!.role;
    const message = { messageId: `m${turn}`, role: 'ROLE_USER' as const, parts: [{ text: 'hi' }] };
    const input = { kind: 'message', message, contextId: 'c', role, profile: 'caipe' } as const;
    const end = turn < turns ? 'TASK_STATE_INPUT_REQUIRED' : 'TASK_STATE_COMPLETED';
    const ended = ({ timeline }: Stored) => {
      this.#expected.push(timeline);
      if (turn === turns) return;
      const answerMs = this.#nowMs + this.#ms(5_000) + 100;
      this.#at(Math.max(answerMs, this.#relayFreeMs), () => this.#turn(turn + 1, turns));
    };
    const record = { v: 1 as const, at: START + this.#nowMs, from: 'client' as const, input };
    const then = ({ atMs, timeline }: Stored) => {
      const queuedMs = atMs + this.#ms(3);
      const queued = { queuedMs, timeline: this.#renamed(timeline, queuedMs, 'accept') };
      if (role === 'supervisor') this.#at(queuedMs, () => this.#supervise(turn, end, queued, ended));
      else {
        const status = { kind: 'status', state: end } as const;
        const work = { id: ROOT_AGENT, agent: 'argocd', turn, queue: 'work_queue argocd', end: status };
        this.#at(queuedMs, () => this.#work(work, queued, ended));
      }
    };
    this.#append({ record, writer: 'client', timeline: [], then });
  }

  /** Hops that include the relay's part of their time have one name, except where a relay was missing. */
  #renamed(timeline: Timeline, untilMs: number, name: string, from = 0): Timeline {
    const whole = this.#until(timeline, untilMs, name);
    return whole.map((one, index) => (index < from || one === 'takeover' ? one : name));
  }

  #supervise(
    turn: number,
    end: 'TASK_STATE_INPUT_REQUIRED' | 'TASK_STATE_COMPLETED',
    queued: Queued,
    ended: (stored: Stored) => void,
  ) {
    const isParallel = this.#random.chance(0.5);
    const calls = Array.from({ length: this.#random.between(1, 3) }, (_, index) => ({
      id: `call-${turn}-${index + 1}`,
      agent: AGENTS[index]!,
    }));
    const open = new Set(calls.map(({ id }) => id));
    const waiting = [...calls];
    const takenMs = queued.queuedMs + this.#ms(300);
    let taken: TakenWork = { queuedAt: START + queued.queuedMs, at: START + takenMs };
    let attempt = 1;
    let n = 1;
    let isFirstRecord = true;
    /** While no attempt runs, the next one is taken at this time. */
    let deadUntilMs = 0;
    const write = (timeline: Timeline, inputs: AgentInput[], then: (stored: Stored) => void) => {
      const from: Producer = { id: 'supervisor', agent: 'supervisor', turn, attempt };
      const record: AgentRecord = { v: 1, at: START + this.#nowMs, from, n, inputs, ...(isFirstRecord && { taken }) };
      isFirstRecord = false;
      n += inputs.length;
      this.#append({ record, writer: 'supervisor', timeline, then });
    };
    /** The supervisor continues from `timeline`, once it is alive. */
    const go = (timeline: Timeline, name: string, then: (timeline: Timeline) => void) => {
      const begun = this.#until(timeline, Math.max(this.#nowMs, deadUntilMs), 'redelivery supervisor');
      const atMs = this.#turnStartMs + begun.length + this.#ms(200);
      this.#at(atMs, () => then(this.#until(begun, atMs, name)));
    };
    const begin = (timeline: Timeline) => {
      const started = waiting.splice(0, isParallel ? waiting.length : 1);
      const planFrom = timeline.findLastIndex(name => name !== 'plan supervisor') + 1;
      const inputs = started.map(({ id, agent }) => ({ kind: 'call', call: id, agent }) as const);
      const working = { kind: 'status', state: 'TASK_STATE_WORKING' } as const;
      write(timeline, isFirstRecord && attempt === 1 ? [working, ...inputs] : inputs, ({ atMs, timeline: stored }) => {
        for (const { id, agent } of started) {
          const queuedMs = atMs + this.#ms(5);
          const call = { queuedMs, timeline: this.#renamed(stored, queuedMs, 'plan supervisor', planFrom) };
          const input = { kind: 'ended', call: id, state: 'TASK_STATE_COMPLETED' } as const;
          const work = { id, agent, turn, queue: `agent_queue ${agent}`, end: input };
          this.#at(queuedMs, () => this.#work(work, call, callEnded(id)));
        }
        if (attempt === 1 && this.#random.chance(0.4)) {
          const diesMs = atMs + this.#ms(1_500);
          this.#at(diesMs, die);
        }
      });
    };
    let isComposing = false;
    const die = () => {
      if (isComposing || open.size === 0) return;
      attempt += 1;
      n = 1;
      deadUntilMs = this.#nowMs + this.#ms(3_000);
      taken = { queuedAt: START + queued.queuedMs, at: START + deadUntilMs, cause: 'redelivery' };
      isFirstRecord = true;
    };
    const callEnded = (id: string) => (stored: Stored) => {
      this.#at(stored.atMs, () => {
        open.delete(id);
        if (waiting.length > 0) {
          isComposing = true;
          go(stored.timeline, 'plan supervisor', timeline => {
            isComposing = false;
            begin(timeline);
          });
        } else if (open.size === 0) {
          isComposing = true;
          go(stored.timeline, 'compose supervisor', timeline => write(timeline, [{ kind: 'status', state: end }], ended));
        }
      });
    };
    this.#at(takenMs, () => go(this.#until(queued.timeline, takenMs, 'work_queue supervisor'), 'plan supervisor', begin));
  }

  /** An agent that works on a call, or on the whole task, with as many attempts as it needs. */
  #work(work: AgentWork, { queuedMs, timeline }: Queued, ended: (stored: Stored) => void): void {
    const deaths = this.#random.chance(0.4) ? this.#random.between(1, 2) : 0;
    const takenMs = queuedMs + this.#ms(200);
    this.#attempt(
      { ...work, attempt: 1, deaths, queuedMs, seen: timeline },
      this.#until(timeline, takenMs, work.queue),
      takenMs,
      ended,
    );
  }

  #attempt(work: Attempt, timeline: Timeline, takenMs: number, ended: (stored: Stored) => void): void {
    const { id, agent, turn, attempt, deaths, queuedMs, end } = work;
    const from: Producer = { id, agent, turn, attempt };
    const cause = attempt > 1 && { cause: 'redelivery' as const };
    const taken: TakenWork = { queuedAt: START + queuedMs, at: START + takenMs, ...cause };
    const dies = attempt <= deaths;
    const tokens = this.#random.between(0, 5);
    let line = timeline;
    let atMs = takenMs;
    let n = 1;
    let tools: ToolTiming[] = [];
    const passes = (ms: number, name: string) => {
      atMs += ms;
      line = this.#until(line, atMs, `${name} ${agent}`);
    };
    const write = (inputs: AgentInput[], then?: (stored: Stored) => void) => {
      const record: AgentRecord = {
        v: 1,
        at: START + atMs,
        from,
        n,
        inputs,
        ...(n === 1 && { taken }),
        ...(tools.length > 0 && { tools }),
      };
      tools = [];
      n += inputs.length;
      const fold: Fold = { record, writer: `agent.${agent}`, timeline: line, ...(then && { then }) };
      this.#at(atMs, () => this.#append(fold));
    };
    const lane = `${id}-${turn}`;
    const open: AgentInput = { kind: 'open', lane, artifact: { name: 'response' } };
    const wait = (name: string) => {
      passes(this.#ms(200), name);
      if (!this.#random.chance(0.2)) return;
      const ms = this.#ms(300);
      tools.push({ name: 'look_up', at: START + atMs, ms });
      passes(ms, 'tool');
      passes(this.#ms(50), name);
    };
    for (let token = 0; token < tokens; token++) {
      wait(token === 0 ? 'agent' : 'talk');
      write(token === 0 ? [open, { kind: 'text', lane, tokens: ['a'] }] : [{ kind: 'text', lane, tokens: ['a'] }]);
    }
    if (dies) {
      const nextMs = atMs + STORE_MS + this.#ms(4_000);
      // An attempt that has written nothing leaves no trace.
      const seen = tokens === 0 ? work.seen : line;
      const next = { ...work, attempt: attempt + 1, seen };
      this.#attempt(next, this.#until(seen, nextMs, `redelivery ${agent}`), nextMs, ended);
      return;
    }
    wait(tokens === 0 ? 'agent' : 'finish');
    write([end], ended);
  }
}
