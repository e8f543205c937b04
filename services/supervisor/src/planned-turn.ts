import { isInterrupted } from '@hopline/a2a';
import { answerArtifact, laneArtifact, progressStatus } from '@hopline/profiles';
import { SUPERVISOR } from '@hopline/task';
import { AgentCalls, type CallOptions } from './agent-calls.ts';
import { completePlan, marked } from './plan.ts';
import { NoAgentFits, type Plan } from './planner.ts';
import { addResult, choiceOf, failure, outcomeOf, withUsage } from './turn-outcome.ts';
import type { ConductingContext, TurnRunner } from './turn-runner.ts';
import { continuingCallId } from './turn-view.ts';

/**
 * A turn by a plan: plan stream, plan, a start notice for each call, the agents' text as it arrives, end notices, the whole result, and the final
 * state (S0-32). Every step reads the view first, so a supervisor that takes over appends only what is missing.
 */
export class PlannedTurn implements TurnRunner {
  readonly #context: ConductingContext;
  readonly #calls: AgentCalls;
  #begun = false;
  #finished = false;

  constructor(context: ConductingContext) {
    this.#context = context;
    this.#calls = new AgentCalls(context);
  }

  async advance(): Promise<void> {
    if (!this.#begun) {
      this.#begun = true;
      await this.#begin();
    }
    const { calls, ends } = this.#context.view;
    for (const ended of ends) if (!isInterrupted(ended.state)) this.#calls.noticeEnd(ended);
    if (ends.length > 0 && ends.length === calls.length) await this.#finish();
  }

  async #begin(): Promise<void> {
    const { view, work } = this.#context;
    this.#calls.begin();
    if (view.calls.length > 0) {
      // An earlier supervisor has recorded these calls, but may not have queued their work items.
      const open = view.calls.filter(call => view.ended(call) === undefined);
      await Promise.all(open.map(call => this.#calls.start(call, view.agentOf(call), this.#continuedWith(call))));
      return;
    }
    if (view.waiting.length > 0) {
      const continued = view.waiting.map(({ agent, call: _call, ...options }, index) =>
        this.#calls.start(continuingCallId(work.turn, index), agent, options),
      );
      await Promise.all(continued);
      return;
    }
    const plan = await this.#plan();
    await Promise.all(plan?.agents.map((agent, index) => this.#calls.start(`call-${work.turn}-${index + 1}`, agent)) ?? []);
  }

  #continuedWith(call: string): CallOptions {
    const { view, work } = this.#context;
    const waiting = view.waiting.find((_waiting, index) => continuingCallId(work.turn, index) === call);
    return { resume: waiting?.resume, ...(waiting?.message && { message: waiting.message }) };
  }

  /** Returns undefined if no agent fits; the task has then failed. */
  async #plan(): Promise<Plan | undefined> {
    const { work, planner, agents, history, signal, writer, view } = this.#context;
    const { message, metadata = {} } = work;
    let plan: Plan;
    try {
      plan = await planner.plan({ message, metadata, history: await history(work.turn), agents: await agents(), signal });
    } catch (error) {
      if (!(error instanceof NoAgentFits)) throw error;
      writer.add(failure(this.#failureId(), error.message, { retryable: error.retryable, metadata: choiceOf(error) }));
      return undefined;
    }
    if (!view.isShown(this.#lane('plan'))) await this.#stream(plan);
    // The plan is already in the log.
    else for await (const _token of plan.text);
    return plan;
  }

  async #stream({ text: tokens }: Plan): Promise<void> {
    const { profile, displayName, writer, work } = this.#context;
    const lane = this.#lane('plan');
    let text = '';
    if (profile.plan === 'status') {
      for await (const token of tokens) text += token;
      writer.add(progressStatus({ lane, taskId: work.taskId, parts: [{ text }] }));
      return;
    }
    writer.add({ kind: 'open', lane, artifact: laneArtifact(profile, profile.plan.streaming, displayName) });
    for await (const token of marked(tokens)) {
      text += token;
      writer.token(lane, token);
      await writer.ready();
    }
    writer.add(completePlan(lane, laneArtifact(profile, profile.plan.complete, displayName), text));
  }

  async #finish(): Promise<void> {
    if (this.#finished) return;
    this.#finished = true;
    const { writer, view, profile, displayName } = this.#context;
    const question = view.ends.find(({ state }) => isInterrupted(state));
    if (question?.message !== undefined) {
      writer.add(withUsage({ kind: 'status', state: question.state, message: question.message }, view.ends));
      return;
    }
    const lane = this.#lane('result');
    const { result } = profile;
    // If there is no result artifact, only the text that clients have not received is still to be sent.
    if (result === undefined)
      await addResult(this.#context, lane, answerArtifact(profile, displayName, SUPERVISOR), view.withheldText());
    else
      await addResult(this.#context, lane, laneArtifact(profile, result, displayName), view.answerText() + view.withheldText());
    writer.add(withUsage(outcomeOf(view.ends, this.#failureId()), view.ends));
  }

  #failureId(): string {
    return `${this.#lane('failed')}-${this.#context.work.taskId}`;
  }

  #lane(name: string): string {
    return `${this.#context.work.turn}/${name}`;
  }
}
