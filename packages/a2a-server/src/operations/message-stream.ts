import { A2AError } from '@hopline/a2a';
import type { Fact } from '@hopline/events';
import type { A2AServer, OperationContext, OperationResult } from '../a2a-server.ts';
import { waitAround } from '../feed/wait-for.ts';
import { openViewer } from '../stream/open-viewer.ts';
import type { Viewer } from '../stream/viewer.ts';
import type { ResolvedMessage } from './resolve-message.ts';
import { resolveRequest } from './resolve-request.ts';
import { notTaken } from './settle.ts';
import { beginTurn, takes } from './turn.ts';

/**
 * SendStreamingMessage, message/stream: one task frame, then the events of the message's turn, until the task ends or asks (S0-2, S0-3, S0-37).
 * What is wrong with the request is a JSON answer; what goes wrong later is a frame.
 */
export async function messageStream(server: A2AServer, context: OperationContext): Promise<OperationResult> {
  const request = context.dialect.decodeSend(context.params);
  const leave = server.streams.enter();
  let resolved: ResolvedMessage;
  try {
    resolved = await resolveRequest(server, context, request);
  } catch (thrown) {
    leave();
    throw thrown;
  }
  const releases = [leave];
  if ('lease' in resolved) releases.push(resolved.lease.release);
  const viewer = openViewer(server, context, true, () => {
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
  const { lease, start, append } = await beginTurn(server, context, resolved);
  // The client may have gone while the feed was opened: the message is said all the same, because it asked for it (S4-25).
  if (context.leaving.aborted) lease.release();
  else onClose(lease.release);
  const { feed } = lease;
  if (start === 'now') {
    viewer.followFromSnapshot(feed);
    return;
  }
  if (start === 'beginning') viewer.follow(feed, { generation: 0, seq: 0 });
  if (feed.view !== undefined && start === 'beginning') return append();
  const isIn = (fact: Fact) => {
    if (!takes(fact, resolved)) return false;
    if (start === 'message') viewer.followFromThisRecord(feed);
    return true;
  };
  const end = await waitAround(append, feed, isIn, { timeoutMs: server.limits.firstFactMsMax, signal: context.leaving });
  if (end === 'timeout') throw notTaken(resolved.taskId);
}
