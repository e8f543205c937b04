import { type Dispatcher, request } from 'undici';

/** Redirects that are followed in a row. */
const REDIRECTS_MAX = 3;

type Options = Omit<NonNullable<Parameters<typeof request>[1]>, 'headers'> & { headers: Readonly<Record<string, string>> };

/**
 * A request that follows redirects within its own origin only: Python servers redirect `/a2a` to `/a2a/`, but what an agent answers must not send the operator's
 * headers anywhere else. A POST is repeated for 307 and 308 alone; any other redirect is the answer.
 *
 * Every request has a connection of its own. One that was kept may be closed by the agent in the moment it is used again (gunicorn keeps them for 2 s, Node and uvicorn for 5 s): then nobody
 * knows whether a message was taken, and a turn would fail or be doubled. A handshake is little beside a turn.
 */
export async function requestWithin(url: string, options: Options): Promise<Dispatcher.ResponseData<unknown>> {
  let at = new URL(url);
  // Nothing here decompresses, and who says nothing takes everything (RFC 9110, 12.5.3).
  const sent = { ...options.headers, 'accept-encoding': 'identity' };
  for (let redirects = 0; ; redirects += 1) {
    const response = await request(at, { ...options, headers: sent, reset: true });
    const { statusCode, headers, body } = response;
    const repeats = options.method === 'POST' ? [307, 308] : [301, 302, 307, 308];
    const { location } = headers;
    if (!repeats.includes(statusCode) || typeof location !== 'string' || !URL.canParse(location, at.href)) return response;
    const next = new URL(location, at);
    if (next.origin !== at.origin || redirects === REDIRECTS_MAX) return response;
    await body.dump();
    at = next;
  }
}
