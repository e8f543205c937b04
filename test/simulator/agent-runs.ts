import type { AgentTurn } from '@hopline/agent';
import {
  type AgentRun,
  type AgentScript,
  type Deliveries,
  type PassedStep,
  type RunRecorder,
  tokensOf,
} from '../support/agents/scripted-agent.ts';
import type { Situations } from './situations.ts';
import type { VirtualClock, VirtualProcess } from './virtual-clock.ts';

const BURST_TOKENS_MIN = 300;
const LONG_PAUSE_MS_MIN = 15_000;

/** The runs of all agents. Verifiers compare the tasks' text with them. */
export class AgentRuns implements RunRecorder {
  readonly #clock: VirtualClock;
  readonly all: AgentRun[] = [];
  readonly #scripts = new Map<AgentRun, AgentScript>();
  readonly #situations: Situations;
  /** Deliveries of the newest item, by process, agent, task and number of the delivery. */
  readonly #deliveries = new Map<string, Deliveries & { seq: number }>();

  constructor(clock: VirtualClock, situations: Situations) {
    this.#clock = clock;
    this.#situations = situations;
  }

  /** Whether a run has begun its text and has not ended. */
  get isWriting(): boolean {
    return this.all.some(({ endedAt, tokens }) => endedAt === undefined && tokens.length > 0);
  }

  /** A server sends an item. `seq`: its sequence in the work stream. */
  delivered(
    process: string,
    agent: string,
    { taskId, seq, deliveries }: { taskId: string; seq: number; deliveries: number },
  ): void {
    const key = `${process} ${agent} ${taskId} ${deliveries}`;
    const known = this.#deliveries.get(key);
    const { nowMs } = this.#clock;
    if (known?.seq === seq) known.last = nowMs;
    else if (known === undefined || known.seq < seq) this.#deliveries.set(key, { seq, first: nowMs, last: nowMs });
  }

  begin(agent: string, { message, attempt, history }: AgentTurn, script: AgentScript): AgentRun {
    const id = this.all.length + 1;
    const isRepeated = this.all.some(
      run => run.agent === agent && run.messageId === message.messageId && run.attempt < attempt && run.tokens.length > 0,
    );
    if (isRepeated) this.#situations.add('another attempt begins after text of the first one');
    const { taskId = '' } = message;
    const process = this.#clock.process?.name ?? '';
    const delivered = this.#deliveries.get(`${process} ${agent} ${taskId} ${attempt}`);
    const run: AgentRun = {
      id,
      agent,
      taskId,
      messageId: message.messageId,
      attempt,
      process,
      tokens: [],
      fullText: tokensOf(id, script).join(''),
      history,
      startedAt: this.#clock.nowMs,
      ...(delivered && { deliveredAt: { first: delivered.first, last: delivered.last } }),
      endedAt: undefined,
    };
    this.all.push(run);
    this.#scripts.set(run, script);
    return run;
  }

  addEffect(run: AgentRun, key: string): void {
    run.effects = [...(run.effects ?? []), key];
  }

  addPassed(run: AgentRun, step: PassedStep): void {
    run.passed = [...(run.passed ?? []), step];
  }

  end(run: AgentRun): void {
    run.endedAt ??= this.#clock.nowMs;
    const { everyMs, pause } = this.#scripts.get(run)!;
    const { length } = run.tokens;
    if (everyMs === 0 && length >= BURST_TOKENS_MIN) this.#situations.add('an agent writes 300 tokens at once');
    if (pause !== undefined && pause.ms >= LONG_PAUSE_MS_MIN && pause.afterTokens > 0 && length > pause.afterTokens)
      this.#situations.add('an agent writes nothing for 15 s in the middle of its text');
  }

  /** The process of these runs was killed. */
  killed({ name }: VirtualProcess): void {
    for (const run of this.all) {
      if (run.process !== name) continue;
      if (run.isWaiting && run.endedAt === undefined) this.#situations.add('an agent dies while it waits for credentials');
      this.end(run);
    }
  }
}
