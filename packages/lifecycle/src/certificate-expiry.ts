import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Env, HopMetrics } from '@hopline/telemetry';

/** The settings that name a certificate which this process shows to others, and the value of the label `kind`. */
const CERTIFICATES = [
  ['HOPLINE_TLS_CERT_FILE', 'server'],
  ['NATS_TLS_CERT_FILE', 'nats'],
] as const;

/**
 * Exports when the certificates of this process expire. Each read of the metrics reads the files again, because they are renewed while the
 * process runs. A file that cannot be read has no value: services report it when they use it.
 */
export function observeCertificates(metrics: Pick<HopMetrics, 'certificateExpiry'>, env: Env): void {
  for (const [setting, kind] of CERTIFICATES) {
    const path = env[setting];
    if (path === undefined || path === '') continue;
    metrics.certificateExpiry.observe(() => {
      const expiry = expiryOf(path);
      return expiry === undefined ? [] : [[expiry, { kind }]];
    });
  }
}

/** Seconds since 1970. A file with a chain begins with the certificate of the process. */
function expiryOf(path: string): number | undefined {
  try {
    return Date.parse(new X509Certificate(readFileSync(path)).validTo) / 1_000;
  } catch {
    return undefined;
  }
}
