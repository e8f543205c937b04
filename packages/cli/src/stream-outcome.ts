import { isTerminal, type TaskState } from '@hopline/a2a';
import type { StreamItem } from '@hopline/client';
import { EXIT, type ExitCode, exitCodeOf } from './exit-code.ts';

/** What a stream has told of its task so far: where to go on, and what to tell the shell. */
export class StreamOutcome {
  taskId: string | undefined;
  cursor: string | undefined;
  state: TaskState | undefined;
  #answered = false;

  constructor(taskId?: string, cursor?: string) {
    this.taskId = taskId;
    this.cursor = cursor;
  }

  take(item: StreamItem): void {
    if ('gap' in item) return;
    const { cursor, event } = item;
    this.cursor = cursor ?? this.cursor;
    if ('message' in event) this.#answered = true;
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
    return this.#answered || (this.state !== undefined && isTerminal(this.state));
  }

  get exitCode(): ExitCode {
    return this.#answered || this.state === undefined ? EXIT.ok : exitCodeOf(this.state);
  }
}
