import {
  type ApprovalRequest,
  approvalRequestOf,
  failureReason,
  isTerminal,
  type TaskState,
  type TaskStatus,
} from '@hopline/a2a';
import type { StreamItem } from '@hopline/client';
import type { Conversation } from '../command/conversations.ts';
import { EXIT, type ExitCode, exitCodeOf } from '../command/exit-code.ts';

/** The task, cursor and state that a stream has reached so far, and the exit code that follows from them. */
export class StreamOutcome {
  taskId: string | undefined;
  contextId: string | undefined;
  cursor: string | undefined;
  state: TaskState | undefined;
  /** The call that the agent asks to approve. */
  approval: ApprovalRequest | undefined;
  #hasMessage = false;
  /** An agent threw. Its error may contain content, so clients see none of it. */
  hasHiddenReason = false;
  /** The server asks the client to choose another agent. */
  #isAgentRefused = false;

  constructor(taskId?: string, cursor?: string) {
    this.taskId = taskId;
    this.cursor = cursor;
  }

  record(item: StreamItem): void {
    if ('gap' in item) return;
    const { cursor, event } = item;
    this.cursor = cursor ?? this.cursor;
    if ('message' in event) {
      this.#hasMessage = true;
      this.contextId = event.message.contextId ?? this.contextId;
    } else if ('task' in event) {
      this.taskId = event.task.id;
      this.contextId = event.task.contextId;
      this.#status(event.task.status);
    } else {
      const { taskId, contextId } = 'statusUpdate' in event ? event.statusUpdate : event.artifactUpdate;
      this.taskId ??= taskId;
      this.contextId ??= contextId;
      if ('statusUpdate' in event) {
        const { status, metadata } = event.statusUpdate;
        this.#status(status);
        this.hasHiddenReason =
          status.state === 'TASK_STATE_FAILED' && /\bthe agent failed$/.test(failureReason(status, metadata));
        this.#isAgentRefused = metadata?.choose !== undefined;
      }
    }
  }

  #status({ state, message }: TaskStatus): void {
    this.state = state;
    this.approval = state === 'TASK_STATE_INPUT_REQUIRED' ? approvalRequestOf(message) : undefined;
  }

  /** The conversation for `--continue`; undefined when the stream did not name one. */
  conversation(agent: string | undefined): Conversation | undefined {
    if (!this.contextId) return undefined;
    const waits = this.state === 'TASK_STATE_INPUT_REQUIRED' && this.taskId !== undefined;
    const named = agent !== undefined && !this.#isAgentRefused;
    return { contextId: this.contextId, ...(named && { agent }), ...(waits && { taskId: this.taskId! }) };
  }

  get ended(): boolean {
    return this.#hasMessage || (this.state !== undefined && isTerminal(this.state));
  }

  get exitCode(): ExitCode {
    return this.#hasMessage || this.state === undefined ? EXIT.ok : exitCodeOf(this.state);
  }
}
