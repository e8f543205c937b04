import { readFileSync } from 'node:fs';
import type { ConnectionOptions } from '@nats-io/nats-core';
import { credsAuthenticator } from '@nats-io/nats-core';
import type { Credentials, NatsTls } from './options.ts';

/** nats.js does not take a user from the URL; and what is in a URL ends up in logs. */
export function withoutUser(url: string): string {
  return url.replace(/^((?:\w+:\/\/)?)[^@/]*@/, '$1');
}

export function authentication(url: string, credentials: Credentials | undefined): Partial<ConnectionOptions> {
  if (credentials && 'creds' in credentials) return { authenticator: credsAuthenticator(credsOf(credentials.creds)) };
  // Asked for at each connection, so that credentials can be rotated under a running service.
  if (credentials && 'credsFile' in credentials)
    return { authenticator: credsAuthenticator(() => credsOf(readFileSync(credentials.credsFile, 'utf8'))) };
  if (credentials) return credentials;
  const match = /^(?:\w+:\/\/)?([^@/:]*)(?::([^@/]*))?@/.exec(url);
  if (!match?.[1]) return {};
  const [user, pass] = [decodeURIComponent(match[1]), match[2] === undefined ? undefined : decodeURIComponent(match[2])];
  return pass === undefined ? { token: user } : { user, pass };
}

/** nats.js wants a line's end after the last line, which a setting, and many an editor, takes away. */
const credsOf = (text: string) => Buffer.from(`${text}\n`);

/** Why a connection failed that no further try can mend. */
export function isHopeless(reason: string): boolean {
  return /authorization|unable to parse credentials|^ENOENT/i.test(reason);
}

/**
 * nats.js looks at no scheme: it speaks TLS when the server says so in its greeting, which whoever stands in between can change, credentials would follow in the clear. Given
 * any `tls` it refuses a server without. It reads the files anew at each connection.
 */
export function encryption(urls: readonly string[], tls: NatsTls | undefined): Partial<ConnectionOptions> {
  if (tls === undefined && !urls.some(url => /^tls:/i.test(url))) return {};
  const { ca, cert, key } = tls ?? {};
  const files = { ...(ca && { caFile: ca }), ...(cert && { certFile: cert }), ...(key && { keyFile: key }) };
  return { tls: files };
}
