import {
  flushLog,
  type Logger,
  type LogLevel,
  type MetricsFormat,
  setLogLevel,
  TELEMETRY_SHUTDOWN_MS_MAX,
  type Telemetry,
  withinMs,
} from '@hopline/telemetry';
import closeWithGrace from 'close-with-grace';
import { AllowedHosts } from './allowed-hosts.ts';
import { type Boot, type BootOptions, bootService, exitForConfig, type SettingsShape } from './boot-service.ts';
import { ConfigError, type Settings } from './config.ts';
import type { ReadyCheck } from './health.ts';
import { type ProbeServer, startProbeServer } from './probe-server.ts';
import type { ProbeOptions } from './probes.ts';

/** A process that still runs this long after the drain and the last flush is ended. */
const EXIT_GRACE_MS = 500;

export type ServiceContext<T extends SettingsShape> = {
  readonly settings: Settings<T>;
  readonly instance: string;
  /** Version of the release. */
  readonly version: string;
  readonly log: Logger;
  readonly telemetry: Telemetry;
  /** Aborts when the drain begins: accept no new work. `close` ends running work. */
  readonly signal: AbortSignal;
  /** For `registerProbes`, if the service has its own HTTP server. */
  readonly probes: ProbeOptions;
};

export interface RunningService {
  /** Readiness conditions. */
  readonly checks: readonly ReadyCheck[];
  /** Shuts everything down in an orderly way. Called once, and limited to HOPLINE_DRAIN_MS_MAX. */
  close(): Promise<void>;
}

export type ServiceOptions<T extends SettingsShape> = BootOptions<T> & {
  /**
   * `own`: a probe server listens before `start` is called, by default on HOPLINE_HOST:HOPLINE_PORT. `mounted`: `start` calls
   * `registerProbes`, which mounts nothing if HOPLINE_PROBE_PORT is set.
   */
  readonly probes: 'own' | 'mounted';
  /** Addresses under which clients find the service, for the Host check: URLs or `host:port`. */
  publicAddresses?(settings: Settings<T>): readonly (string | undefined)[];
  start(context: ServiceContext<T>): Promise<RunningService>;
};

type ProcessState<T extends SettingsShape> = {
  readonly boot: Boot<T>;
  readonly drainBegins: AbortController;
  probeServer?: ProbeServer;
  running?: Promise<RunningService>;
};

/**
 * Runs one service: settings, log, telemetry, probes, `start`; then, on SIGTERM, SIGINT or the end of the lifeline: readiness
 * off, `signal` aborted, `close`, probes closed, spans flushed, exit code 0. An uncaught error, a failed start or an overlong
 * drain ends with code 1; an invalid environment, and a `start` that rejects with ConfigError, with EXIT_CONFIG. A second signal
 * ends the process at once. An uncaught error skips the drain: the state of the process is unreliable, and another process
 * continues from the log.
 */
export async function runService<T extends SettingsShape>(options: ServiceOptions<T>): Promise<void> {
  const state: ProcessState<T> = { boot: await bootService(options), drainBegins: new AbortController() };
  const { base, log } = state.boot;
  let ending: Promise<void> | undefined;
  const grace = closeWithGrace(
    {
      delay: base.HOPLINE_DRAIN_MS_MAX + TELEMETRY_SHUTDOWN_MS_MAX + EXIT_GRACE_MS,
      logger: false,
      // Changes the level of the log (toggleLevel).
      skip: ['SIGUSR2'],
      onSecondSignal: signal => log.warn({ signal }, 'second signal: exiting at once'),
      onSecondError: err => log.fatal({ err }, 'error during shutdown'),
      onTimeout: timeout_ms => log.error({ timeout_ms }, 'shutdown timed out'),
    },
    async cause => {
      ending ??= end(state, cause);
      await ending;
    },
  );
  if (base.HOPLINE_STDIN_LIFELINE) watchLifeline(grace.close);
  toggleLevel(log, base.HOPLINE_LOG_LEVEL);
  try {
    await start(state, options);
  } catch (error) {
    // If the drain interrupts the start, the start may reject. The exit code is then that of the drain.
    if (state.drainBegins.signal.aborted) return;
    if (error instanceof ConfigError) {
      await state.boot.telemetry.shutdown();
      // The sentence is the last line of the log: `npm start` shows it.
      flushLog(log);
      exitForConfig(options.name, error);
    }
    await crash(state.boot, error, 'start failed');
    process.exit(1);
  }
}

