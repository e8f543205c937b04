import { isInterrupted, type Message } from '@hopline/a2a';
import type { CallEnded } from '@hopline/events';
import { callEndNotice, callStartNotice } from './notices.ts';
import { NoAgentFits, type Plan } from './planner.ts';
import type { TurnContext, TurnRunner } from './turn-runner.ts';
import { ANSWER_NAME } from './turn-view.ts';

/** Largest text of one event of the final result, UTF-16 units; a longer result goes out in several chunks of one artifact. */
const RESULT_UNITS_MAX = 512 * 1024;

/**
 * Profile `caipe`: plan stream, plan, a start notice for each call, the agents' text as it comes, end notices, the whole result, the final state (S0-32).
 * Every step looks into the log first, so a supervisor that takes over says only what is missing.
 */
export class CaipeTurn implements TurnRunner {
  readonly #context: TurnContext;
  readonly #said = new Set<string>();
  #begun = false;

  constructor(context: TurnContext) {
    this.#context = context;
  }

  async advance(): Promise<void> {
    if (!this.#begun) {
      this.#begun = true;
      await this.#begin();
    }
    const { view } = this.#context;
    for (const call of view.calls) {
      const ended = view.ended(call);
      if (ended !== undefined && !isInterrupted(ended.state)) this.#noticeEnd(call, ended);
    }
    const ends = view.calls.map(call => view.ended(call));
    if (ends.length > 0 && ends.every(ended => ended !== undefined)) this.#finish(ends);
  }

  async #begin(): Promise<void> {
    const { writer, view } = this.#context;
    writer.add({ kind: 'status', state: 'TASK_STATE_WORKING' });
    if (view.calls.length > 0) {
      // A supervisor before this one got as far as its calls: they are in the log, only the work may not have been queued.
      await Promise.all(
        view.calls.filter(call => view.ended(call) === undefined).map(call => this.#call(call, view.agentOf(call))),
      );
      return;
    }
    if (view.waiting.length > 0) {
      await Promise.all(view.waiting.map(({ agent, resume }, index) => this.#call(this.#callId(index), agent, resume)));
      return;
    }
    const plan = await this.#plan();
    if (plan !== undefined) await Promise.all(plan.agents.map((agent, index) => this.#call(this.#callId(index), agent)));
  }

  async #plan(): Promise<Plan | undefined> {
    const { work, planner, agents, history, signal, writer } = this.#context;
    const { message, metadata = {} } = work;
    let plan: Plan;
    try {
      plan = await planner.plan({ message, metadata, history: await history(), agents: await agents(), signal });
    } catch (error) {
      if (!(error instanceof NoAgentFits)) throw error;
      this.#fail(error.message);
      return undefined;
    }
    const lane = this.#lane('plan');
    if (this.#context.view.isShown(lane)) {
      for await (const _token of plan.text);
      return plan;
    }
    const streaming = { name: 'execution_plan_streaming', description: 'Execution plan streaming in progress' };
    writer.add({ kind: 'open', lane, artifact: streaming });
    let text = '⟦';
    writer.token(lane, '⟦');
    for await (const token of plan.text) {
      text += token;
      writer.token(lane, token);
      await writer.ready();
    }
    text += '⟧';
    writer.token(lane, '⟧');
    const complete = { name: 'execution_plan_update', description: 'Complete execution plan streamed to user' };
    // The same artifact, replaced and closed: a folded task has one plan, not two (C-3).
    writer.add({ kind: 'artifact', lane, artifact: complete, parts: [{ text }], append: false, last: true });
    return plan;
  }

  async #call(call: string, agent: string, resume?: unknown): Promise<void> {
    const { writer, delegate, displayName, view } = this.#context;
    if (!view.calls.includes(call)) writer.add({ kind: 'call', call, agent });
    const lane = this.#lane(`${call}/start`);
    if (!view.isShown(lane)) writer.add(callStartNotice(lane, call, agent));
    // Order rule: the call stands in the log before anybody works on it, so that its end finds it.
    await writer.flush();
    const description = `Streaming result from ${displayName}`;
    const answer = { name: ANSWER_NAME, description, metadata: { sourceAgent: agent, toolCallId: call } };
    await delegate({ id: call, agent, answer, ...(resume !== undefined && { resume }) });
  }

  #noticeEnd(call: string, ended: CallEnded): void {
    const lane = this.#lane(`${call}/end`);
    if (this.#context.view.isShown(lane) || this.#once(lane)) return;
    this.#context.writer.add(callEndNotice(lane, call, ended.agent, ended.state !== 'TASK_STATE_COMPLETED'));
  }

  #finish(ends: readonly (CallEnded | undefined)[]): void {
    if (this.#once('finish')) return;
    const { writer } = this.#context;
    const waiting = ends.find(ended => ended !== undefined && isInterrupted(ended.state));
    if (waiting?.message !== undefined) {
      writer.add({ kind: 'status', state: waiting.state, message: waiting.message });
      return;
    }
    this.#result();
    const failed = ends.filter(ended => ended?.state !== 'TASK_STATE_COMPLETED');
    const [first] = failed;
    if (first === undefined) {
      writer.add({ kind: 'status', state: 'TASK_STATE_COMPLETED' });
    } else if (failed.length < ends.length) {
      const failedAgents = failed.map(ended => ({ agent: ended?.agent, reason: ended?.reason }));
      writer.add({ kind: 'status', state: 'TASK_STATE_COMPLETED', metadata: { failedAgents } });
    } else {
      this.#fail(
        `${first.agent}: ${first.reason ?? 'the agent ended without a result'}`,
        first.retryable,
        first.message,
        endState(first),
      );
    }
  }

  /** The whole answer in one artifact, before the final state (S0-20). */
  #result(): void {
    const { view, writer, displayName } = this.#context;
    const lane = this.#lane('result');
    const text = view.answerText();
    if (text === '' || view.isShown(lane)) return;
    const artifact = { name: 'partial_result', description: `Partial result from ${displayName} (stream ended)` };
    for (let from = 0; from < text.length; ) {
      const to = pieceEnd(text, from);
      writer.add({
        kind: 'artifact',
        lane,
        artifact,
        parts: [{ text: text.slice(from, to) }],
        append: from > 0,
        last: to === text.length,
      });
      from = to;
    }
  }

