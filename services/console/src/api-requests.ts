/** A task id, tenant or cursor in a path, as received; the ingress decodes and checks it. */
const SEGMENT = '[^/:?#]+';

type Method = 'GET' | 'POST';

/** The only read requests that are passed on. Other paths of ingress are excluded, because it answers some without credentials. */
const READS = [
  '/\\.well-known/agent-card\\.json',
  '/agents',
  '/tasks',
  `/tasks/${SEGMENT}`,
  `/tasks/${SEGMENT}:subscribe`,
  `/v1/tasks/${SEGMENT}:subscribe`,
  `/tasks/${SEGMENT}/audit`,
  `/tasks/${SEGMENT}/audit/${SEGMENT}`,
  `/tasks/${SEGMENT}/deliveries`,
  `/tasks/${SEGMENT}/export`,
];
const WRITES = ['/message:send', '/message:stream', `/tasks/${SEGMENT}:cancel`];

const READ = new RegExp(`^(?:${READS.join('|')})$`);
const WRITE = new RegExp(`^(?:${WRITES.join('|')})$`);
/** A dot segment, even an encoded one, because a proxy could resolve it. */
const DOT_SEGMENT = /\/(?:\.|%2e){1,2}(?:\/|$)/i;

/** Whether a request is passed on: `writes` only if the console may write, undefined never. */
export function kindOfRequest(method: string, path: string): 'read' | 'write' | undefined {
  const known: Method | undefined = method === 'GET' || method === 'POST' ? method : undefined;
  if (known === undefined || DOT_SEGMENT.test(path)) return undefined;
  if (known === 'GET') return READ.test(path) ? 'read' : undefined;
  return WRITE.test(path) ? 'write' : undefined;
}

/**
 * Request headers that are passed on, in addition to that of API keys. Cookies are not passed on, because they belong to another server on
 * this host.
 */
const REQUEST_HEADERS = [
  'accept',
  'content-type',
  'authorization',
  'a2a-version',
  'a2a-extensions',
  'last-event-id',
  'traceparent',
  'tracestate',
];

/** Response headers that are passed on. */
const RESPONSE_HEADERS = ['content-type', 'content-disposition', 'retry-after', 'www-authenticate', 'a2a-version', 'etag'];

type Headers = Readonly<Record<string, string | string[] | undefined>>;

export function requestHeaders(received: Headers, apiKeyHeader: string): Record<string, string> {
  return single(received, [...REQUEST_HEADERS, apiKeyHeader]);
}

/** Headers that authenticate a caller. */
export function credentialsOf(received: Headers, apiKeyHeader: string): Record<string, string> {
  return single(received, ['authorization', apiKeyHeader]);
}

export function responseHeaders(received: Headers): Record<string, string> {
  return single(received, RESPONSE_HEADERS);
}

function single(headers: Headers, names: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    names.flatMap(name => {
      const value = headers[name];
      return value === undefined ? [] : [[name, Array.isArray(value) ? value.join(', ') : value]];
    }),
  );
}