async function start<T extends SettingsShape>(state: ProcessState<T>, options: ServiceOptions<T>): Promise<void> {
  const { settings, base, instance, version, log, telemetry, health } = state.boot;
  const startedMs = performance.now();
  const publicAddresses = options.publicAddresses?.(settings) ?? [];
  const hosts = new AllowedHosts(base.HOPLINE_ALLOWED_HOSTS, [base.HOPLINE_HOST, ...publicAddresses]);
  const { HOPLINE_PROBE_PORT: probePort, HOPLINE_PROBE_HOST: probeHost = base.HOPLINE_HOST } = base;
  const elsewhere = probePort !== undefined;
  const metricsText = async (format?: MetricsFormat) => {
    // The metrics have the results of the checks.
    await health.readiness();
    return telemetry.metricsText(format);
  };
  const probes = { health, metricsText, loopLagMsMax: base.HOPLINE_LOOP_LAG_MS_MAX, hosts, elsewhere };
  if (options.probes === 'own' || elsewhere) {
    state.probeServer = await startProbeServer({ ...probes, host: probeHost, port: probePort ?? base.HOPLINE_PORT });
    log.info({ url: state.probeServer.url }, 'probes listening');
  }
  const signal = state.drainBegins.signal;
  if (signal.aborted) return;
  // Stored before it is awaited, so that a drain during a long start waits for it and closes the service.
  state.running = options.start({ settings, instance, version, log, telemetry, signal, probes });
  const { checks } = await state.running;
  health.started(checks);
  telemetry.metrics.checkFailing.observe(() => health.results().map(([check, failed]) => [failed ? 1 : 0, { check }]));
  log.info({ duration_ms: Math.round(performance.now() - startedMs) }, 'ready');
}

async function end<T extends SettingsShape>(state: ProcessState<T>, cause: { err?: unknown; signal?: string }): Promise<void> {
  if (!('err' in cause)) return drain(state, cause.signal ?? 'lifeline');
  await crash(state.boot, cause.err, 'uncaught error');
  // A promise that is rejected without a reason has no error, and the process would end with code 0.
  throw new Error('uncaught error');
}

async function drain<T extends SettingsShape>(state: ProcessState<T>, cause: string): Promise<void> {
  const { base, log, telemetry, health } = state.boot;
  const startedMs = performance.now();
  log.info({ reason: cause }, 'draining');
  health.drain();
  state.drainBegins.abort();
  const closed = withinMs(closeRunning(state), base.HOPLINE_DRAIN_MS_MAX);
  const fault = await closed.then(
    () => undefined,
    error => ({ error }),
  );
  if (fault !== undefined) log.error({ err: fault.error }, 'drain failed');
  await state.probeServer?.close();
  await telemetry.shutdown();
  log.info({ duration_ms: Math.round(performance.now() - startedMs) }, 'stopped');
  if (fault !== undefined) throw fault.error;
}

async function closeRunning<T extends SettingsShape>(state: ProcessState<T>): Promise<void> {
  const running = await state.running?.catch(() => undefined);
  await running?.close();
}

async function crash<T extends SettingsShape>(boot: Boot<T>, err: unknown, message: string): Promise<void> {
  boot.health.drain();
  boot.log.fatal({ err }, message);
  await boot.telemetry.shutdown();
}

/** SIGUSR2 switches between the level of the settings and `debug`. */
function toggleLevel(log: Logger, configured: LogLevel): void {
  let level = configured;
  process.on('SIGUSR2', () => {
    level = level === 'debug' ? configured : 'debug';
    setLogLevel(log, level);
    log.warn({ reason: level }, 'log level changed');
  });
}

/** The launcher holds the other end of standard input. When the launcher ends, even by SIGKILL, this process drains. */
function watchLifeline(close: () => void): void {
  let ended = false;
  const once = () => {
    if (!ended) close();
    ended = true;
  };
  process.stdin.on('end', once).on('close', once).on('error', once).resume();
}
