import type { ClusterInfo, JetStreamManager, StreamInfo } from '@nats-io/jetstream';

/** The followers of a leader that was silent for less than this have not elected another one: nats-server waits for 4 to 9 s. */
const ELECTION_MS_MIN = 4_000;
/** Shorter than the time after which `retry` repeats a read. */
const SHARED_MS = 1_000;
const NANOS_PER_MS = 1_000_000;

/**
 * Reads from the leaders of replicated streams. A deposed server answers reads from its own state until it notices, up to 20 s later, that
 * the others no longer follow it. So an answer of a server that calls itself the leader counts only if its followers have answered it so
 * recently that they cannot have elected another one.
 */
export class Leaders {
  readonly #jsm: JetStreamManager;
  readonly #replicas: number;
  /** For each stream, the time until which its leader certainly leads, in milliseconds of this process. */
  readonly #leadsUntil = new Map<string, number>();
  readonly #asking = new Map<string, { atMs: number; answer: Promise<void> }>();

  /** `replicas`: number of replicas of each stream. A leader without other replicas is never deposed. */
  constructor(jsm: JetStreamManager, replicas: number) {
    this.#jsm = jsm;
    this.#replicas = replicas;
  }

  /** The connection has ended. From now on, another server may answer. */
  disconnected(): void {
    this.#leadsUntil.clear();
  }

  /** Rejects with an error that `retry` repeats if the answer may be that of a deposed leader. */
  async read<T>(stream: string, get: () => Promise<T>): Promise<T> {
    if (this.#replicas === 1) return get();
    // Sent first, so that a server that answers the read as the leader has already answered this request.
    const asked = this.#leads(stream) ? undefined : this.#ask(stream);
    const [answer] = await Promise.all([get(), asked]);
    if (!this.#leads(stream)) throw deposed(stream);
    return answer;
  }

  /**
   * The state of a stream. Rejects like `read`: a deposed leader, and a server that has just come back, answer with the records that they
   * have, so the stream seems to have lost its end.
   */
  async info(stream: string): Promise<StreamInfo> {
    const info = await this.#jsm.streams.info(stream);
    if (this.#replicas > 1 && silentMsOf(info.cluster) >= ELECTION_MS_MIN) throw deposed(stream);
    return info;
  }

  #leads(stream: string): boolean {
    return performance.now() < (this.#leadsUntil.get(stream) ?? 0);
  }

  /** Concurrent reads of a stream share one request, until its answer is late. */
  #ask(stream: string): Promise<void> {
    const asking = this.#asking.get(stream);
    const askedAt = performance.now();
    if (asking !== undefined && askedAt - asking.atMs < SHARED_MS) return asking.answer;
    const answer = this.#jsm.streams
      .info(stream)
      .then(({ cluster }) => {
        this.#leadsUntil.set(stream, askedAt + ELECTION_MS_MIN - silentMsOf(cluster));
      })
      .finally(() => {
        if (this.#asking.get(stream)?.answer === answer) this.#asking.delete(stream);
      });
    this.#asking.set(stream, { atMs: askedAt, answer });
    return answer;
  }
}

/** How long ago enough followers for a majority have answered a leader, in milliseconds. */
function silentMsOf(cluster: ClusterInfo | undefined): number {
  const { replicas = [] } = cluster ?? {};
  const silentMs = replicas.map(({ current, active }) => (current ? active / NANOS_PER_MS : Number.POSITIVE_INFINITY));
  const needed = Math.floor((replicas.length + 1) / 2);
  return needed === 0 ? 0 : silentMs.sort((a, b) => a - b)[needed - 1]!;
}

function deposed(stream: string): Error {
  const reason = `the leader of ${stream} may have been deposed: a majority of its replicas has not answered it lately`;
  return Object.assign(new Error(reason), { name: 'TimeoutError' });
}
