import { readFileSync } from 'node:fs';

const PINS = JSON.parse(readFileSync(new URL('../local/bootstrap/pins.json', import.meta.url), 'utf8'));

/** The tag that the chart and the compose file name. */
export const TAG_DEFAULT: string = PINS.natsServer.goVersion;

/**
 * Options for `helm install` and `docker compose` that select an image of this version, which depends on the nats-server of the machine.
 * Undefined if none are needed.
 */
export function versionHint(version: string): string | undefined {
  if (version === TAG_DEFAULT) return undefined;
  return (
    `The chart and the compose file name nats:${TAG_DEFAULT}: add --set nats.image.tag=${version} to helm install, ` +
    `or set HOPLINE_NATS_VERSION=${version} for docker compose.`
  );
}
