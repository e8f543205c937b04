import { isIP, type Socket } from 'node:net';
import type { SecureContext } from 'node:tls';
import { ForbiddenAddress, guardedLookup, hostOf, permits, type Resolve, type WebhookRules } from '@hopline/webhook-guard';
import { Agent, buildConnector } from 'undici';
import type { Trust } from './trusted-authorities.ts';

/** A TCP and TLS connection takes at most this long, milliseconds. */
const CONNECT_MS_MAX = 5_000;
/** Headers of an answer, bytes: nothing of it is used. */
const ANSWER_HEADERS_BYTES_MAX = 16 * 1024;
/** An idle connection is kept this long, milliseconds: the next chunk of the same task is seldom further away. */
const KEEP_ALIVE_MS = 10_000;

export type WebhookAgentOptions = {
  rules: WebhookRules;
  /** Connections to one origin. */
  connectionsMax: number;
  /** For tests; without it names are resolved as `guardedLookup` says. */
  resolve?: Resolve | undefined;
  /** Without it: the authorities that Node trusts. */
  trust?: Trust | undefined;
};

/** The HTTP client of webhooks: it opens a socket to no address that the rules forbid, whatever a URL or a name server says. It follows no redirect and knows no proxy. */
export function webhookAgent(options: WebhookAgentOptions): Agent {
  return new Agent({
    connect: guardedConnector(options),
    connections: options.connectionsMax,
    pipelining: 1,
    // HTTP/2 would put all deliveries of an origin onto one connection, where one that hangs holds up the others.
    allowH2: false,
    keepAliveTimeout: KEEP_ALIVE_MS,
    maxHeaderSize: ANSWER_HEADERS_BYTES_MAX,
    // The time of a whole delivery is limited by its caller.
    headersTimeout: 0,
    bodyTimeout: 0,
  });
}

function guardedConnector({ rules, resolve, trust }: WebhookAgentOptions): buildConnector.connector {
  const build = (secureContext?: SecureContext) => {
    const lookup = guardedLookup(rules, resolve);
    return buildConnector({ timeout: CONNECT_MS_MAX, allowH2: false, lookup, ...(secureContext && { secureContext }) });
  };
  const connect = trust === undefined ? build() : trusting(trust, build);
  return (options, callback) => {
    const host = hostOf(options.hostname);
    // `net.connect` asks no lookup about a host that is an address.
    if (isIP(host) !== 0 && !permits(rules, host, host)) return callback(forbidden(), null);
    connect(options, (error, socket) => {
      // Cannot happen as long as a socket goes where its lookup says; before the first byte of a token is written, that is looked at once more.
      if (error === null && !leadsWhereAllowed(rules, host, socket)) {
        socket.destroy();
        callback(forbidden(), null);
      } else if (error === null) callback(null, socket);
      else callback(error, null);
    });
  };
}

/** A connector of its own for each trust: a session that is resumed shows no certificate, so those of before must not be. */
function trusting(trust: Trust, build: (context: SecureContext) => buildConnector.connector): buildConnector.connector {
  let inForce: SecureContext | undefined;
  let connect: buildConnector.connector;
  return (options, callback) => {
    void trust().then(context => {
      if (context !== inForce) connect = build(context);
      inForce = context;
      connect(options, callback);
    });
  };
}

function leadsWhereAllowed(rules: WebhookRules, host: string, { remoteAddress }: Socket): boolean {
  return remoteAddress !== undefined && permits(rules, host, remoteAddress);
}

function forbidden(): ForbiddenAddress {
  return new ForbiddenAddress('the webhook leads to an address that is not on the public internet');
}
