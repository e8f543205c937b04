import type { StreamResponse, Task } from '@hopline/a2a';
import { parseCursor } from '@hopline/events';
import type { Frame } from '../task-promises.ts';
import type { ViewerLog } from '../viewer-log.ts';
import type { Operation, Request } from './history.ts';

type Frames = Extract<Operation<Task>, { kind: 'stream' }>['frames'][number][];
type StreamRequest =
  | { kind: 'send'; messageId: string; contextId: string }
  | { kind: 'subscribe'; taskId: string; cursor: string | undefined };

/** Collects the frames of one streaming response, and turns them into operations of the history. */
export class StreamRecord {
  readonly #frames: Frames = [];
  /** The task as the first frame shows it. */
  #first: Task | undefined;
  #showsStateOnly = false;

  /** `viewer` has the frame already. */
  add(frame: Frame, viewer: ViewerLog, at: number): void {
    if (frame.kind === 'gap') return;
    const { generation, kind } = frame;
    if (this.#frames.length === 0) {
      this.#first = taskOf(frame) ?? stateOf(frame);
      this.#showsStateOnly = viewer.dialect === 'legacy';
    }
    const state = viewer.stateGeneration === generation ? viewer.state : undefined;
    this.#frames.push({ at, generation, state, isSnapshot: kind === 'snapshot' });
  }

  /** A message that is sent in a streaming request is acknowledged by the first frame. `end`: the code of the error that ended the stream. */
  operations(request: Request, what: StreamRequest, end: string): Operation<Task>[] {
    const frames = this.#frames;
    const refusal = frames.length === 0 ? streamRefusalOf(end) : undefined;
    if (what.kind === 'subscribe') {
      const { taskId, cursor } = what;
      const after = cursor === undefined ? undefined : parseCursor(cursor)?.generation;
      return [{ ...request, kind: 'stream', taskId, after, frames, refusal }];
    }
    const send = { kind: 'send', messageId: what.messageId, contextId: what.contextId, taskId: undefined } as const;
    const forms = {
      ...(this.#showsStateOnly && { showsStateOnly: true }),
      ...(frames[0]?.isSnapshot === false && { beginsWithEvent: true }),
    };
    const [sent, ...rest] = frames;
    const task = this.#first;
    if (sent === undefined || task === undefined)
      return [{ ...request, endedAt: Number.POSITIVE_INFINITY, ...send, result: undefined }];
    const stream = { kind: 'stream', taskId: task.id, after: sent.generation, frames: rest, refusal } as const;
    return [
      { ...request, endedAt: sent.at, ...send, result: { task }, ...forms },
      { ...request, begunAt: sent.at, ...stream },
    ];
  }
}

function taskOf(frame: Exclude<Frame, { kind: 'gap' }>): Task | undefined {
  if (frame.kind === 'snapshot') return frame.task;
  const event = JSON.parse(frame.json) as StreamResponse;
  return 'task' in event ? event.task : undefined;
}

/** The first event of a new task in the form of April 2025: its state. */
function stateOf(frame: Exclude<Frame, { kind: 'gap' }>): Task | undefined {
  const event = frame.kind === 'event' ? (JSON.parse(frame.json) as StreamResponse) : undefined;
  if (event === undefined || !('statusUpdate' in event)) return undefined;
  const { taskId: id, contextId, status } = event.statusUpdate;
  return { id, contextId, status };
}

/** Reads the state of a task from the code that refused a send or a cancel. Undefined if the code does not depend on it. */
export function refusalOf(code: string): 'ended' | 'not found' | undefined {
  if (code === 'UNSUPPORTED_OPERATION' || code === 'TASK_NOT_CANCELABLE') return 'ended';
  return code === 'TASK_NOT_FOUND' ? 'not found' : undefined;
}

function streamRefusalOf(code: string): 'cursor' | 'not found' | 'ended' | undefined {
  return code === 'INVALID_PARAMS' ? 'cursor' : refusalOf(code);
}
