import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { UsageError } from './usage-error.ts';

const CHECKOUT = fileURLToPath(new URL('../../../', import.meta.url));

/**
 * The NATS server of the local cluster: NATS_URL, or the one that `npm start` wrote to run.json in its home: HOPLINE_HOME, else
 * `.hopline` in the current folder or in the checkout that contains this command. Throws UsageError.
 */
export function natsUrlOf(environment: Readonly<Record<string, string | undefined>>): string {
  if (environment.NATS_URL) return environment.NATS_URL;
  const homes = environment.HOPLINE_HOME
    ? [resolve(environment.HOPLINE_HOME)]
    : [resolve('.hopline'), resolve(CHECKOUT, '.hopline')];
  for (const home of homes) {
    const url = natsUrlIn(`${home}/run.json`);
    if (url !== undefined) return url;
  }
  throw new UsageError(
    `no local cluster is running (no run.json with a NATS server in ${homes.join(' or ')}): run npm start, or set HOPLINE_HOME or NATS_URL`,
  );
}

function natsUrlIn(path: string): string | undefined {
  try {
    const { processes } = JSON.parse(readFileSync(path, 'utf8')) as { processes: { service?: unknown; url?: unknown }[] };
    const url = processes.find(({ service }) => service === 'nats')?.url;
    return typeof url === 'string' ? url : undefined;
  } catch {
    return undefined;
  }
}
