import { closedWord } from '@hopline/telemetry';

/** Bound of one readiness check; milliseconds. */
export const READY_CHECK_MS_MAX = 1_000;

export interface ReadyCheck {
  readonly name: string;
  /** Resolves if the dependency is usable, else rejects. Aborted after READY_CHECK_MS_MAX. */
  check(signal: AbortSignal): Promise<unknown>;
}

export interface Readiness {
  readonly ready: boolean;
  readonly draining: boolean;
  /**
   * `reason`: `starting`, `timeout`, or the name of the error. Never its message, which can contain an address with a password.
   */
  readonly notReady: readonly { readonly check: string; readonly reason: string }[];
}

/** Readiness for traffic: false until `started`, false again after `drain`. */
export interface Health {
  started(checks: readonly ReadyCheck[]): void;
  drain(): void;
  readiness(): Promise<Readiness>;
}

export function createHealth(): Health {
  let checks: (() => Promise<string | undefined>)[] | undefined;
  let names: string[] = [];
  let draining = false;
  return {
    started: given => {
      checks = given.map(bounded);
      names = given.map(({ name }) => name);
    },
    drain: () => {
      draining = true;
    },
    readiness: async () => {
      if (draining) return { ready: false, draining, notReady: [] };
      if (checks === undefined) return { ready: false, draining, notReady: [{ check: 'start', reason: 'starting' }] };
      const reasons = await Promise.all(checks.map(check => check()));
      const notReady = reasons.flatMap((reason, n) => (reason === undefined ? [] : [{ check: names[n] ?? '', reason }]));
      return { ready: notReady.length === 0 && !draining, draining, notReady };
    },
  };
}

/** Runs a check once at a time: probes that arrive during a hanging check share it. */
function bounded({ check }: ReadyCheck): () => Promise<string | undefined> {
  let running: Promise<string | undefined> | undefined;
  return () => {
    if (running !== undefined) return withTimeout(running);
    const signal = AbortSignal.timeout(READY_CHECK_MS_MAX);
    running = Promise.resolve()
      .then(() => check(signal))
      .then(
        () => undefined,
        error => (signal.aborted ? 'timeout' : closedWord(error instanceof Error ? error.name : 'failed')),
      )
      .finally(() => {
        running = undefined;
      });
    return withTimeout(running);
  };
}

async function withTimeout(check: Promise<string | undefined>): Promise<string | undefined> {
  const { promise, resolve } = Promise.withResolvers<string>();
  const timer = setTimeout(resolve, READY_CHECK_MS_MAX, 'timeout');
  try {
    return await Promise.race([check, promise]);
  } finally {
    clearTimeout(timer);
  }
}
