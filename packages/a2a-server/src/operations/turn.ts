import { A2AError, isInProgress, isTerminal } from '@hopline/a2a';
import type { A2AServer, OperationContext } from '../a2a-server.ts';
import type { TaskChange } from '../feed/feed-listener.ts';
import type { ReadView, TaskFeed, ViewAt } from '../feed/task-feed.ts';
import type { FeedLease } from '../feed/task-feeds.ts';
import { waitAround, waitFor } from '../feed/wait-for.ts';
import { fromLog } from '../log-faults.ts';
import { appendFirst, appendMessage } from './append-message.ts';
import { hasFacts } from './open-tasks.ts';
import { askedTurnOf, hasMessage, messageLike, otherGeneration, type ResolvedMessage, taskEnded } from './resolve-message.ts';

/**
 * The turn that one message starts in its task. `resolve-message.ts` decides what the message is; this table states what
 * follows.
 *
 * | message      | its task                          | appended              | start                               |
 * | ------------ | --------------------------------- | --------------------- | ----------------------------------- |
 * | first        | is new                            | yes                   | beginning                           |
 * | continuation | exists and has not ended          | yes                   | message                             |
 * | duplicate    | has the message                   | no                    | beginning if its first, else stored |
 * | retry        | has no facts yet                  | yes, stored once (id) | beginning                           |
 * |              | has the message                   | no                    | as a duplicate                      |
 * |              | lacks the message, has not ended  | yes                   | message: claimed, but never stored  |
 * |              | lacks the message, has ended      | UNSUPPORTED_OPERATION |                                     |
 *
 * | start     | stream (message-stream.ts)                      | non-blocking send          | blocking send       |
 * | --------- | ----------------------------------------------- | -------------------------- | ------------------- |
 * | beginning | every event from the first one                  | the task once it works (*) | the end of the turn |
 * | message   | the task once it has the message, then events   | the task once it has it    | the end of the turn |
 * | stored    | as for message, from the log                    | the task as it is          | the end of the turn |
 *
 * (*) or after `workingWaitMsMax`, as submitted.
 * A turn ends when its task ends or is interrupted. The feed is open before the message is appended, so no event of the turn
 * is missed.
 */
export type Turn = {
  lease: FeedLease;
  start: 'beginning' | 'message' | 'stored';
  /** Stores the message, or does nothing if the task already has it. Call it after listening to the feed. */
  append(): Promise<void>;
};

export async function beginTurn(server: A2AServer, context: OperationContext, resolved: ResolvedMessage): Promise<Turn> {
  const { taskId } = resolved;
  switch (resolved.kind) {
    case 'first': {
      const lease = await server.feeds.acquire(taskId, 'new', context.caller);
      return { lease, start: 'beginning', append: () => appendFirst(server, context, resolved) };
    }
    case 'continuation':
      return { lease: resolved.lease, start: 'message', append: () => appendMessage(server, context, resolved) };
    case 'duplicate':
      return duplicateTurn(resolved.lease, resolved);
    case 'retry': {
      const lease = await server.feeds.acquire(taskId, 'awaited', context.caller);
      try {
        if (lease.feed.aggregate === undefined) await refuseExpired(server, taskId);
        return await retriedTurn(server, context, lease, resolved);
      } catch (thrown) {
        lease.release();
        throw thrown;
      }
    }
  }
}

/** Throws TASK_NOT_FOUND for a retry whose task's facts have expired, because it must not start the task again. */
async function refuseExpired({ log }: A2AServer, taskId: string): Promise<void> {
  try {
    const entry = await log.tasks.get(taskId);
    if (entry === undefined || !hasFacts(entry.value) || (await log.facts.last(taskId)) !== undefined) return;
  } catch (thrown) {
    throw fromLog(thrown, taskId);
  }
  throw new A2AError('TASK_NOT_FOUND', { taskId });
}

