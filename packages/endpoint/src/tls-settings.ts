import type { Setting, Settings } from '@hopline/lifecycle';
import type { Logger } from '@hopline/telemetry';
import { type EndpointTls, openEndpointTls } from './endpoint-tls.ts';

const file = { type: 'string', optional: true, min: 1, max: 4_096 } as const;

/** Over which wire a door is used. */
export const TLS_SETTINGS = {
  HOPLINE_TLS_CERT_FILE: {
    ...file,
    doc: 'The door speaks HTTPS with this certificate (PEM, with its chain), probes too; read again when it changes. Without it: HTTP, for loopback or behind a proxy that ends TLS.',
  },
  HOPLINE_TLS_KEY_FILE: { ...file, doc: 'Private key of the certificate (PEM).' },
  HOPLINE_TLS_CLIENT_CA_FILE: { ...file, doc: 'Only clients with a certificate of these authorities (PEM) may connect.' },
  HOPLINE_TLS_VERSION_MIN: {
    type: 'enum',
    values: ['TLSv1.2', 'TLSv1.3'],
    default: 'TLSv1.2',
    doc: 'Oldest TLS that is spoken; the newest both sides know is taken.',
  },
} as const satisfies Readonly<Record<string, Setting>>;

export type TlsSettings = Settings<typeof TLS_SETTINGS>;

export function tlsFaults(settings: TlsSettings): string[] {
  const { HOPLINE_TLS_CERT_FILE: cert, HOPLINE_TLS_KEY_FILE: key, HOPLINE_TLS_CLIENT_CA_FILE: ca } = settings;
  if ((cert === undefined) !== (key === undefined)) return ['HOPLINE_TLS_CERT_FILE and HOPLINE_TLS_KEY_FILE belong together'];
  return ca !== undefined && cert === undefined ? ['HOPLINE_TLS_CLIENT_CA_FILE needs HOPLINE_TLS_CERT_FILE'] : [];
}

/** TLS of a door; undefined for one that speaks HTTP. Rejects with an Error of one sentence when a file cannot be used. */
export async function tlsFromSettings(settings: TlsSettings, { logger }: { logger: Logger }): Promise<EndpointTls | undefined> {
  const { HOPLINE_TLS_CERT_FILE: cert, HOPLINE_TLS_KEY_FILE: key, HOPLINE_TLS_CLIENT_CA_FILE: clientCa } = settings;
  if (cert === undefined || key === undefined) return undefined;
  const versionMin = settings.HOPLINE_TLS_VERSION_MIN;
  return openEndpointTls({ cert, key, ...(clientCa !== undefined && { clientCa }), versionMin, logger });
}
