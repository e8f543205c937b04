import { isIP, type Socket } from 'node:net';
import type { SecureContext } from 'node:tls';
import { ForbiddenAddress, guardedLookup, hostOf, permits, type Resolve, type WebhookRules } from '@hopline/webhook-guard';
import { Agent, buildConnector } from 'undici';
import type { Trust } from './trusted-authorities.ts';

/** Time limit of the TCP and TLS handshakes. */
const CONNECT_MS_MAX = 5_000;
/** Maximum bytes of response headers. Only the status and Retry-After are used. */
const RESPONSE_HEADERS_BYTES_MAX = 16 * 1024;
/** How long an idle connection is kept. The next chunk of a running task rarely takes longer. */
const KEEP_ALIVE_MS = 10_000;

type WebhookAgentOptions = {
  rules: WebhookRules;
  /** Maximum connections to one origin. */
  connectionsMax: number;
  /** Overridden in tests. Default: `guardedLookup`. */
  resolve?: Resolve | undefined;
  /** Default: the certificate authorities that Node trusts. */
  trust?: Trust | undefined;
};

/**
 * HTTP client for webhooks. It never opens a socket to a forbidden address, whatever the URL is or the name server returns. It follows no
 * redirects and uses no proxy.
 */
export function webhookAgent(options: WebhookAgentOptions): Agent {
  return new Agent({
    connect: guardedConnector(options),
    connections: options.connectionsMax,
    pipelining: 1,
    // HTTP/2 would put all deliveries to an origin onto one connection, where one stalled delivery blocks the others.
    allowH2: false,
    keepAliveTimeout: KEEP_ALIVE_MS,
    maxHeaderSize: RESPONSE_HEADERS_BYTES_MAX,
    // The caller limits the time of a whole attempt.
    headersTimeout: 0,
    bodyTimeout: 0,
  });
}

function guardedConnector({ rules, resolve, trust }: WebhookAgentOptions): buildConnector.connector {
  const build = (secureContext?: SecureContext) => {
    const lookup = guardedLookup(rules, resolve);
    return buildConnector({ timeout: CONNECT_MS_MAX, allowH2: false, lookup, ...(secureContext && { secureContext }) });
  };
  const connect = trust === undefined ? build() : trustedConnector(trust, build);
  return (options, callback) => {
    const host = hostOf(options.hostname);
    // `net.connect` does not call `lookup` for a host that is an address.
    if (isIP(host) !== 0 && !permits(rules, host, host)) return callback(forbidden(), null);
    connect(options, (error, socket) => {
      // Second check before the first byte of a token is written: the socket should be connected to the address that the lookup returned.
      if (error === null && !isAtPermittedAddress(rules, host, socket)) {
        socket.destroy();
        callback(forbidden(), null);
      } else if (error === null) callback(null, socket);
      else callback(error, null);
    });
  };
}

/**
 * Creates a new connector when the trusted authorities change. A resumed TLS session presents no certificate, so sessions that were opened
 * with the old authorities must not be reused.
 */
function trustedConnector(trust: Trust, build: (context: SecureContext) => buildConnector.connector): buildConnector.connector {
  let current: SecureContext | undefined;
  let connect: buildConnector.connector;
  return (options, callback) => {
    trust()
      .then(context => {
        if (context !== current) connect = build(context);
        current = context;
        connect(options, callback);
      })
      // An error that a connector throws counts as a failed attempt. If it were not caught, it would end the process.
      .catch(error => callback(error, null));
  };
}

function isAtPermittedAddress(rules: WebhookRules, host: string, { remoteAddress }: Socket): boolean {
  return remoteAddress !== undefined && permits(rules, host, remoteAddress);
}

function forbidden(): ForbiddenAddress {
  return new ForbiddenAddress('the webhook resolves to an address that is not on the public internet');
}
