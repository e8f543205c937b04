import { isInterrupted } from '@hopline/a2a';
import type { CallEnded } from '@hopline/events';
import { AgentCalls } from './agent-calls.ts';
import { completeUpdate, PLAN_STREAMING } from './plan-artifact.ts';
import { NoAgentFits, type Plan } from './planner.ts';
import { failure, outcomeOf, resultArtifact } from './turn-outcome.ts';
import type { TurnContext, TurnRunner } from './turn-runner.ts';

/**
 * Profile `caipe`: plan stream, plan, a start notice for each call, the agents' text as it comes, end notices, the whole result, the final state (S0-32).
 * Every step looks into the log first, so a supervisor that takes over says only what is missing.
 */
export class CaipeTurn implements TurnRunner {
  readonly #context: TurnContext;
  readonly #calls: AgentCalls;
  #begun = false;
  #finished = false;

  constructor(context: TurnContext) {
    this.#context = context;
    this.#calls = new AgentCalls(context);
  }

  async advance(): Promise<void> {
    if (!this.#begun) {
      this.#begun = true;
      await this.#begin();
    }
    const { view } = this.#context;
    for (const call of view.calls) {
      const ended = view.ended(call);
      if (ended !== undefined && !isInterrupted(ended.state)) this.#calls.noticeEnd(call, ended);
    }
    const ends = view.calls.flatMap(call => view.ended(call) ?? []);
    if (ends.length > 0 && ends.length === view.calls.length) this.#finish(ends);
  }

  async #begin(): Promise<void> {
    const { view } = this.#context;
    this.#calls.begin();
    if (view.calls.length > 0) {
      // A supervisor before this one got as far as its calls: they are in the log, only the work may not have been queued.
      const open = view.calls.filter(call => view.ended(call) === undefined);
      await Promise.all(open.map(call => this.#calls.start(call, view.agentOf(call), { resume: this.#resumeOf(call) })));
      return;
    }
    if (view.waiting.length > 0) {
      await Promise.all(
        view.waiting.map(({ agent, resume }, index) => this.#calls.start(this.#callId(index), agent, { resume })),
      );
      return;
    }
    const plan = await this.#plan();
    if (plan !== undefined) await Promise.all(plan.agents.map((agent, index) => this.#calls.start(this.#callId(index), agent)));
  }

  #resumeOf(call: string): unknown {
    return this.#context.view.waiting.find((_waiting, index) => this.#callId(index) === call)?.resume;
  }

  async #plan(): Promise<Plan | undefined> {
    const { work, planner, agents, history, signal, writer } = this.#context;
    const { message, metadata = {} } = work;
    let plan: Plan;
    try {
      plan = await planner.plan({ message, metadata, history: await history(work.turn), agents: await agents(), signal });
    } catch (error) {
      if (!(error instanceof NoAgentFits)) throw error;
      writer.add(failure(this.#failureId(), error.message));
      return undefined;
    }
    const lane = this.#lane('plan');
    if (this.#context.view.isShown(lane)) {
      for await (const _token of plan.text);
      return plan;
    }
    writer.add({ kind: 'open', lane, artifact: PLAN_STREAMING });
    let text = '⟦';
    writer.token(lane, '⟦');
    for await (const token of plan.text) {
      text += token;
      writer.token(lane, token);
      await writer.ready();
    }
    text += '⟧';
    writer.token(lane, '⟧');
    writer.add(completeUpdate(lane, text));
    return plan;
  }

  #finish(ends: readonly CallEnded[]): void {
    if (this.#finished) return;
    this.#finished = true;
    const { writer, view, displayName } = this.#context;
    const waiting = ends.find(({ state }) => isInterrupted(state));
    if (waiting?.message !== undefined) {
      writer.add({ kind: 'status', state: waiting.state, message: waiting.message });
      return;
    }
    const lane = this.#lane('result');
    if (!view.isShown(lane))
      for (const piece of resultArtifact(lane, displayName, view.answerText() + view.heldText())) writer.add(piece);
    writer.add(outcomeOf(ends, this.#failureId()));
  }

  #failureId(): string {
    return `${this.#lane('failed')}-${this.#context.work.taskId}`;
  }

  #lane(name: string): string {
    return `${this.#context.work.turn}/${name}`;
  }

  #callId(index: number): string {
    return `call-${this.#context.work.turn}-${index + 1}`;
  }
}
