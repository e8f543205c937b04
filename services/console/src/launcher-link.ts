import type { EventEmitter } from 'node:events';
import { A2AError } from '@hopline/a2a';
import { isKillAnswer, isLauncherHello, type KillRequest } from '@hopline/local-cluster';

/** How long the launcher may take to end a process. */
const ANSWER_MS_MAX = 10_000;

/** The IPC channel of a process. `send` is absent if nothing is at its other end. */
type LauncherChannel = Pick<EventEmitter, 'on'> & {
  send?: ((message: KillRequest, done: (error: Error | null) => void) => unknown) | undefined;
};

/** The launcher that started this console. If something else started it, there is no launcher, and nothing can be killed. */
export class LauncherLink {
  readonly #channel: LauncherChannel;
  readonly #waiting = new Map<number, PromiseWithResolvers<string | undefined>>();
  #token: string | undefined;
  #lastId = 0;

  constructor(channel: LauncherChannel) {
    this.#channel = channel;
    if (channel.send === undefined) return;
    channel.on('message', (message: unknown) => {
      if (isLauncherHello(message)) this.#token = message.token;
      else if (isKillAnswer(message)) this.#waiting.get(message.id)?.resolve(message.fault);
    });
  }

  /** The page must repeat it with each request. Undefined without a launcher. */
  get token(): string | undefined {
    return this.#token;
  }

  /** Kills a process of the cluster. The launcher checks the token, and its refusals become INVALID_PARAMS. */
  async kill(instance: string, token: string): Promise<void> {
    this.#lastId += 1;
    const id = this.#lastId;
    const answer = Promise.withResolvers<string | undefined>();
    const late = setTimeout(
      () => answer.reject(new A2AError('UNAVAILABLE', { detail: 'the launcher does not answer' })),
      ANSWER_MS_MAX,
    );
    this.#waiting.set(id, answer);
    try {
      this.#channel.send!(
        { id, token, kill: instance },
        error => error && answer.reject(new A2AError('UNAVAILABLE', { cause: error })),
      );
      const fault = await answer.promise;
      if (fault !== undefined) throw new A2AError('INVALID_PARAMS', { detail: fault });
    } finally {
      clearTimeout(late);
      this.#waiting.delete(id);
    }
  }
}
