import type { Setting, Settings } from '@hopline/lifecycle';
import type { Logger } from '@hopline/telemetry';
import { type EndpointTls, openEndpointTls } from './endpoint-tls.ts';

const file = { type: 'string', optional: true, min: 1, max: 4_096 } as const;

/** Settings for TLS of a server. */
export const TLS_SETTINGS = {
  HOPLINE_TLS_CERT_FILE: {
    ...file,
    doc: 'Serve HTTPS with this certificate (PEM, with its chain), probes included; reloaded when it changes. Default: HTTP, for loopback or behind a proxy that terminates TLS.',
  },
  HOPLINE_TLS_KEY_FILE: { ...file, doc: 'Private key of the certificate (PEM).' },
  HOPLINE_TLS_CLIENT_CA_FILE: { ...file, doc: 'Accept only clients with a certificate of these authorities (PEM).' },
  HOPLINE_TLS_VERSION_MIN: {
    type: 'enum',
    values: ['TLSv1.2', 'TLSv1.3'],
    default: 'TLSv1.2',
    doc: 'Lowest TLS version; the highest that both sides support is used.',
  },
} as const satisfies Readonly<Record<string, Setting>>;

type TlsSettings = Settings<typeof TLS_SETTINGS>;

export function tlsFaults(settings: TlsSettings): string[] {
  const { HOPLINE_TLS_CERT_FILE: cert, HOPLINE_TLS_KEY_FILE: key, HOPLINE_TLS_CLIENT_CA_FILE: ca } = settings;
  if ((cert === undefined) !== (key === undefined))
    return ['HOPLINE_TLS_CERT_FILE and HOPLINE_TLS_KEY_FILE must be set together'];
  return ca !== undefined && cert === undefined ? ['HOPLINE_TLS_CLIENT_CA_FILE needs HOPLINE_TLS_CERT_FILE'] : [];
}

/** Opens the TLS of a server; undefined for plain HTTP. Rejects with an Error of one sentence when a file cannot be used. */
export async function tlsFromSettings(settings: TlsSettings, { logger }: { logger: Logger }): Promise<EndpointTls | undefined> {
  const { HOPLINE_TLS_CERT_FILE: cert, HOPLINE_TLS_KEY_FILE: key, HOPLINE_TLS_CLIENT_CA_FILE: clientCa } = settings;
  if (cert === undefined || key === undefined) return undefined;
  const versionMin = settings.HOPLINE_TLS_VERSION_MIN;
  return openEndpointTls({ cert, key, ...(clientCa !== undefined && { clientCa }), versionMin, logger });
}
