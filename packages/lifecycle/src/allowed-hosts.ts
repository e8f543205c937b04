import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';

/** Maximum number of names in HOPLINE_ALLOWED_HOSTS. */
export const ALLOWED_HOSTS_MAX = 64;
const NAME = /[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?/.source;
const HOST = `${NAME}(?:\\.${NAME})*`;
/** Pattern of HOPLINE_ALLOWED_HOSTS, and its description for errors. */
export const ALLOWED_HOSTS_FORM = {
  pattern: new RegExp(`^(?:\\*|${HOST}(?: *, *${HOST}){0,${ALLOWED_HOSTS_MAX - 1}})$`, 'i'),
  words: `up to ${ALLOWED_HOSTS_MAX} host names without ports, separated by commas, or only *`,
};
/** A name, an IPv4 address or a bracketed IPv6 address, with an optional port that is ignored. */
const AUTHORITY = /^(?:\[([^\]]*)\]|([^:@/\s[\]]+))(?::\d*)?$/;

/**
 * The hosts under which a server answers requests without credentials. A web page can give its own name the address of this
 * server (DNS rebinding): the browser then lets it read the responses, but still sends that name as Host. IP addresses cannot be
 * rebound, so all of them are allowed.
 */
export class AllowedHosts {
  /** Why a request is refused. */
  readonly refusal =
    'the host of the request is not a name of this server; HOPLINE_ALLOWED_HOSTS and HOPLINE_PUBLIC_URL set its names';
  readonly #names: ReadonlySet<string> | '*';

  /** `listed`: HOPLINE_ALLOWED_HOSTS; `own`: the server's own names, `host:port` pairs and URLs. */
  constructor(listed = '', own: readonly (string | undefined)[] = []) {
    const names = [...listed.split(','), ...own.map(one => one?.replace(/^\w+:\/\/([^/?#]*).*$/s, '$1'))];
    this.#names = listed === '*' ? '*' : new Set(['localhost', ...names.map(name => hostOf(name?.trim() ?? '') ?? '')]);
  }

  /** `authority`: value of a Host header, or `:authority` of HTTP/2. */
  allows(authority: string): boolean {
    if (this.#names === '*') return true;
    const host = hostOf(authority);
    return host !== undefined && host !== '' && (isIP(host) !== 0 || this.#names.has(host));
  }

  /** A request without any Host (HTTP/1.0) is allowed, because every browser sends one. */
  allowsRequest({ url = '', headersDistinct }: Pick<IncomingMessage, 'url' | 'headersDistinct'>): boolean {
    // The absolute form of a request target overrides Host (RFC 9112 3.2.2).
    const absolute = /^[a-z][a-z0-9+.-]*:\/\/([^/?#]*)/i.exec(url)?.[1];
    const named = [...(headersDistinct.host ?? []), ...(absolute === undefined ? [] : [absolute])];
    return named.every(authority => this.allows(authority));
  }
}

/** The host of an authority in lower case, without brackets, port and final dot. */
function hostOf(authority: string): string | undefined {
  const [, address, name] = AUTHORITY.exec(authority) ?? [];
  return (address ?? name)?.toLowerCase().replace(/(?<=.)\.$/, '');
}
