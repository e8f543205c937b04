import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { UsageError } from './usage-error.ts';

const CHECKOUT = fileURLToPath(new URL('../../../', import.meta.url));

/** Address of the NATS server of the cluster that runs here: NATS_URL, else what `npm start` noted in its home (HOPLINE_HOME). Throws UsageError. */
export function natsUrlOf(environment: Readonly<Record<string, string | undefined>>): string {
  if (environment.NATS_URL) return environment.NATS_URL;
  const home = environment.HOPLINE_HOME ? resolve(environment.HOPLINE_HOME) : resolve(CHECKOUT, '.hopline');
  const url = notedIn(`${home}/run.json`);
  if (url !== undefined) return url;
  throw new UsageError(
    `no cluster runs here (${home} has no run.json with a NATS server): npm start, or set HOPLINE_HOME or NATS_URL`,
  );
}

function notedIn(path: string): string | undefined {
  try {
    const { processes } = JSON.parse(readFileSync(path, 'utf8')) as { processes: { service?: unknown; url?: unknown }[] };
    const url = processes.find(({ service }) => service === 'nats')?.url;
    return typeof url === 'string' ? url : undefined;
  } catch {
    return undefined;
  }
}
