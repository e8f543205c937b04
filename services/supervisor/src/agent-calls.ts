import type { Message } from '@hopline/a2a';
import type { CallEnded, NoticePhase } from '@hopline/events';
import { agentPresentation, answerArtifact, callNotice, noticeStatus } from '@hopline/profiles';
import { SUPERVISOR } from '@hopline/task';
import type { ConductingContext } from './turn-runner.ts';

/** Notice of a call, by the state in which the call ended. Other states have the notice of a failed call. */
const OUTCOMES: Partial<Record<CallEnded['state'], NoticePhase>> = {
  TASK_STATE_COMPLETED: 'end',
  TASK_STATE_REJECTED: 'rejected',
};

export type CallOptions = {
  /** State that the agent stored when it asked for input. */
  resume?: unknown;
  /** The agent's own request. Absent: the client's message. */
  message?: Message;
};

/** The calls of a conducting supervisor. Each has one start notice and one end notice, even after a takeover. */
export class AgentCalls {
  readonly #context: ConductingContext;
  readonly #noticed = new Set<string>();

  constructor(context: ConductingContext) {
    this.#context = context;
  }

  /** Sets the task to working. A supervisor that takes over must not hide that an agent waits for credentials. */
  begin(): void {
    const { writer, view } = this.#context;
    if (!view.calls.some(call => view.needsCredentials(call))) writer.add({ kind: 'status', state: 'TASK_STATE_WORKING' });
  }

  /** Begins a call, or continues one that an earlier supervisor began. */
  async start(call: string, agent: string, { resume, message }: CallOptions = {}): Promise<void> {
    const { writer, delegate, displayName, view, profile } = this.#context;
    const presentation = agentPresentation(profile, answerArtifact(profile, displayName, agent, call));
    delegate({ call, agent, presentation, ...(resume !== undefined && { resume }), ...(message && { message }) });
    const lane = this.#lane(call, 'start');
    if (!view.isShown(lane)) this.#add('start', lane, call, agent);
    await writer.flush();
  }

  noticeEnd({ call, agent, state }: CallEnded): void {
    const lane = this.#lane(call, 'end');
    if (this.#context.view.isShown(lane) || this.#noticed.has(lane)) return;
    this.#noticed.add(lane);
    const phase = OUTCOMES[state] ?? 'failed';
    this.#add(phase, lane, call, agent);
  }

  #add(phase: NoticePhase, lane: string, callId: string, tool: string): void {
    const { profile, writer, view, work } = this.#context;
    const notice = callNotice(profile.calls, phase, { lane, agent: SUPERVISOR, tool, callId });
    if (profile.calls.as !== 'status') writer.add(notice);
    // A status must not hide that another agent waits for credentials.
    else if (!view.calls.some(call => view.needsCredentials(call))) writer.add(noticeStatus(notice, work.taskId));
  }

  #lane(call: string, phase: 'start' | 'end'): string {
    return `${this.#context.work.turn}/${call}/${phase}`;
  }
}
