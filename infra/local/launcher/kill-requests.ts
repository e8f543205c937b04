import { randomBytes, timingSafeEqual } from 'node:crypto';
import { isKillRequest, type KillAnswer, type LauncherHello } from '@hopline/local-cluster';
import type { Cluster } from './cluster.ts';

const TOKEN_BYTES = 32;

/** Kills a process when the page of the console asks for it. The process then restarts as after any death. */
export class KillRequests {
  /** New with each start, so that a page of an earlier cluster kills nothing. */
  readonly #token = randomBytes(TOKEN_BYTES).toString('base64url');

  hello(): LauncherHello {
    return { token: this.#token };
  }

  /** The answer to a message of the process `asking`; undefined if the message is not a request to kill. */
  async answer(cluster: Pick<Cluster, 'crash'>, asking: string, message: unknown): Promise<KillAnswer | undefined> {
    if (!isKillRequest(message)) return undefined;
    const { id, token, kill } = message;
    const refuse = (fault: string): KillAnswer => ({ id, fault });
    if (!isSame(token, this.#token)) return refuse('this page belongs to an earlier start of the cluster: load it again');
    // The answer could not reach the page.
    if (kill === asking) return refuse('the console does not kill itself');
    const fault = await cluster.crash(kill);
    return fault === undefined ? { id } : refuse(fault);
  }
}

function isSame(given: string, expected: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(expected)];
  return a.length === b.length && timingSafeEqual(a, b);
}
