import { sseFrame } from '@hopline/a2a';
import type { FrameEncoder } from '@hopline/a2a-http/front';
import { type ShownTurn, TurnEncoder, type UiChunk } from '@hopline/ui-message-stream';

/** The last frame of a UI message stream. */
const DONE = sseFrame({ data: '[DONE]' });

/** The stream of a task as a UI message stream of one turn. A question ends it, although a subscription of A2A stays open. */
export function chunkFrames(shown: ShownTurn): FrameEncoder {
  const turn = new TurnEncoder(shown);
  return {
    get ended() {
      return turn.ended;
    },
    add: item => turn.add(item).map(frame).join(''),
    end: () => DONE,
    fail: ({ message }) => frame({ type: 'error', errorText: message }) + DONE,
  };
}

/** JSON has no line breaks. */
function frame(chunk: UiChunk): string {
  return `data: ${JSON.stringify(chunk)}\n\n`;
}
