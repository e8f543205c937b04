import { type CheckName, closedWord, errorWord } from '@hopline/telemetry';

/** Bound of one readiness check. */
export const READY_CHECK_MS_MAX = 1_000;

export type ReadyCheck = {
  readonly name: CheckName;
  /** Resolves if the dependency is usable, else rejects. Aborted after READY_CHECK_MS_MAX. */
  check(signal: AbortSignal): Promise<unknown>;
  /** True if the process is useful without this dependency: a failure is reported as degraded, and the process stays ready. */
  readonly optional?: true;
};

export type Readiness = {
  readonly ready: boolean;
  readonly draining: boolean;
  /** `reason`: `starting`, `timeout`, or the name of the error, never its message, which can contain an address with a password. */
  readonly notReady: readonly FailedCheck[];
  /** Optional checks that fail. `reason`: also the code of a system error, such as `ECONNREFUSED`. */
  readonly degraded: readonly FailedCheck[];
};

type FailedCheck = {
  readonly check: string;
  readonly reason: string;
};

/** Readiness for traffic: false until `started`, false again after `drain`. */
export interface Health {
  started(checks: readonly ReadyCheck[]): void;
  drain(): void;
  readiness(): Promise<Readiness>;
  /** The checks and whether they failed when they last ran. */
  results(): readonly (readonly [name: CheckName, failed: boolean])[];
}

export function createHealth(): Health {
  let checks: { name: CheckName; optional: boolean; run: () => Promise<string | undefined> }[] | undefined;
  let draining = false;
  let last: readonly (readonly [CheckName, boolean])[] = [];
  return {
    started: given => {
      checks = given.map(check => ({ name: check.name, optional: check.optional === true, run: bounded(check) }));
    },
    drain: () => {
      draining = true;
    },
    readiness: async () => {
      if (draining) return { ready: false, draining, notReady: [], degraded: [] };
      if (checks === undefined)
        return { ready: false, draining, notReady: [{ check: 'start', reason: 'starting' }], degraded: [] };
      const results = await Promise.all(checks.map(async ({ name, optional, run }) => ({ name, optional, reason: await run() })));
      last = results.map(({ name, reason }) => [name, reason !== undefined]);
      const failed = (isOptional: boolean) =>
        results.flatMap(({ name, optional, reason }) =>
          reason === undefined || optional !== isOptional ? [] : [{ check: name, reason }],
        );
      const notReady = failed(false);
      return { ready: notReady.length === 0 && !draining, draining, notReady, degraded: failed(true) };
    },
    results: () => last,
  };
}

/** Runs at most one check at a time: probes that arrive during a check share its result. */
function bounded({ check, optional }: ReadyCheck): () => Promise<string | undefined> {
  let running: Promise<string | undefined> | undefined;
  return () => {
    if (running !== undefined) return withTimeout(running);
    const signal = AbortSignal.timeout(READY_CHECK_MS_MAX);
    running = Promise.resolve()
      .then(() => check(signal))
      .then(
        () => undefined,
        error => (signal.aborted ? 'timeout' : checkFailure(error, optional)),
      )
      .finally(() => {
        running = undefined;
      });
    return withTimeout(running);
  };
}

function checkFailure(error: unknown, optional: true | undefined): string {
  return optional ? errorWord(error) : closedWord(error instanceof Error ? error.name : 'failed');
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
