import { X509Certificate } from 'node:crypto';
import { createSecureContext, getCACertificates, type SecureContext } from 'node:tls';
import { WatchedFile } from '@hopline/lifecycle';
import type { Logger } from '@hopline/telemetry';

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g;

/** Whom webhooks' certificates may be of. The same object until that changes. Never rejects. */
export type Trust = () => Promise<SecureContext>;

export type TrustOptions = {
  /** Path of a PEM file of authorities that are trusted beside those Node trusts. */
  path: string;
  logger: Logger;
  /** How often the file is looked at, at most; milliseconds. A second by default. */
  recheckMs?: number;
};

/** Rejects with an Error of one sentence when the file cannot be used now. Later the authorities of before stay in force instead. */
export async function openTrust({ path, logger, recheckMs }: TrustOptions): Promise<Trust> {
  const onFault = (reason: string) =>
    logger.error({ reason }, 'HOPLINE_WEBHOOK_CA_FILE has changed and cannot be used; what it said before stays in force');
  const file = await WatchedFile.open({ path, parse: contextOf, onFault, ...(recheckMs !== undefined && { recheckMs }) }).catch(
    error => {
      throw new Error(`HOPLINE_WEBHOOK_CA_FILE: ${error instanceof Error ? error.message : 'it cannot be used'}`);
    },
  );
  return () => file.current();
}

/** Made once and not per connection: reading Node's own 120 authorities takes milliseconds. Those of NODE_EXTRA_CA_CERTS are among them. */
function contextOf(text: string): SecureContext {
  const own = text.match(CERTIFICATE) ?? [];
  // OpenSSL passes over what it cannot read, and every connection would fail later.
  if (own.length === 0 || !own.every(isCertificate)) throw new Error('the file holds no certificates in PEM');
  return createSecureContext({ ca: [...getCACertificates('default'), ...own] });
}

function isCertificate(pem: string): boolean {
  try {
    new X509Certificate(pem);
    return true;
  } catch {
    return false;
  }
}
