import { X509Certificate } from 'node:crypto';
import { createSecureContext, getCACertificates, type SecureContext } from 'node:tls';
import { WatchedFile } from '@hopline/lifecycle';
import type { Logger } from '@hopline/telemetry';

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g;

/** The certificate authorities of webhooks. Returns the same object until the file changes. Never rejects. */
export type Trust = () => Promise<SecureContext>;

type TrustOptions = {
  /** PEM file of authorities that are trusted in addition to Node's. */
  path: string;
  logger: Logger;
  /** Minimum time between two checks of the file. Default: one second. */
  recheckMs?: number;
};

/**
 * Rejects if the file is unusable at startup. If a later version is unusable, that is logged, and the previous authorities stay in force.
 */
export async function openTrust({ path, logger, recheckMs }: TrustOptions): Promise<Trust> {
  const onFault = (reason: string) =>
    logger.error({ reason }, 'HOPLINE_WEBHOOK_CA_FILE changed and is unusable; the previous certificates stay in force');
  const file = await WatchedFile.open({ path, parse: contextOf, onFault, ...(recheckMs !== undefined && { recheckMs }) }).catch(
    error => {
      throw new Error(`HOPLINE_WEBHOOK_CA_FILE: ${error instanceof Error ? error.message : 'the file is unusable'}`);
    },
  );
  return () => file.current();
}

/**
 * Created once per file version, not per connection: reading Node's own 120 authorities takes milliseconds. They include
 * NODE_EXTRA_CA_CERTS.
 */
function contextOf(text: string): SecureContext {
  const certificates = text.match(CERTIFICATE) ?? [];
  // OpenSSL skips certificates that it cannot parse, and then every connection would fail later.
  if (certificates.length === 0 || !certificates.every(isCertificate))
    throw new Error('the file contains no PEM certificate, or a malformed one');
  return createSecureContext({ ca: [...getCACertificates('default'), ...certificates] });
}

function isCertificate(pem: string): boolean {
  try {
    new X509Certificate(pem);
    return true;
  } catch {
    return false;
  }
}
