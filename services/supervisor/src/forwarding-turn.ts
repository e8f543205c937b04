import { agentPresentation } from '@hopline/profiles';
import { NoAgentFits } from './planner.ts';
import { choiceOf } from './turn-outcome.ts';
import type { TurnContext, TurnRunner } from './turn-runner.ts';
import { continuingCallId } from './turn-view.ts';

/** One agent receives the message; its artifacts, states and messages are passed on. Only ids, coalescing and hops are Hopline's. */
export class ForwardingTurn implements TurnRunner {
  readonly #context: TurnContext;
  #begun = false;
  #ended = false;

  constructor(context: TurnContext) {
    this.#context = context;
  }

  async advance(): Promise<void> {
    if (!this.#begun) {
      this.#begun = true;
      await this.#begin();
    }
    const { view, writer } = this.#context;
    const ended = view.calls.length > 0 ? view.ended(view.calls.at(-1)!) : undefined;
    if (ended === undefined || this.#ended) return;
    this.#ended = true;
    const { state, message, direct, history, reason, retryable } = ended;
    const why = reason === undefined ? undefined : { reason, retryable: retryable === true };
    const metadata = (ended.metadata ?? why) && { metadata: { ...ended.metadata, ...why } };
    const content = { ...(message && { message }), ...(direct && { direct }), ...(history && { history }) };
    writer.add({ kind: 'status', state, ...content, ...metadata });
  }

  async #begin(): Promise<void> {
    const { view, work, writer } = this.#context;
    if (view.aggregate?.queued === true) writer.add({ kind: 'queued' });
    const [known] = view.calls;
    if (known !== undefined) {
      if (view.ended(known) === undefined) await this.#call(known, view.agentOf(known));
      return;
    }
    const id = continuingCallId(work.turn, 0);
    const [waiting] = view.waiting;
    if (waiting !== undefined) {
      await this.#call(id, waiting.agent, waiting.resume);
      return;
    }
    const agent = await this.#choose();
    if (agent !== undefined) await this.#call(id, agent);
  }

  async #choose(): Promise<string | undefined> {
    const { planner, work, agents, history, signal, writer } = this.#context;
    const { message, metadata = {} } = work;
    try {
      const plan = await planner.plan({ message, metadata, history: await history(work.turn), agents: await agents(), signal });
      return plan.agents[0];
    } catch (error) {
      if (!(error instanceof NoAgentFits)) throw error;
      const metadata = { reason: error.message, retryable: error.retryable, ...choiceOf(error) };
      writer.add({ kind: 'status', state: 'TASK_STATE_FAILED', metadata });
      return undefined;
    }
  }

  async #call(id: string, agent: string, resume?: unknown): Promise<void> {
    const { writer, delegate, profile } = this.#context;
    delegate({ call: id, agent, presentation: agentPresentation(profile), ...(resume !== undefined && { resume }) });
    await writer.flush();
  }
}
