import { request } from 'node:https';
import type { TLSSocket } from 'node:tls';

/** Certificate, key and trusted authorities of a client, PEM. */
export type ClientTls = { ca?: string; cert?: string; key?: string; maxVersion?: 'TLSv1.1' | 'TLSv1.2' | 'TLSv1.3' };

/** One GET on a new connection. Rejects with a TLS error when either side rejects the other. */
export async function httpsGet(
  url: string,
  tls: ClientTls,
): Promise<{ status: number; body: string; protocol: string; serial: string }> {
  const { promise, resolve, reject } = Promise.withResolvers<{
    status: number;
    body: string;
    protocol: string;
    serial: string;
  }>();
  // OpenSSL offers old versions only at its lowest security level.
  const ciphers = tls.maxVersion === 'TLSv1.1' ? { ciphers: 'DEFAULT@SECLEVEL=0', minVersion: 'TLSv1.1' as const } : {};
  const sent = request(url, { agent: false, ...tls, ...ciphers }, response => {
    const socket = response.socket as TLSSocket;
    const seen = { protocol: socket.getProtocol() ?? '', serial: socket.getPeerCertificate().serialNumber };
    let body = '';
    response.setEncoding('utf8').on('data', (text: string) => {
      body += text;
    });
    response.on('end', () => resolve({ status: response.statusCode ?? 0, body, ...seen }));
  });
  sent.on('error', reject).end();
  return promise;
}
