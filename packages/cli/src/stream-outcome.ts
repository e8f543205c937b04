import { isTerminal, type TaskState } from '@hopline/a2a';
import type { StreamItem } from '@hopline/client';
import { EXIT, type ExitCode, exitCodeOf } from './exit-code.ts';

/** The task, cursor and state that a stream has reached so far, and the exit code that follows from them. */
export class StreamOutcome {
  taskId: string | undefined;
  cursor: string | undefined;
  state: TaskState | undefined;
  #hasMessage = false;

  constructor(taskId?: string, cursor?: string) {
    this.taskId = taskId;
    this.cursor = cursor;
  }

  record(item: StreamItem): void {
    if ('gap' in item) return;
    const { cursor, event } = item;
    this.cursor = cursor ?? this.cursor;
    if ('message' in event) this.#hasMessage = true;
    else if ('task' in event) {
      this.taskId = event.task.id;
      this.state = event.task.status.state;
    } else {
      const { taskId } = 'statusUpdate' in event ? event.statusUpdate : event.artifactUpdate;
      this.taskId ??= taskId;
      if ('statusUpdate' in event) this.state = event.statusUpdate.status.state;
    }
  }

  get ended(): boolean {
    return this.#hasMessage || (this.state !== undefined && isTerminal(this.state));
  }

  get exitCode(): ExitCode {
    return this.#hasMessage || this.state === undefined ? EXIT.ok : exitCodeOf(this.state);
  }
}
