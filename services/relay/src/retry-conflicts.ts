import { LogConflict } from '@hopline/log';

/** Tries of one write. A conflict is a write of another relay. */
const WRITE_TRIES_MAX = 4;

/** Repeats a read and a write by its revision while other relays write in between. */
export async function retryConflicts<T>(write: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await write();
    } catch (error) {
      if (!(error instanceof LogConflict) || tries >= WRITE_TRIES_MAX) throw error;
    }
  }
}
