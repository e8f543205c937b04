import type { Answer, Ask, Door } from '../door.ts';
import { admitRequest } from './admit-request.ts';
import { withHistory } from './history.ts';
import { acceptTurn, settleTurn } from './settle.ts';
import { beginTurn } from './turn.ts';

/** SendMessage, message/send: the same flow as a stream (S1-1), answered once: when the turn is over, or at once when the client asked for that. */
export async function messageSend(door: Door, ask: Ask): Promise<Answer> {
  const request = ask.dialect.decodeSend(ask.params);
  const leave = door.streams.enter();
  try {
    const admission = await admitRequest(door, request);
    const turn = await beginTurn(door, ask, admission);
    try {
      const wait = request.blocking ? settleTurn : acceptTurn;
      const task = await wait(door, ask, turn, admission);
      return ask.dialect.encodeSendResult({ task: withHistory(task, request.historyLength) });
    } finally {
      turn.lease.release();
    }
  } finally {
    leave();
  }
}
