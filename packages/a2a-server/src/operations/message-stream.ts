import { A2AError } from '@hopline/a2a';
import type { Fact } from '@hopline/events';
import type { A2AServer, OperationContext, OperationResult } from '../a2a-server.ts';
import { waitAround } from '../feed/wait-for.ts';
import { openViewer } from '../stream/open-viewer.ts';
import type { Viewer } from '../stream/viewer.ts';
import type { Admission } from './admit-message.ts';
import { admitRequest } from './admit-request.ts';
import { notTaken } from './settle.ts';
import { beginTurn, takes } from './turn.ts';

/**
 * SendStreamingMessage, message/stream: one task frame, then the events of the message's turn, until the task ends or asks (S0-2, S0-3, S0-37).
 * What is wrong with the request is a JSON answer; what goes wrong later is a frame.
 */
export async function messageStream(door: A2AServer, ask: OperationContext): Promise<OperationResult> {
  const request = ask.dialect.decodeSend(ask.params);
  const leave = door.streams.enter();
  let admission: Admission;
  try {
    admission = await admitRequest(door, ask, request);
  } catch (thrown) {
    leave();
    throw thrown;
  }
  const releases = [leave];
  if ('lease' in admission) releases.push(admission.lease.release);
  const viewer = openViewer(door, ask, true, () => {
    for (const release of releases.splice(0)) release();
  });
  try {
    await streamTurn(door, ask, admission, viewer, release => releases.push(release));
  } catch (thrown) {
    viewer.fail(A2AError.from(thrown));
    throw thrown;
  }
  return 'streamed';
}

async function streamTurn(
  door: A2AServer,
  ask: OperationContext,
  admission: Admission,
  viewer: Viewer,
  onClose: (release: () => void) => void,
): Promise<void> {
  const { lease, start, say } = await beginTurn(door, ask, admission);
  // The client may have gone while the feed was opened: the message is said all the same, because it asked for it (S4-25).
  if (ask.leaving.aborted) lease.release();
  else onClose(lease.release);
  const { feed } = lease;
  if (start === 'now') {
    viewer.followFromSnapshot(feed);
    return;
  }
  if (start === 'beginning') viewer.follow(feed, { generation: 0, seq: 0 });
  if (feed.view !== undefined && start === 'beginning') return say();
  const isIn = (fact: Fact) => {
    if (!takes(fact, admission)) return false;
    if (start === 'message') viewer.followFromThisRecord(feed);
    return true;
  };
  const end = await waitAround(say, feed, isIn, { timeoutMs: door.limits.firstFactMsMax, signal: ask.leaving });
  if (end === 'timeout') throw notTaken(admission.taskId);
}
