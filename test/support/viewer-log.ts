import { type DialectName, isTerminal, type StreamResponse, type TaskState } from '@hopline/a2a';
import type { Frame } from './task-promises.ts';

/** One client's view of a task over all its connections. */
export class ViewerLog {
  readonly name: string;
  readonly dialect: DialectName;
  readonly frames: Frame[] = [];
  state: TaskState | undefined;
  /** Generation of the frame that had the newest state. */
  stateGeneration = 0;
  /** It saw the end, or the server has nothing for it. */
  isDone = false;
  onFrame: (frame: Frame) => void = () => {};

  constructor(name: string, dialect: DialectName = '1.0') {
    this.name = name;
    this.dialect = dialect;
  }

  get cursor(): string | undefined {
    return this.frames.findLast(frame => frame.kind !== 'gap')?.cursor;
  }

  add(frame: Frame): void {
    this.frames.push(frame);
    this.onFrame(frame);
    const state = stateOf(frame);
    if (state !== undefined && frame.kind !== 'gap') {
      this.state = state;
      this.stateGeneration = frame.generation;
    }
    if (this.state !== undefined && isTerminal(this.state)) this.isDone = true;
  }
}

function stateOf(frame: Frame): TaskState | undefined {
  if (frame.kind === 'gap') return undefined;
  if (frame.kind === 'snapshot') return frame.task.status.state;
  const event = JSON.parse(frame.json) as StreamResponse;
  if ('statusUpdate' in event) return event.statusUpdate.status.state;
  return 'task' in event ? event.task.status.state : undefined;
}

export function taskIdOf(frame: Exclude<Frame, { kind: 'gap' }>): string {
  if (frame.kind === 'snapshot') return frame.task.id;
  const event = JSON.parse(frame.json) as StreamResponse;
  if ('task' in event) return event.task.id;
  return 'statusUpdate' in event ? event.statusUpdate.taskId : 'artifactUpdate' in event ? event.artifactUpdate.taskId : '';
}
