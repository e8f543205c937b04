import type { AgentTurn } from '@hopline/agent';
import { type AgentRun, type AgentScript, type RunRecorder, tokensOf } from '../support/agents/scripted-agent.ts';
import type { Situations } from './situations.ts';
import type { VirtualClock, VirtualProcess } from './virtual-clock.ts';

/** The runs of all agents. Verifiers compare the tasks' text with them. */
export class AgentRuns implements RunRecorder {
  readonly #clock: VirtualClock;
  readonly all: AgentRun[] = [];

  readonly #situations: Situations;

  constructor(clock: VirtualClock, situations: Situations) {
    this.#clock = clock;
    this.#situations = situations;
  }

  /** Whether a run has begun its text and has not ended. */
  get isWriting(): boolean {
    return this.all.some(({ endedAt, tokens }) => endedAt === undefined && tokens.length > 0);
  }

  begin(agent: string, { message, attempt }: AgentTurn, script: AgentScript): AgentRun {
    const id = this.all.length + 1;
    const isRepeated = this.all.some(
      run => run.agent === agent && run.messageId === message.messageId && run.attempt < attempt && run.tokens.length > 0,
    );
    if (isRepeated) this.#situations.add('another attempt begins after text of the first one');
    const run: AgentRun = {
      id,
      agent,
      taskId: message.taskId ?? '',
      messageId: message.messageId,
      attempt,
      process: this.#clock.process?.name ?? '',
      tokens: [],
      fullText: tokensOf(id, script).join(''),
      startedAt: this.#clock.nowMs,
      endedAt: undefined,
    };
    this.all.push(run);
    return run;
  }

  end(run: AgentRun): void {
    run.endedAt ??= this.#clock.nowMs;
  }

  /** The process of these runs was killed. */
  killed({ name }: VirtualProcess): void {
    for (const run of this.all) if (run.process === name) this.end(run);
  }
}
