import { sseFrame } from '@hopline/a2a';
import type { FrameEncoder } from '@hopline/a2a-http/front';
import type { Cursor } from '@hopline/events';
import { offsetOf, positionAfter } from './offset.ts';
import { pollCursor } from './poll-cursor.ts';
import { endsStream, messageOf } from './stream-message.ts';

/** The stream after a position as server-sent events: each message is an event `data`, followed by its offset in an event `control`. */
export function eventFrames(after: Cursor, sentCursor: string | undefined): FrameEncoder {
  let ended = false;
  const control = (position: Cursor, isUpToDate: boolean, isClosed: boolean) => {
    ended ||= isClosed;
    const streamCursor = pollCursor(sentCursor, Date.now());
    const state = {
      streamNextOffset: offsetOf(position),
      ...(!isClosed && { streamCursor }),
      ...((isUpToDate || isClosed) && { upToDate: true }),
      ...(isClosed && { streamClosed: true }),
    };
    return sseFrame({ event: 'control', data: JSON.stringify(state) });
  };
  return {
    resumes: true,
    get ended() {
      return ended;
    },
    begin: tail => (after.generation < tail.generation ? '' : control(after, true, tail.ended)),
    add: (item, isNewest) => {
      if ('gap' in item) {
        // The next request of the client is answered with 410.
        ended = true;
        return '';
      }
      const position = positionAfter(item.cursor);
      const data = `[${messageOf(item.event, position.generation)}]`;
      return sseFrame({ event: 'data', data }) + control(position, isNewest, endsStream(item.event));
    },
    // The client connects again after the last offset, and then gets the failure as a status.
    end: () => '',
    fail: () => '',
  };
}
