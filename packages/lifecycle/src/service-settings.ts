import { LOG_FORMATS, LOG_LEVELS } from '@hopline/telemetry';
import { ALLOWED_HOSTS_FORM } from './allowed-hosts.ts';
import { type Config, defineConfig } from './config.ts';
import type { Setting } from './setting.ts';

/** Settings that every service has. */
export const SERVICE_SETTINGS = {
  HOPLINE_HOST: {
    type: 'string',
    default: '127.0.0.1',
    min: 1,
    max: 255,
    doc: 'Address to listen on; containers need 0.0.0.0.',
  },
  HOPLINE_PORT: {
    type: 'integer',
    default: 8000,
    min: 0,
    max: 65_535,
    doc: 'Port to listen on: the public port of ingress and sub-agents, the probes of other services. 0 chooses a free port.',
  },
  HOPLINE_PROBE_PORT: {
    type: 'integer',
    optional: true,
    min: 0,
    max: 65_535,
    doc: 'Port that serves only /livez, /readyz and /metrics, in plain HTTP; HOPLINE_PORT then does not serve them. Default: HOPLINE_PORT, where they answer only under IP addresses and localhost.',
  },
  HOPLINE_PROBE_HOST: {
    type: 'string',
    optional: true,
    min: 1,
    max: 255,
    doc: 'Address of HOPLINE_PROBE_PORT. Default: HOPLINE_HOST.',
  },
  HOPLINE_ALLOWED_HOSTS: {
    type: 'string',
    optional: true,
    form: ALLOWED_HOSTS_FORM,
    doc: 'Host names that requests without credentials may name besides localhost, IP addresses and the host of HOPLINE_PUBLIC_URL, for example that of a Kubernetes Service; `*`: any. Others get 421, because a web page can point its own host name at this server (DNS rebinding).',
  },
  HOPLINE_INSTANCE: {
    type: 'string',
    optional: true,
    min: 1,
    max: 128,
    doc: 'Name of this process in logs, traces and leases, unique in the cluster. Default: host name and process id.',
  },
  HOPLINE_LOG_LEVEL: { type: 'enum', values: LOG_LEVELS, default: 'info', doc: 'Lowest level that is logged.' },
  HOPLINE_LOG_FORMAT: {
    type: 'enum',
    values: LOG_FORMATS,
    default: 'auto',
    doc: 'Format of log lines. `auto`: `pretty` when standard output is a terminal, else `json`.',
  },
  HOPLINE_DRAIN_MS_MAX: {
    type: 'integer',
    default: 20_000,
    min: 0,
    max: 600_000,
    unit: 'ms',
    doc: 'Time for work and streams to end after SIGTERM; then the process exits with code 1.',
  },
  HOPLINE_LOOP_LAG_MS_MAX: {
    type: 'integer',
    default: 5_000,
    min: 100,
    max: 60_000,
    unit: 'ms',
    doc: '/livez fails when the event loop was blocked for longer. Time in which the process got no CPU does not count.',
  },
  HOPLINE_FAST_PATHS: {
    type: 'enum',
    values: ['on', 'off'],
    default: 'on',
    doc: 'Whether the fast paths of docs/reference/fast-paths.md replace libraries. `off` is for tests and bug reports: it costs CPU, and shows whether a fault is in one of them.',
  },
  HOPLINE_STDIN_LIFELINE: {
    type: 'boolean',
    default: false,
    doc: 'Drain when standard input ends, because the launcher at its other end is gone.',
  },
} as const satisfies Readonly<Record<string, Setting>>;

export type ServiceSettings = typeof SERVICE_SETTINGS;

/** `defineConfig` with SERVICE_SETTINGS first. A setting with the same name replaces the one here (e.g. another default port). */
export function defineServiceConfig<const T extends Readonly<Record<string, Setting>>>(
  settings: T,
): Config<Omit<ServiceSettings, keyof T> & T> {
  const all: Omit<ServiceSettings, keyof T> & T = { ...SERVICE_SETTINGS, ...settings };
  return defineConfig(all);
}
