import type { Env } from '@hopline/telemetry';
import SETTING_NAMES from './setting-names.json' with { type: 'json' };
import { suggestion } from './suggestion.ts';

/** Variables of Hopline's other programs (command line, launcher, Compose, tests), which a shell may export for them. */
export const OTHER_VARIABLES: readonly string[] = [
  'HOPLINE_AGENTS',
  'HOPLINE_AGENT_ACCOUNTS',
  'HOPLINE_API_KEY',
  'HOPLINE_BEFORE',
  'HOPLINE_CONSOLE_PORT',
  'HOPLINE_FAKETIME',
  'HOPLINE_FUZZ_FACTOR',
  'HOPLINE_FUZZ_PATH',
  'HOPLINE_FUZZ_SEED',
  'HOPLINE_HOME',
  'HOPLINE_HTTP_PORT',
  'HOPLINE_IMAGE_NODE',
  'HOPLINE_KUBELET_PID',
  'HOPLINE_NATS_CLUSTER',
  'HOPLINE_NATS_IMAGE',
  'HOPLINE_NATS_SERVER',
  'HOPLINE_NATS_SYNC_INTERVAL',
  'HOPLINE_NATS_URL',
  'HOPLINE_NATS_VERSION',
  'HOPLINE_PYTHON',
  'HOPLINE_RELAYS',
  'HOPLINE_TOKEN',
  'HOPLINE_URL',
  'HOPLINE_VERSION',
];
/** Variables that Kubernetes sets in every pod for a Service whose name begins with `hopline`, unless `enableServiceLinks` is false. */
const SERVICE_LINK =
  /^HOPLINE_(?:\w+_)?(?:SERVICE_HOST|SERVICE_PORT(?:_\w+)?|PORT(?:_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)?)$/;
const LINK_VALUE = /^(?:(?:tcp|udp|sctp):\/\/.*|tcp|udp|sctp|\d+|[\d.]+|[\da-f:]+)$/i;

/**
 * A sentence for each variable that begins with HOPLINE_ but that no program reads, because a misspelt setting would silently have no
 * effect. Settings of other services are known, because services share their environment.
 */
export function unknownSettings(env: Env, own: readonly string[]): string[] {
  const known = new Set([...SETTING_NAMES, ...own]);
  return Object.entries(env).flatMap(([name, value = '']) => {
    if (!name.startsWith('HOPLINE_') || value === '' || known.has(name) || OTHER_VARIABLES.includes(name)) return [];
    if (SERVICE_LINK.test(name) && LINK_VALUE.test(value)) return [];
    return [`${name} is not a setting of Hopline${suggestion(name, [...known])}`];
  });
}