async function retriedTurn(
  server: A2AServer,
  context: OperationContext,
  lease: FeedLease,
  resolved: ResolvedMessage,
): Promise<Turn> {
  const { feed } = lease;
  if (feed.aggregate === undefined) return { lease, start: 'beginning', append: () => appendFirst(server, context, resolved) };
  if (await hasMessage(feed, resolved.message)) return duplicateTurn(lease, resolved);
  if (feed.ended) throw taskEnded(resolved.taskId);
  return { lease, start: 'message', append: () => appendMessage(server, context, resolved) };
}

function duplicateTurn(lease: FeedLease, { message }: ResolvedMessage): Turn {
  const isFirst = lease.feed.aggregate?.messageIds[0] === message.messageId;
  return { lease, start: isFirst ? 'beginning' : 'stored', append: async () => {} };
}

type AppendCallbacks = {
  /** Runs while the feed folds the record that contains the message. */
  onAccepted?: (() => void) | undefined;
  /** The id of the message, or of an equal answer, that the task already has. */
  onJoined?: ((messageId: string) => void) | undefined;
};

/**
 * Appends the message of a turn. Resolves with `met` once the task has it, else with `timeout` after `firstFactMsMax` or
 * `aborted`. Throws UNSUPPORTED_OPERATION when the task ends first.
 *
 * The answer to a question is appended on the condition that the question is open, so that one of two equal answers begins a turn, and the
 * other joins it. A message with different content is a further message of the running turn.
 */
export async function appendTurn(
  server: A2AServer,
  context: OperationContext,
  turn: Turn,
  resolved: ResolvedMessage,
  callbacks: AppendCallbacks = {},
): Promise<'met' | 'timeout' | 'aborted'> {
  const { feed } = turn.lease;
  try {
    return await appendOnce(server, context, turn, resolved, callbacks);
  } catch (thrown) {
    if (resolved.kind !== 'continuation' || resolved.answers === undefined || !(thrown instanceof A2AError)) throw thrown;
    const { answers, ...further } = resolved;
    const accepted = await messageLike(feed, resolved.message, answers);
    if (accepted !== undefined) {
      callbacks.onJoined?.(accepted.messageId);
      return 'met';
    }
    if (thrown.code !== 'TASK_GENERATION_MISMATCH') throw thrown;
    if (feed.ended) throw taskEnded(resolved.taskId);
    const append = () => appendMessage(server, context, further);
    return await appendOnce(server, context, { ...turn, append }, further, callbacks);
  }
}

async function appendOnce(
  server: A2AServer,
  context: OperationContext,
  turn: Turn,
  resolved: ResolvedMessage,
  { onAccepted = () => {}, onJoined = () => {} }: AppendCallbacks,
): Promise<'met' | 'timeout' | 'aborted'> {
  const { feed } = turn.lease;
  const { messageId } = resolved.message;
  if (turn.start !== 'message' && feed.aggregate !== undefined) {
    await turn.append();
    return 'met';
  }
  const accepts = (fact: TaskChange) => {
    if (!acceptsMessage(fact, resolved)) return false;
    onAccepted();
    return true;
  };
  const refusal = () => refusalOf(feed, resolved);
  const refused = refusal();
  if (refused !== undefined) throw refused;
  // Facts that were folded since the message was resolved do not arrive again, and among them may be the same message from another request,
  // or the end of the task.
  if (feed.aggregate?.messageIds.includes(messageId)) {
    onJoined(messageId);
    return 'met';
  }
  if (feed.ended) throw taskEnded(resolved.taskId);
  return waitAround(turn.append, feed, accepts, { timeoutMs: server.limits.firstFactMsMax, signal: context.signal, refusal });
}

/**
 * The relay stores nothing for a message that it rejects. But generations and turns only grow: once the task is beyond the one in the
 * condition and lacks the message, no relay can accept the message any more.
 */
function refusalOf(feed: TaskFeed, resolved: ResolvedMessage): A2AError | undefined {
  const { message, ifGeneration } = resolved;
  const askedTurn = askedTurnOf(resolved);
  const isBeyond =
    ifGeneration !== undefined
      ? feed.generation > ifGeneration
      : askedTurn !== undefined && (feed.aggregate?.turn ?? 0) > askedTurn;
  if (!isBeyond || feed.aggregate?.messageIds.includes(message.messageId) === true) return undefined;
  return otherGeneration(feed, ifGeneration);
}

