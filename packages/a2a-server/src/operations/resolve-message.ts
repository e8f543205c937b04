import { A2AError, isInProgress, isTerminal, type Message, type Metadata, type NewPushConfig } from '@hopline/a2a';
import { contextIdFor } from '@hopline/context-history';
import { isTaskId } from '@hopline/events';
import { TURNS_MAX } from '@hopline/task';
import { ATTR } from '@hopline/telemetry';
import { uuidv7 } from 'uuidv7';
import type { A2AServer, OperationContext } from '../a2a-server.ts';
import type { TaskFeed } from '../feed/task-feed.ts';
import type { FeedLease } from '../feed/task-feeds.ts';
import { claimMessage, fingerprintOf, reusedMessageId } from './message-claim.ts';
import { requireQueueRoom, requireTaskRoom } from './message-room.ts';
import { storeInline } from './push-store.ts';

/** A message and the task it belongs to. The table in `turn.ts` shows what each `kind` causes. */
export type ResolvedMessage = {
  taskId: string;
  contextId: string;
  message: Message;
  metadata: Metadata | undefined;
  /** The message is accepted only while the task is at this generation. Set only for a continuation. */
  ifGeneration?: number;
} & (
  | /** It starts a task that cannot exist yet. */ { kind: 'first' }
  | /** An earlier request with the same message id has started the task, or was about to. */ { kind: 'retry' }
  | /** A further message of a task that has not ended. */ { kind: 'continuation'; lease: FeedLease; answers?: OpenQuestion }
  | /** The task has it already: nothing is appended. */ { kind: 'duplicate'; lease: FeedLease }
);

/** The question of a task that a message answers. `turn`: the turn that the answer begins. */
type OpenQuestion = { turn: number };

/**
 * Resolves a message that names no task. The first request with its message id in its context starts the task; others join
 * it.
 */
export async function resolveFirst(
  server: A2AServer,
  context: OperationContext,
  { message, metadata, push }: SentMessage,
): Promise<ResolvedMessage> {
  const taskId = uuidv7();
  const { contextId = contextIdFor(taskId) } = message;
  const resolved = { taskId, contextId, message, metadata };
  const requireRoom = () => requireTaskRoom(server, context, taskId, push);
  if (message.contextId === undefined) {
    await requireRoom();
    return { ...resolved, kind: 'first' };
  }
  const winner = await claimMessage(server.log.messageIds, { owner: context.caller, contextId }, message, taskId, requireRoom);
  return winner === taskId ? { ...resolved, kind: 'first' } : { ...resolved, kind: 'retry', taskId: winner };
}

/** A message with its push configuration, if the request has one. */
export type SentMessage = { message: Message; metadata: Metadata | undefined; push: NewPushConfig | undefined };

type ContinuingMessage = SentMessage & {
  taskId: string;
  /** The generation that the task must have. */
  ifGeneration?: number | undefined;
};

/**
 * Resolves a message to a task that must exist. The result holds a lease of the task's feed. The push configuration of a continuation is
 * stored before the message id is claimed, so that no id is claimed if either is refused.
 */
export async function resolveContinuation(
  server: A2AServer,
  context: OperationContext,
  { taskId, message, metadata, push, ifGeneration }: ContinuingMessage,
): Promise<ResolvedMessage> {
  const lease = await acquireTask(server, context, taskId);
  try {
    const aggregate = lease.feed.aggregate!;
    const { contextId } = aggregate;
    if (message.contextId !== undefined && message.contextId !== contextId) {
      throw new A2AError('INVALID_PARAMS', { detail: 'contextId (legacy: sessionId) differs from that of the task', taskId });
    }
    const resolved = { taskId, contextId, message, metadata, lease };
    if (await hasMessage(lease.feed, message)) return { ...resolved, kind: 'duplicate' };
    const repeated = ifGeneration === undefined ? await repeatedAnswer(lease.feed, message) : undefined;
    if (repeated !== undefined) return { ...resolved, message: repeated, kind: 'duplicate' };
    if (ifGeneration !== undefined && ifGeneration !== lease.feed.generation) throw otherGeneration(lease.feed, ifGeneration);
    if (isTerminal(aggregate.state)) throw taskEnded(taskId);
    if (aggregate.turn >= TURNS_MAX) {
      throw new A2AError('UNSUPPORTED_OPERATION', {
        detail: `the task already has ${TURNS_MAX} messages; start another task`,
        taskId,
      });
    }
    await requireQueueRoom(server, context, taskId);
    await storeInline(server, context, resolved, push);
    if ((await claimMessage(server.log.messageIds, { owner: context.caller, contextId }, message, taskId)) !== taskId)
      throw reusedMessageId();
    // Looked up again, because a concurrent request may have appended it while this one claimed it.
    if (await hasMessage(lease.feed, message)) return { ...resolved, kind: 'duplicate' };
    if (ifGeneration !== undefined) return { ...resolved, kind: 'continuation', ifGeneration };
    const answers = openQuestionOf(lease.feed);
    return { ...resolved, kind: 'continuation', ...(answers && { answers }) };
  } catch (thrown) {
    lease.release();
    throw thrown;
  }
}

