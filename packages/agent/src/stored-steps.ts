import { type AgentStepInput, type AgentStepRecorded, foldedOrdinal, type StepOutcome } from '@hopline/events';
import { type InputWriter, type Job, type Log, readTask, type StoredFacts } from '@hopline/log';
import { artifactIdOf, ROOT_AGENT } from '@hopline/task';
import type { BegunStep, TurnSteps } from './agent.ts';
import { AttemptFailed } from './attempt-failed.ts';
import { AgentMisuse } from './misuse.ts';
import { type StepPlace, StepSequence, type StoredStep } from './step-sequence.ts';
import { overBecause } from './task-watch.ts';

/** How long a step waits for a relay to store its outcome, in milliseconds: as long as the end of a turn. */
const SHOWN_MS_MAX = 5 * 60_000;
/**
 * The fact of an input may be in the record after the one that first shows its ordinal, so a fact counts as missing only after this time.
 */
const DOUBT_MS = 5_000;
const UNSUPPORTED = 'the relays of this cluster cannot store steps: they are of an earlier version';

type StoredStepsOptions = {
  log: Log;
  job: Job;
  /** Adds the input of a step. */
  add: (input: AgentStepInput) => void;
  writer: Pick<InputWriter, 'flush' | 'nextN'>;
  /** Aborts when the turn is over for this attempt. */
  signal: AbortSignal;
  /** Called once if the log makes a step fail: the attempt must end, however the agent handles the rejected promise. */
  onLost: (error: unknown) => void;
};

type Awaited = {
  phase: AgentStepInput['phase'];
  step: string;
  n: number;
  upTo: number;
  resolve: () => void;
  reject: (error: unknown) => void;
  doubt?: NodeJS.Timeout;
};

/**
 * The steps of one attempt in the log. An outcome counts once it is a fact, because the next attempt reads facts. The first step of a later
 * attempt writes before it reads. After that, relays reject what earlier attempts write, so they cannot store an outcome that this read has
 * missed.
 */
export class StoredSteps implements TurnSteps {
  readonly #options: StoredStepsOptions;
  readonly #producer: string;
  readonly #sequence = new StepSequence();
  #following: Promise<void> | undefined;
  #earlier: readonly StoredStep[] | undefined;
  #awaited: Awaited | undefined;
  readonly #closed = new AbortController();

  constructor(options: StoredStepsOptions) {
    this.#options = options;
    this.#producer = options.job.work.call?.id ?? ROOT_AGENT;
  }

  async begin(step: string): Promise<BegunStep> {
    const place = this.#sequence.reach(step);
    const { job, add } = this.#options;
    const { taskId, turn } = job.work;
    const key = artifactIdOf(taskId, `${this.#producer}/${turn}/step/${place.n}/${step}`);
    const stored = this.#sequence.outcomeOf(place, await this.#reach(place));
    if (stored === undefined) return { key };
    add({ kind: 'agent-step', ...place, phase: 'reused', of: stored.attempt });
    return { key, outcome: stored.outcome };
  }