/** Whether a fact adds the message to the task. Throws UNSUPPORTED_OPERATION when the task ends instead. */
function acceptsMessage(fact: TaskChange, { message, taskId, ifGeneration }: ResolvedMessage): boolean {
  if (fact.kind === 'task.created') return true;
  if (fact.kind === 'message.received') return fact.message.messageId === message.messageId;
  const ends = fact.kind === 'status.changed' && isTerminal(fact.event.statusUpdate.status.state);
  // If there is a condition, the end of the task changes the generation, and the client gets the error for that instead.
  if (ends && ifGeneration === undefined) throw taskEnded(taskId);
  return false;
}

/**
 * Appends the message and returns the task as soon as it has the message, because facts may follow before the append is acknowledged.
 * Throws UNAVAILABLE, naming the task, when no relay accepts it in time.
 */
export async function acceptTurn(
  server: A2AServer,
  context: OperationContext,
  turn: Turn,
  resolved: ResolvedMessage,
): Promise<ReadView> {
  const { feed } = turn.lease;
  let reading: Promise<ViewAt> | undefined;
  const onAccepted = () => {
    const atEndOfRecord = {
      onRecord: () => {
        feed.unlisten(atEndOfRecord);
        reading = feed.readView();
        // It is awaited below, unless the append fails.
        reading.catch(() => {});
      },
    };
    feed.listen(atEndOfRecord);
  };
  await requireAccepted(server, context, turn, resolved, onAccepted);
  return (await (reading ?? feed.readView())).view;
}

async function requireAccepted(
  server: A2AServer,
  context: OperationContext,
  turn: Turn,
  resolved: ResolvedMessage,
  onAccepted?: () => void,
): Promise<void> {
  if ((await appendTurn(server, context, turn, resolved, { onAccepted })) !== 'met') throw notAccepted(turn.lease.feed.taskId);
}

/**
 * Appends the message for a client that does not wait for the end of the turn. A supervisor takes a task within milliseconds, so the client
 * usually reads `working`. If none takes it within `workingWaitMsMax`, the client reads `submitted`.
 */
export async function startTurn(
  server: A2AServer,
  context: OperationContext,
  turn: Turn,
  resolved: ResolvedMessage,
): Promise<ReadView> {
  const { feed } = turn.lease;
  await requireAccepted(server, context, turn, resolved);
  if (feed.state === 'TASK_STATE_SUBMITTED') {
    const isTaken = ({ kind }: TaskChange) => kind === 'status.changed';
    await waitFor(feed, isTaken, { timeoutMs: server.limits.workingWaitMsMax, signal: context.signal });
  }
  return (await feed.readView()).view;
}

/**
 * Appends the message and waits for the end of its turn. After `blockingWaitMsMax`, or when the process drains, it returns the task as it
 * is, because, unlike an error, that gives the client the task's id.
 */
export async function completeTurn(
  server: A2AServer,
  context: OperationContext,
  turn: Turn,
  resolved: ResolvedMessage,
): Promise<ReadView> {
  const { feed } = turn.lease;
  await requireAccepted(server, context, turn, resolved);
  await waitForTurnEnd(server, context, feed);
  return (await feed.readView()).view;
}

async function waitForTurnEnd(server: A2AServer, context: OperationContext, feed: TaskFeed): Promise<void> {
  // Checked again now: the turn may have ended after the message was accepted.
  if (feed.state === undefined || !isInProgress(feed.state)) return;
  const ends = (fact: TaskChange) => fact.kind === 'status.changed' && !isInProgress(fact.event.statusUpdate.status.state);
  await waitFor(feed, ends, { timeoutMs: server.limits.blockingWaitMsMax, signal: context.signal });
}

export function notAccepted(taskId: string): A2AError {
  return new A2AError('UNAVAILABLE', { detail: 'the message is stored, but no relay has processed it yet', taskId });
}
