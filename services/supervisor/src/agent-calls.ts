import type { Message } from '@hopline/a2a';
import type { CallEnded } from '@hopline/events';
import { answerHeader, callEndNotice, callStartNotice } from './notices.ts';
import type { TurnContext } from './turn-runner.ts';

export type CallMore = {
  /** What the agent left when it asked for input. */
  resume?: unknown;
  /** The agent's own request; absent: the client's message. */
  message?: Message;
};

/** Calls to agents in profile `caipe`: one start notice and one end notice each, whichever supervisor says them. */
export class AgentCalls {
  readonly #context: TurnContext;
  readonly #noticed = new Set<string>();

  constructor(context: TurnContext) {
    this.#context = context;
  }

  /** Says that the turn is worked on. Who takes over must not hide that an agent waits for credentials. */
  begin(): void {
    const { writer, view } = this.#context;
    if (!view.calls.some(call => view.needsCredentials(call))) writer.add({ kind: 'status', state: 'TASK_STATE_WORKING' });
  }

  /** Begins a call, or queues again one that a supervisor before this one began: the same call is queued once. */
  async start(call: string, agent: string, { resume, message }: CallMore = {}): Promise<void> {
    const { writer, delegate, displayName, view } = this.#context;
    if (!view.calls.includes(call)) writer.add({ kind: 'call', call, agent });
    const lane = this.#lane(call, 'start');
    if (!view.isShown(lane)) writer.add(callStartNotice(lane, call, agent));
    // Order rule: the call stands in the log before anybody works on it, so that its end finds it.
    await writer.flush();
    const more = { ...(resume !== undefined && { resume }), ...(message && { message }) };
    await delegate({ id: call, agent, answer: answerHeader(displayName, agent, call), ...more });
  }

  noticeEnd(call: string, { agent, state }: CallEnded): void {
    const lane = this.#lane(call, 'end');
    if (this.#context.view.isShown(lane) || this.#noticed.has(lane)) return;
    this.#noticed.add(lane);
    this.#context.writer.add(callEndNotice(lane, call, agent, state !== 'TASK_STATE_COMPLETED'));
  }

  #lane(call: string, phase: 'start' | 'end'): string {
    return `${this.#context.work.turn}/${call}/${phase}`;
  }
}
