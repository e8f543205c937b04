/** Redirects that are followed for one request. */
const REDIRECTS_MAX = 3;
/** Temporary and permanent redirects that say to ask the same again ([RFC 9110] 15.4.8, 15.4.9). */
const KEEPS_METHOD = new Set([307, 308]);

/**
 * `fetch` whose POST responses are cut after `bytesMax` bytes: the SDK reads a whole JSON body, and each event of a stream, into memory.
 * The GET stream of a session lives as long as the session and is read event by event, so it is left alone.
 * Every request has a connection of its own: of a kept one that the server closes as it is used again nobody knows whether the tool has run.
 * Redirects are followed within the origin alone (frameworks for Python send `/mcp` to `/mcp/`): headers with credentials must not go to where a server points.
 */
export function boundedFetch(bytesMax: number): (url: string | URL, init?: RequestInit) => Promise<Response> {
  return async (url, init) => {
    const headers = new Headers(init?.headers);
    headers.set('connection', 'close');
    const response = await fetchWithin(new URL(url), { ...init, headers });
    return init?.method === 'POST' ? bounded(response, bytesMax) : response;
  };
}

async function fetchWithin(url: URL, init: RequestInit): Promise<Response> {
  let at = url;
  for (let redirects = 0; ; redirects += 1) {
    const response = await fetch(at, { ...init, redirect: 'manual' });
    const location = response.headers.get('location');
    if (!KEEPS_METHOD.has(response.status) || location === null || redirects >= REDIRECTS_MAX) return response;
    const next = new URL(location, at);
    if (next.origin !== url.origin) return response;
    await response.body?.cancel();
    at = next;
  }
}

function bounded(response: Response, bytesMax: number): Response {
  if (response.body === null) return response;
  let bytes = 0;
  const counter = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      bytes += chunk.byteLength;
      if (bytes > bytesMax) controller.error(new Error(`response has more than ${bytesMax} bytes`));
      else controller.enqueue(chunk);
    },
  });
  const { status, statusText, headers } = response;
  return new Response(response.body.pipeThrough(counter), { status, statusText, headers });
}
