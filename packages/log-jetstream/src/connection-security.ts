import { readFileSync } from 'node:fs';
import type { ConnectionOptions } from '@nats-io/nats-core';
import { credsAuthenticator } from '@nats-io/nats-core';
import type { Credentials, NatsTls } from './options.ts';

/** nats.js ignores a user in the URL, and URLs end up in logs. */
export function withoutUser(url: string): string {
  return url.replace(/^((?:\w+:\/\/)?)[^@/]*@/, '$1');
}

export function authentication(url: string, credentials: Credentials | undefined): Partial<ConnectionOptions> {
  if (credentials && 'creds' in credentials) return { authenticator: credsAuthenticator(credsOf(credentials.creds)) };
  // Read at each connection, so that credentials can be rotated while the service runs.
  if (credentials && 'credsFile' in credentials)
    return { authenticator: credsAuthenticator(() => credsOf(readFileSync(credentials.credsFile, 'utf8'))) };
  if (credentials) return credentials;
  const match = /^(?:\w+:\/\/)?([^@/:]*)(?::([^@/]*))?@/.exec(url);
  if (!match?.[1]) return {};
  const [user, pass] = [decodeURIComponent(match[1]), match[2] === undefined ? undefined : decodeURIComponent(match[2])];
  return pass === undefined ? { token: user } : { user, pass };
}

/** nats.js requires a newline after the last line, which settings and many editors remove. */
const credsOf = (text: string) => Buffer.from(`${text}\n`);

/** True for a connection error that no retry can fix. */
export function isPermanent(reason: string): boolean {
  return /authorization|unable to parse credentials|^ENOENT/i.test(reason);
}

/**
 * nats.js ignores the URL scheme and uses TLS only if the server's INFO message asks for it. A man in the middle could remove
 * that request, and credentials would follow in clear text. With a `tls` option nats.js rejects a server without TLS. It reads
 * the files at each connection.
 */
export function encryption(urls: readonly string[], tls: NatsTls | undefined): Partial<ConnectionOptions> {
  if (tls === undefined && !urls.some(url => /^tls:/i.test(url))) return {};
  const { ca, cert, key } = tls ?? {};
  const files = { ...(ca && { caFile: ca }), ...(cert && { certFile: cert }), ...(key && { keyFile: key }) };
  return { tls: files };
}
