import { A2AError } from '@hopline/a2a';
import type { A2AServer, OperationContext, OperationResult } from '../a2a-server.ts';
import { openViewer } from '../stream/open-viewer.ts';
import type { Viewer } from '../stream/viewer.ts';
import type { ResolvedMessage } from './resolve-message.ts';
import { resolveRequest } from './resolve-request.ts';
import { appendTurn, beginTurn, notAccepted } from './turn.ts';

/**
 * SendStreamingMessage, message/stream: the task, then the events of the message's turn, until the task ends or requires input. The table
 * in `turn.ts` shows where the stream starts. An invalid request gets a JSON error; a later failure is a frame of the stream.
 */
export async function messageStream(server: A2AServer, context: OperationContext): Promise<OperationResult> {
  const request = context.dialect.decodeSend(context.params);
  server.quotas.takeMessage(context.caller);
  const releaseSlot = server.streams.acquire(context.caller, 'stream');
  let resolved: ResolvedMessage;
  try {
    resolved = await resolveRequest(server, context, request);
  } catch (thrown) {
    releaseSlot();
    throw thrown;
  }
  const releases = [releaseSlot];
  if ('lease' in resolved) releases.push(resolved.lease.release);
  // The response starts before the task has any fact, so the client gets its headers at once (S0-2).
  const { historyLength } = request;
  const viewer = openViewer(server, context, { dialect: context.dialect, isTurn: true, historyLength }, () => {
    for (const release of releases.splice(0)) release();
  });
  try {
    await streamTurn(server, context, resolved, viewer, release => releases.push(release));
  } catch (thrown) {
    viewer.fail(A2AError.from(thrown));
    throw thrown;
  }
  return 'streamed';
}

async function streamTurn(
  server: A2AServer,
  context: OperationContext,
  resolved: ResolvedMessage,
  viewer: Viewer,
  onClose: (release: () => void) => void,
): Promise<void> {
  const turn = await beginTurn(server, context, resolved);
  const { feed, release } = turn.lease;
  // The message is appended even if its client disconnected while the feed was opening.
  if (context.signal.aborted) release();
  else onClose(release);
  const { messageId } = resolved.message;
  if (turn.start === 'beginning') viewer.follow(feed, { generation: 0, seq: 0 });
  else if (turn.start === 'stored') viewer.followFromMessage(feed, messageId);
  const onAccepted = () => (turn.start === 'message' ? viewer.followFromThisRecord(feed, messageId) : undefined);
  const onJoined = (id: string) => viewer.followFromMessage(feed, id);
  if ((await appendTurn(server, context, turn, resolved, { onAccepted, onJoined })) === 'timeout')
    throw notAccepted(resolved.taskId);
}
