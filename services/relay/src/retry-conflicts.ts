import { LogConflict } from '@hopline/log';

/** Number of tries of one write. A conflict means that another relay has written. */
const WRITE_TRIES_MAX = 4;

/** Repeats a read and a conditional write of its revision while other relays write in between. */
export async function retryConflicts<T>(write: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await write();
    } catch (error) {
      if (!(error instanceof LogConflict) || tries >= WRITE_TRIES_MAX) throw error;
    }
  }
}
