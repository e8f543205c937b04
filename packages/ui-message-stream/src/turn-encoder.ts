import { approvalResponseOf, isInProgress, type Task } from '@hopline/a2a';
import { statusTimeOf, type ViewChange, ViewFold, type ViewItem } from '@hopline/task-view';
import { answerIdOf, ChunkEncoder, type ShownApproval } from './encode-chunks.ts';
import type { UiChunk } from './ui-chunk.ts';

/** The turn of a task that a stream shows. */
export type ShownTurn = {
  /** Id of the assistant message. */
  messageId: string;
  /** The stream continues a task with a message. */
  continues?: boolean;
  /**
   * For a stream from the beginning of the task: time of the newest status when the stream was requested. What precedes this status is held, and
   * sent at once unless a later turn follows.
   */
  statusAt?: string | undefined;
  /** Decisions about calls of the message, oldest first. Each began a turn that continues the message. */
  approvals?: readonly ShownApproval[];
};

/** Encodes the stream of a task as the assistant message of one turn, or of the turns around approvals. */
export class TurnEncoder {
  readonly #fold: ViewFold;
  readonly #encoder: ChunkEncoder;
  readonly #statusAt: string | undefined;
  readonly #approvals: readonly ShownApproval[];
  /** Changes before the newest status, by turns; undefined once they are sent. */
  #held: ViewChange[][] | undefined;

  constructor({ messageId, continues = false, statusAt, approvals = [] }: ShownTurn) {
    this.#fold = new ViewFold({ continues });
    this.#encoder = new ChunkEncoder(messageId);
    this.#statusAt = statusAt;
    this.#approvals = approvals;
    this.#held = statusAt === undefined ? undefined : [[]];
    if (statusAt === undefined) this.#encoder.expect(approvals);
  }

  /** The turn has ended. No chunk follows. */
  get ended(): boolean {
    return this.#encoder.ended;
  }

  get taskId(): string | undefined {
    return this.#fold.view.taskId;
  }

  add(item: ViewItem): UiChunk[] {
    const changes = this.#fold.add(item);
    const held = this.#held;
    if (held === undefined) return this.#encoder.encode(changes, this.#fold);
    for (const change of changes) this.#hold(held, change);
    // The task after a gap has all turns in one.
    const isCurrent = statusTimeOf(item) === this.#statusAt || (this.#fold.view.gaps > 0 && 'event' in item);
    if (!isCurrent) return [];
    this.#held = undefined;
    const later = held.length - 1;
    this.#encoder.expect(this.#approvals.slice(this.#approvals.length - later));
    // Only the last turn ends the message.
    const shown = held.flatMap((turn, index) =>
      index === later ? turn : turn.filter(change => change.kind !== 'state' || isInProgress(change.state)),
    );
    return this.#encoder.encode(shown, this.#fold);
  }

  #hold(held: ViewChange[][], change: ViewChange): void {
    if (change.kind !== 'turn') {
      join(held.at(-1)!, change);
      return;
    }
    held.push([change]);
    if (held.length <= this.#approvals.length + 1) return;
    held.shift();
    if (held[0]![0]?.kind === 'turn') held[0]!.shift();
  }
}

function join(held: ViewChange[], change: ViewChange): void {
  const last = held.at(-1);
  if (change.kind === 'text' && last?.kind === 'text' && last.text.id === change.text.id)
    held[held.length - 1] = { ...last, delta: last.delta + change.delta };
  else held.push(change);
}

/** Tasks of a chat among which the one to resume is looked for, newest status first. */
export const CHAT_TASKS_MAX = 20;
/**
 * A turn that ended no longer ago than this is streamed once more. A page whose connection broke does not know that the turn has ended. A
 * page that already has the message is not changed by a message with the same id.
 */
export const ENDED_TURN_MS_MAX = 600_000;

/**
 * The turn that a page resumes, among the newest tasks of its chat: the running one, or one that has just ended. Undefined if there is
 * none.
 */
export function turnToResume(tasks: readonly Task[], nowMs: number): { task: Task; turn: ShownTurn } | undefined {
  const [newest] = tasks;
  const running = tasks.find(({ status }) => isInProgress(status.state));
  const task = running ?? (newest !== undefined && hasJustEnded(newest, nowMs) ? newest : undefined);
  if (task === undefined) return undefined;
  const approvals: ShownApproval[] = [];
  let answered = task.id;
  for (const message of (task.history ?? []).toReversed()) {
    if (message.role !== 'ROLE_USER') continue;
    answered = message.messageId;
    const approval = approvalResponseOf(message);
    if (approval === undefined) break;
    approvals.unshift(approval);
  }
  const turn = { messageId: answerIdOf(answered), statusAt: task.status.timestamp };
  return { task, turn: approvals.length === 0 ? turn : { ...turn, approvals } };
}

/** Whether the turn has ended so recently that its page may have missed the end. A canceled turn was stopped by its user, who knows. */
function hasJustEnded({ status: { state, timestamp = '' } }: Task, nowMs: number): boolean {
  return state !== 'TASK_STATE_CANCELED' && nowMs - Date.parse(timestamp) <= ENDED_TURN_MS_MAX;
}
