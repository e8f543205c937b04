import { readFileSync } from 'node:fs';
import type { Authenticator, ConnectionOptions } from '@nats-io/nats-core';
import { credsAuthenticator } from '@nats-io/nats-core';
import type { Credentials, NatsTls } from './options.ts';

/** Removes the user from a URL: nats.js ignores it there, and URLs end up in logs. */
export function withoutUser(url: string): string {
  return url.replace(/^((?:\w+:\/\/)?)[^@/]*@/, '$1');
}

/** `onUnreadable`: called when a file of credentials cannot be read for a connection after the first one. */
export function authentication(
  url: string,
  credentials: Credentials | undefined,
  onUnreadable: (error: unknown) => void = () => {},
): Partial<ConnectionOptions> {
  if (credentials && 'creds' in credentials) return { authenticator: credsAuthenticator(credsOf(credentials.creds)) };
  if (credentials && 'credsFile' in credentials) return { authenticator: fileAuthenticator(credentials.credsFile, onUnreadable) };
  if (credentials) return credentials;
  const match = /^(?:\w+:\/\/)?([^@/:]*)(?::([^@/]*))?@/.exec(url);
  if (!match?.[1]) return {};
  const [user, pass] = [decodeURIComponent(match[1]), match[2] === undefined ? undefined : decodeURIComponent(match[2])];
  return pass === undefined ? { token: user } : { user, pass };
}

/**
 * Reads the file at each connection, so that credentials can be rotated while the service runs. A file that is being replaced may be
 * missing or incomplete. The previous credentials are then used, because nats.js closes a connection for good when its authenticator
 * throws.
 */
function fileAuthenticator(path: string, onUnreadable: (error: unknown) => void): Authenticator {
  let last: Authenticator | undefined;
  return nonce => {
    try {
      const current = credsAuthenticator(credsOf(readFileSync(path, 'utf8')));
      const auth = current(nonce);
      last = current;
      return auth;
    } catch (error) {
      if (last === undefined) throw error;
      onUnreadable(error);
      return last(nonce);
    }
  };
}

/** The user's name for messages; undefined if unknown. */
export function knownUser(url: string, credentials: Credentials | undefined): string | undefined {
  const options = authentication(url, credentials);
  return typeof options.user === 'string' && options.user !== '' ? options.user : undefined;
}

/** nats.js requires a newline after the last line, which settings and many editors remove. */
const credsOf = (text: string) => Buffer.from(`${text}\n`);

/** True for a connection error that no retry can fix. */
export function isPermanent(reason: string): boolean {
  return /authorization|unable to parse credentials|^ENOENT/i.test(reason);
}

/** One sentence about a failed connection: what is wrong with the server at `address`, and which setting to check. */
export function connectionFault(address: string, reason: string, dialMs: number): string {
  const at = `NATS at ${address}`;
  if (/connection refused|ECONNREFUSED/i.test(reason))
    return `${at} refuses the connection: start nats-server, or correct NATS_URL`;
  if (/authorization|authentication/i.test(reason))
    return `${at} rejects the credentials: check NATS_CREDS_FILE, NATS_CREDS, NATS_TOKEN, or NATS_USER and NATS_PASSWORD`;
  const dns = /ENOTFOUND|EAI_AGAIN/.exec(reason)?.[0];
  if (dns !== undefined) return `${at} cannot be reached: its host name cannot be resolved (${dns})`;
  const certificate = certificateFault(reason);
  if (certificate !== undefined) return `${at} ${certificate}`;
  if (/^timeout$/i.test(reason))
    return `${at} does not answer within ${dialMs / 1000} s: check that NATS_URL names a NATS server, that no network policy blocks it, and NATS_TLS_… if it requires TLS`;
  return `${at} cannot be reached: ${reason}`;
}

/** OpenSSL's and Node's words about a server certificate, in those of an operator. */
function certificateFault(reason: string): string | undefined {
  if (/altnames|certificate's/i.test(reason)) return `has a certificate for another name: ${reason}`;
  if (/certificate has expired/i.test(reason)) return 'has a certificate that has expired: renew it';
  if (/self.signed certificate|unable to (get|verify)|unable_to_/i.test(reason))
    return `has a certificate of an authority that is not trusted (${reason}): check NATS_TLS_CA_FILE`;
  return undefined;
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
