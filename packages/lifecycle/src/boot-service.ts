import { hostname } from 'node:os';
import { setFastPaths } from '@hopline/a2a';
import { createLogger, type Env, type Logger, startTelemetry, type Telemetry } from '@hopline/telemetry';
import packageJson from '../package.json' with { type: 'json' };
import { observeCertificates } from './certificate-expiry.ts';
import { type Config, ConfigError, type Settings } from './config.ts';
import { createHealth, type Health } from './health.ts';
import type { ServiceSettings } from './service-settings.ts';
import type { Setting } from './setting.ts';
import { unknownSettings } from './unknown-settings.ts';

/** Exit code for an invalid environment (EX_CONFIG of sysexits.h): a restart cannot help. */
export const EXIT_CONFIG = 78;

export type SettingsShape = Readonly<Record<string, Setting>> & { readonly [K in keyof ServiceSettings]: Setting };

/** A service before its own code starts. */
export interface Boot<T extends SettingsShape> {
  readonly settings: Settings<T>;
  /** The settings that every service has. */
  readonly base: Settings<ServiceSettings>;
  readonly instance: string;
  readonly version: string;
  readonly log: Logger;
  readonly telemetry: Telemetry;
  readonly health: Health;
}

export type BootOptions<T extends SettingsShape> = {
  /** `relay`, `ingress`, …: name in logs, traces and metrics. */
  readonly name: string;
  readonly env: Env;
  readonly config: Config<T>;
};

/**
 * Loads settings and creates the logger and telemetry. An invalid environment is reported on standard error and ends the process.
 */
export async function bootService<T extends SettingsShape>(options: BootOptions<T>): Promise<Boot<T>> {
  try {
    const { name, env } = options;
    // The workspace is released as a whole, so all of its packages have one version.
    const { version } = packageJson;
    const settings = loadKnown(options.config, env);
    const base = settings as unknown as Settings<ServiceSettings>;
    // Pods reuse low process ids and processes of one machine share a host name; together they are unique.
    const instance = base.HOPLINE_INSTANCE ?? `${hostname()}-${process.pid}`;
    const log = createLogger({ service: name, instance, level: base.HOPLINE_LOG_LEVEL, format: base.HOPLINE_LOG_FORMAT });
    const fastPaths = base.HOPLINE_FAST_PATHS === 'on';
    setFastPaths(fastPaths);
    const telemetry = await startTelemetry({
      service: name,
      cluster: env.HOPLINE_PREFIX,
      version,
      instance,
      env,
      fastPaths,
      log,
    });
    observeCertificates(telemetry.metrics, env);
    log.info({ pid: process.pid, version, settings: options.config.effective(settings) }, 'starting');
    return { settings, base, instance, version, log, telemetry, health: createHealth() };
  } catch (error) {
    exitForConfig(options.name, error);
  }
}

/** Loads the settings. Throws ConfigError with all faults, unknown settings included. */
function loadKnown<T extends SettingsShape>(config: Config<T>, env: Env): Settings<T> {
  const unknown = unknownSettings(env, Object.keys(config.settings));
  try {
    const settings = config.load(env);
    if (unknown.length === 0) return settings;
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    unknown.unshift(...error.faults);
  }
  throw new ConfigError(unknown);
}

/** Reports faulty settings on standard error, as a sentence and without a stack, and ends the process. */
export function exitForConfig(name: string, error: unknown): never {
  const message = error instanceof Error ? error.message : 'cannot start';
  process.stderr.write(`${name}: ${message}\n${causeOf(error)}`);
  process.exit(EXIT_CONFIG);
}

/** The stack of the cause leads to the operator's own file, for example a module of an agent that does not load. */
function causeOf(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined;
  if (!(cause instanceof Error) || cause.stack === undefined) return '';
  return `${cause.stack.replaceAll(/^/gm, '  ')}\n`;
}