  async end(outcome: StepOutcome): Promise<void> {
    const place = this.#sequence.end(outcome);
    await this.#orLost(async () => {
      await this.#follow();
      await this.#write({ kind: 'agent-step', ...place, phase: 'stored', outcome });
    });
  }

  /**
   * The call of this attempt is repeated. The steps that failed last run again in the next attempt, which must not get a failure that has
   * passed. Earlier failures stay, because other steps have followed them.
   */
  async openLastFailed(): Promise<void> {
    const { lastFailed } = this.#sequence;
    for (const place of lastFailed) this.#options.add({ kind: 'agent-step', ...place, phase: 'reached' });
    if (lastFailed.length > 0) await this.#options.writer.flush();
  }

  /** The turn is over: the task is followed no more. */
  close(): void {
    this.#closed.abort();
  }

  /** Writes that the attempt has reached a step. Resolves with the outcomes from earlier attempts. */
  async #reach(place: StepPlace): Promise<readonly StoredStep[]> {
    const input: AgentStepInput = { kind: 'agent-step', ...place, phase: 'reached' };
    if (this.#earlier !== undefined || this.#options.job.attempt === 1) {
      this.#options.add(input);
      // Opened while the step runs. `end` sees an error.
      this.#follow().catch(() => {});
      return this.#earlier ?? [];
    }
    await this.#orLost(async () => {
      await this.#follow();
      await this.#write(input);
      this.#earlier = await this.#readEarlier();
    });
    return this.#earlier ?? [];
  }

  /** Resolves when the facts show the input. */
  async #write(input: AgentStepInput): Promise<void> {
    const { add, writer, signal } = this.#options;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    promise.catch(() => {});
    const { phase, step, n } = input;
    add(input);
    this.#awaited = { phase, step, n, upTo: writer.nextN - 1, resolve, reject };
    const timer = setTimeout(() => reject(new AttemptFailed('no relay has stored a step', 'step_not_shown')), SHOWN_MS_MAX);
    const onAbort = () => reject(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
    try {
      signal.throwIfAborted();
      await writer.flush();
      await promise;
    } finally {
      clearTimeout(timer);
      clearTimeout(this.#awaited?.doubt);
      signal.removeEventListener('abort', onAbort);
      this.#awaited = undefined;
    }
  }

  /** Follows the task from its newest record on. Resolves when no later input can be missed. */
  #follow(): Promise<void> {
    this.#following ??= this.#openFollower();
    return this.#following;
  }

  async #openFollower(): Promise<void> {
    const { log, job, signal } = this.#options;
    const { taskId } = job.work;
    const newest = await log.facts.last(taskId);
    if (newest === undefined) throw new AttemptFailed('the log does not contain the task of this work item', 'log_lost');
    const over = AbortSignal.any([signal, this.#closed.signal]);
    const records = await log.facts.follow(taskId, { newest: newest.seq, id: newest.id, skipsText: true }, over);
    void this.#read(records).then(
      () => over.aborted || this.#lose(new AttemptFailed('the log was lost', 'log_lost')),
      error => this.#lose(error),
    );
  }

  async #read(records: AsyncIterable<StoredFacts>): Promise<void> {
    for await (const stored of records) this.#see(stored);
  }

  #see({ record: { facts, aggregate } }: StoredFacts): void {
    const awaited = this.#awaited;
    if (awaited === undefined) return;
    const { job } = this.#options;
    const { phase, step, n, upTo } = awaited;
    const isIt = (fact: AgentStepRecorded) => fact.phase === phase && fact.step === step && fact.n === n;
    if (facts.some(fact => this.#isOwn(fact) && fact.attempt === job.attempt && isIt(fact))) awaited.resolve();
    else if (overBecause(aggregate, job) !== undefined) return;
    else if (foldedOrdinal(aggregate, { id: this.#producer, item: job.item, attempt: job.attempt }) >= upTo)
      awaited.doubt ??= setTimeout(() => awaited.reject(new AgentMisuse(UNSUPPORTED)), DOUBT_MS);
  }

  #isOwn(fact: StoredFacts['record']['facts'][number]): fact is AgentStepRecorded {
    return fact.kind === 'agent-step.recorded' && fact.producer === this.#producer;
  }

  /** Reads the task's facts once, for outcomes that earlier attempts of this turn have stored. */
  async #readEarlier(): Promise<StoredStep[]> {
    const { log, job } = this.#options;
    const newest = await log.facts.last(job.work.taskId);
    if (newest === undefined) throw new AttemptFailed('the log was lost', 'log_lost');
    const earlier = new EarlierSteps();
    for await (const { record } of readTask(log.facts, newest)) {
      for (const fact of record.facts) {
        if (fact.kind === 'message.received') earlier.clear();
        else if (this.#isOwn(fact) && fact.attempt < job.attempt) earlier.add(fact);
      }
    }
    return earlier.outcomes;
  }

  async #orLost(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      if (!(error instanceof AgentMisuse)) this.#lose(error);
      throw error;
    }
  }

  #lose(error: unknown): void {
    if (this.#options.signal.aborted || this.#closed.signal.aborted) return;
    this.#awaited?.reject(error);
    this.#options.onLost(error);
  }
}

/** The outcomes in the facts of a turn's attempts, in the order of the steps. */
class EarlierSteps {
  outcomes: StoredStep[] = [];
  /** The steps that `#attempt` has passed. A `reached` of such a step reopens it. */
  readonly #passed = new Set<string>();
  #attempt = 0;

  clear(): void {
    this.outcomes = [];
    this.#attempt = 0;
    this.#passed.clear();
  }

  add({ attempt, phase, step, n, outcome = {} }: AgentStepRecorded): void {
    if (attempt !== this.#attempt) this.#passed.clear();
    this.#attempt = attempt;
    const key = `${n}/${step}`;
    if (phase === 'stored') this.outcomes.push({ step, n, outcome, attempt });
    if (phase !== 'reached') this.#passed.add(key);
    else if (this.#passed.delete(key)) this.outcomes = this.outcomes.filter(stored => stored.step !== step || stored.n !== n);
  }
}