  #fail(
    reason: string,
    retryable = false,
    message?: Message,
    state: 'TASK_STATE_FAILED' | 'TASK_STATE_REJECTED' = 'TASK_STATE_FAILED',
  ): void {
    const { writer } = this.#context;
    const said = message ?? {
      messageId: `${this.#lane('failed')}-${this.#context.work.taskId}`,
      role: 'ROLE_AGENT' as const,
      parts: [{ text: reason }],
    };
    writer.add({ kind: 'status', state, message: said, metadata: { reason, retryable } });
  }

  #lane(name: string): string {
    return `${this.#context.work.turn}/${name}`;
  }

  #callId(index: number): string {
    return `call-${this.#context.work.turn}-${index + 1}`;
  }

  /** True when this was said in this life already, and remembers that it is said now. */
  #once(what: string): boolean {
    if (this.#said.has(what)) return true;
    this.#said.add(what);
    return false;
  }
}

function endState(ended: CallEnded): 'TASK_STATE_FAILED' | 'TASK_STATE_REJECTED' {
  return ended.state === 'TASK_STATE_REJECTED' ? 'TASK_STATE_REJECTED' : 'TASK_STATE_FAILED';
}

/** End of the next piece, never between the halves of a surrogate pair. */
function pieceEnd(text: string, from: number): number {
  const to = Math.min(text.length, from + RESULT_UNITS_MAX);
  const unit = text.charCodeAt(to - 1);
  return to < text.length && unit >= 0xd800 && unit <= 0xdbff ? to - 1 : to;
}
