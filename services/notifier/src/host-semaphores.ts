import { type Release, Semaphore } from '@hopline/log';

/** One semaphore per host, kept while a slot of it is held or awaited. */
export class HostSemaphores {
  readonly #slots: number;
  readonly #hosts = new Map<string, { semaphore: Semaphore; users: number }>();

  constructor(slots: number) {
    this.#slots = slots;
  }

  get size(): number {
    return this.#hosts.size;
  }

  async acquire(host: string, signal: AbortSignal): Promise<Release | undefined> {
    const found = this.#hosts.get(host) ?? { semaphore: new Semaphore(this.#slots), users: 0 };
    this.#hosts.set(host, found);
    found.users += 1;
    const removeUser = () => {
      found.users -= 1;
      if (found.users === 0) this.#hosts.delete(host);
    };
    const release = await found.semaphore.acquire(signal);
    if (release === undefined) {
      removeUser();
      return undefined;
    }
    let isReleased = false;
    return () => {
      if (isReleased) return;
      isReleased = true;
      release();
      removeUser();
    };
  }
}