/** The turn in which the task must be waiting for input when the relay decides; undefined if the message does not answer a question. */
export function askedTurnOf(resolved: ResolvedMessage): number | undefined {
  return 'answers' in resolved && resolved.answers !== undefined ? resolved.answers.turn - 1 : undefined;
}

function openQuestionOf({ aggregate }: TaskFeed): OpenQuestion | undefined {
  return aggregate?.state === 'TASK_STATE_INPUT_REQUIRED' ? { turn: aggregate.turn + 1 } : undefined;
}

/**
 * The message of the running turn, if it answers a question and the new message repeats it, as after a double click. A new turn would stop
 * the running one, and would be another request to its agent.
 */
async function repeatedAnswer(feed: TaskFeed, message: Message): Promise<Message | undefined> {
  const { aggregate } = feed;
  if (aggregate?.inputRequest === undefined || !isInProgress(aggregate.state)) return undefined;
  return messageLike(feed, message, { turn: aggregate.turn, isAnswer: true });
}

/** The message that began a turn, if its content is that of `message`. `isAnswer`: only if it directly follows a message of the agent. */
export async function messageLike(
  feed: TaskFeed,
  message: Message,
  { turn, isAnswer = false }: { turn: number; isAnswer?: boolean },
): Promise<Message | undefined> {
  const messageId = feed.aggregate?.messageIds[turn - 1];
  const { history = [] } = (await feed.readView()).view.task;
  const index = history.findIndex(one => one.messageId === messageId);
  const known = history[index];
  if (known === undefined || (isAnswer && history[index - 1]?.role !== 'ROLE_AGENT')) return undefined;
  return fingerprintOf(known) === fingerprintOf(message) ? known : undefined;
}

export function taskEnded(taskId: string): A2AError {
  return new A2AError('UNSUPPORTED_OPERATION', {
    detail: 'the task has ended; send the message without a task id to start another task',
    taskId,
  });
}

/** `expected` is the generation that the request names; absent if the question that the message would answer has already been answered. */
export function otherGeneration({ taskId, generation: current }: TaskFeed, expected = current): A2AError {
  const detail = `expected ${expected} but current generation is ${current}`;
  return new A2AError('TASK_GENERATION_MISMATCH', { detail, taskId, generations: { expected, current } });
}

/** Whether the task already has the message. Throws INVALID_PARAMS when another message has its id. */
export async function hasMessage(feed: TaskFeed, message: Message): Promise<boolean> {
  if (feed.aggregate?.messageIds.includes(message.messageId) !== true) return false;
  const { view } = await feed.readView();
  const known = view.task.history?.find(one => one.messageId === message.messageId);
  if (known !== undefined && fingerprintOf(known) !== fingerprintOf(message)) throw reusedMessageId();
  return true;
}

/** A lease of the feed of a task that must exist. Throws TASK_NOT_FOUND for an unknown task, and for text that cannot be a task id. */
export async function acquireTask(server: A2AServer, context: OperationContext, taskId: string): Promise<FeedLease> {
  nameTask(context, taskId);
  if (!isTaskId(taskId)) throw new A2AError('TASK_NOT_FOUND');
  const lease = await server.feeds.acquire(taskId, 'existing', context.caller);
  const { aggregate, trace } = lease.feed;
  context.hop.set({ [ATTR.genAiConversation]: aggregate?.contextId });
  if (trace !== undefined) context.hop.link(trace);
  return lease;
}

/** Sets the task on the span of the request, so that traces of viewers are found by task. Text that cannot be a task id is left out. */
export function nameTask(context: OperationContext, taskId: string, contextId?: string): void {
  if (!isTaskId(taskId)) return;
  context.taskId = taskId;
  context.hop.set({ [ATTR.a2aTask]: taskId, ...(contextId !== undefined && { [ATTR.genAiConversation]: contextId }) });
}
