import { isIP } from 'node:net';
import { permits, type WebhookRules } from './webhook-rules.ts';

/** Longest webhook URL. */
export const WEBHOOK_URL_CHARS_MAX = 2048;
/** Lower ports except 80 and 443 are rejected, because a webhook must not reach a mail or SSH server, not even a public one. */
const UNPRIVILEGED_PORT_MIN = 1024;
const HTTP_PORTS = new Set(['', '80', '443']);

const NOT_PUBLIC = 'has a host that is not on the public internet; HOPLINE_WEBHOOK_ALLOW of the server permits others';

/**
 * The problem with a webhook URL, as the predicate of a sentence that never quotes the URL; undefined if the URL may be called. Pure: names
 * are not resolved, so their addresses are checked when the notifier connects. Without `rules` it reports only problems that no rules can
 * allow.
 */
export function webhookUrlProblem(text: string, rules?: WebhookRules): string | undefined {
  if (text.length > WEBHOOK_URL_CHARS_MAX) return `is longer than ${WEBHOOK_URL_CHARS_MAX} characters`;
  const url = URL.parse(text);
  if (url === null) return 'is not an absolute URL';
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return 'is neither https nor http';
  if (url.username !== '' || url.password !== '') return 'holds a user name or a password';
  if (!HTTP_PORTS.has(url.port) && Number(url.port) < UNPRIVILEGED_PORT_MIN)
    return `has a port below ${UNPRIVILEGED_PORT_MIN} other than 80 and 443`;
  if (rules === undefined) return undefined;
  if (url.protocol === 'http:' && !rules.http) return 'is not https; HOPLINE_WEBHOOK_HTTP of the server permits http';
  const host = hostOf(url.hostname);
  if (isIP(host) !== 0 && !permits(rules, host, host)) return NOT_PUBLIC;
  if (isLocalhost(host) && !rules.allow.hasName(host)) return NOT_PUBLIC;
  return undefined;
}

/**
 * Host of a URL without the brackets of IPv6. The URL parser has normalized it: `127.1`, `2130706433` and `0x7f.1` are
 * `127.0.0.1` here.
 */
export function hostOf(hostname: string): string {
  return hostname.startsWith('[') ? hostname.slice(1, -1) : hostname;
}

/** RFC 6761 6.3: these names always mean the local machine, whatever a resolver answers. */
function isLocalhost(host: string): boolean {
  return /(^|\.)localhost\.?$/.test(host);
}
