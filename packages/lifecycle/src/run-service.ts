import { type Logger, TELEMETRY_SHUTDOWN_MS_MAX, type Telemetry } from '@hopline/telemetry';
import closeWithGrace from 'close-with-grace';
import { type Boot, type BootOptions, bootService, type SettingsShape } from './boot-service.ts';
import type { Settings } from './config.ts';
import type { ReadyCheck } from './health.ts';
import { type ProbeServer, startProbeServer } from './probe-server.ts';
import type { ProbeOptions } from './probes.ts';
import { withinMs } from './within-ms.ts';

/** After the drain and the last flush, a process that is still there is cut; milliseconds. */
const EXIT_GRACE_MS = 500;

export interface ServiceContext<T extends SettingsShape> {
  readonly settings: Settings<T>;
  readonly instance: string;
  /** Version of the release. */
  readonly version: string;
  readonly log: Logger;
  readonly telemetry: Telemetry;
  /** Aborts when the drain begins: take no new work. Work in hand is ended in `close`. */
  readonly signal: AbortSignal;
  /** For `registerProbes`, when the service has its own HTTP server. */
  readonly probes: ProbeOptions;
}

export interface RunningService {
  /** What must work for this process to get traffic. */
  readonly checks: readonly ReadyCheck[];
  /** Ends everything in order. Called once; bounded by HOPLINE_DRAIN_MS_MAX. */
  close(): Promise<void>;
}

export interface ServiceOptions<T extends SettingsShape> extends BootOptions<T> {
  /** `own`: a probe server listens on HOPLINE_HOST:HOPLINE_PORT before `start` is called. `mounted`: `start` calls `registerProbes`. */
  readonly probes: 'own' | 'mounted';
  start(context: ServiceContext<T>): Promise<RunningService>;
}

/** One process from its first line to its exit code. */
interface Life<T extends SettingsShape> {
  readonly boot: Boot<T>;
  readonly drainBegins: AbortController;
  probeServer?: ProbeServer;
  running?: Promise<RunningService>;
}

/**
 * The life of one process: settings, log, telemetry, probes, `start`; then, on SIGTERM, SIGINT or the end of the lifeline: readiness off,
 * `signal` aborted, `close`, probes closed, spans flushed, exit code 0. An uncaught error, a failed start or a drain that takes too long
 * ends with code 1, a wrong environment with EXIT_CONFIG. A second signal ends at once.
 * After an uncaught error nothing is drained: what the process believes is not trusted any more, and the truth is in the log.
 */
export async function runService<T extends SettingsShape>(options: ServiceOptions<T>): Promise<void> {
  const life: Life<T> = { boot: await bootService(options), drainBegins: new AbortController() };
  const { base, log } = life.boot;
  let ending: Promise<void> | undefined;
  const grace = closeWithGrace(
    {
      delay: base.HOPLINE_DRAIN_MS_MAX + TELEMETRY_SHUTDOWN_MS_MAX + EXIT_GRACE_MS,
      logger: false,
      onSecondSignal: signal => log.warn({ signal }, 'second signal: ending at once'),
      onSecondError: err => log.fatal({ err }, 'error while ending'),
      onTimeout: timeout_ms => log.error({ timeout_ms }, 'could not end in time'),
    },
    async cause => {
      ending ??= end(life, cause);
      await ending;
    },
  );
  if (base.HOPLINE_STDIN_LIFELINE) holdLifeline(grace.close);
  try {
    await start(life, options);
  } catch (error) {
    // A start that is cut short by the drain may reject; the drain decides the exit code.
    if (life.drainBegins.signal.aborted) return;
    await crash(life.boot, error, 'start failed');
    process.exit(1);
  }
}

async function start<T extends SettingsShape>(life: Life<T>, options: ServiceOptions<T>): Promise<void> {
  const { settings, base, instance, version, log, telemetry, health } = life.boot;
  const startedMs = performance.now();
  const probes = { health, metricsText: telemetry.metricsText, loopLagMsMax: base.HOPLINE_LOOP_LAG_MS_MAX };
  if (options.probes === 'own') {
    life.probeServer = await startProbeServer({ ...probes, host: base.HOPLINE_HOST, port: base.HOPLINE_PORT });
    log.info({ url: life.probeServer.url }, 'probes listening');
  }
  const signal = life.drainBegins.signal;
  if (signal.aborted) return;
  // Kept before it is awaited: a drain during a long start waits for it and closes what it started.
  life.running = options.start({ settings, instance, version, log, telemetry, signal, probes });
  const { checks } = await life.running;
  health.started(checks);
  log.info({ duration_ms: Math.round(performance.now() - startedMs) }, 'ready');
}

async function end<T extends SettingsShape>(life: Life<T>, cause: { err?: unknown; signal?: string }): Promise<void> {
  if (!('err' in cause)) return drain(life, cause.signal ?? 'lifeline');
  await crash(life.boot, cause.err, 'uncaught error');
  // Thrown because a promise rejected without a reason gives no error, and would end with code 0.
  throw new Error('uncaught error');
}

async function drain<T extends SettingsShape>(life: Life<T>, cause: string): Promise<void> {
  const { base, log, telemetry, health } = life.boot;
  const startedMs = performance.now();
  log.info({ reason: cause }, 'draining');
  health.drain();
  life.drainBegins.abort();
  const closed = withinMs(closeRunning(life), base.HOPLINE_DRAIN_MS_MAX);
  const fault = await closed.then(
    () => undefined,
    error => ({ error }),
  );
  if (fault !== undefined) log.error({ err: fault.error }, 'drain failed');
  await life.probeServer?.close();
  await telemetry.shutdown();
  log.info({ duration_ms: Math.round(performance.now() - startedMs) }, 'stopped');
  if (fault !== undefined) throw fault.error;
}

async function closeRunning<T extends SettingsShape>(life: Life<T>): Promise<void> {
  const running = await life.running?.catch(() => undefined);
  await running?.close();
}

async function crash<T extends SettingsShape>(boot: Boot<T>, err: unknown, message: string): Promise<void> {
  boot.health.drain();
  boot.log.fatal({ err }, message);
  await boot.telemetry.shutdown();
}

/** The other end of standard input is held by the launcher: when it is gone, even by SIGKILL, this process must not outlive it. */
function holdLifeline(close: () => void): void {
  let gone = false;
  const once = () => {
    if (!gone) close();
    gone = true;
  };
  process.stdin.on('end', once).on('close', once).on('error', once).resume();
}
