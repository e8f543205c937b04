import { sameOriginRedirect } from './same-origin-redirect.ts';

export type BoundedFetchOptions = {
  /** Maximum bytes of one response body. Reading more rejects with ResponseTooLarge. */
  bytesMax: number;
  /** Methods whose responses are bounded; default: all. */
  boundedMethods?: readonly string[];
  /** Maximum redirects within the origin that are followed. Default 0: a redirect is returned as the response. */
  redirectsMax?: number;
  /**
   * Opens a connection for each request. Set it for requests that must not run twice: the server may close a kept connection while it is
   * being reused, and then the client cannot know whether the request was processed.
   */
  freshConnections?: boolean;
  /** Sends the requests. Default: `fetch` of the process. */
  fetch?: typeof fetch | undefined;
};

export class ResponseTooLarge extends Error {
  override readonly name = 'ResponseTooLarge';

  constructor(bytesMax: number) {
    super(`response has more than ${bytesMax} bytes`);
  }
}

/**
 * A `fetch` for libraries that read whole bodies into memory and have credentials. Bodies are bounded, and headers are never sent to
 * another origin.
 */
export function boundedFetch(
  options: BoundedFetchOptions,
): (input: string | URL | Request, init?: RequestInit) => Promise<Response> {
  const { bytesMax, boundedMethods, redirectsMax = 0, freshConnections = false, fetch: send = fetch } = options;
  return async (input, init = {}) => {
    const method = (init.method ?? (input instanceof Request ? input.method : 'GET')).toUpperCase();
    const headers = new Headers(init.headers ?? (input instanceof Request ? input.headers : undefined));
    if (freshConnections) headers.set('connection', 'close');
    const response = await fetchWithinOrigin(input, { ...init, headers }, { method, redirectsMax, send });
    return boundedMethods === undefined || boundedMethods.includes(method) ? boundedResponse(response, bytesMax) : response;
  };
}

async function fetchWithinOrigin(
  input: string | URL | Request,
  init: RequestInit,
  { method, redirectsMax, send }: { method: string; redirectsMax: number; send: typeof fetch },
): Promise<Response> {
  let target = input;
  for (let redirects = 0; ; redirects += 1) {
    const response = await send(target, { ...init, redirect: 'manual' });
    if (redirects >= redirectsMax) return response;
    const url = new URL(target instanceof Request ? target.url : target);
    const { status } = response;
    const next = sameOriginRedirect({ method, url, status, location: response.headers.get('location') });
    if (next === undefined) return response;
    await response.body?.cancel();
    target = next;
  }
}

/** Bounds a response: reading more than `bytesMax` of its body rejects with ResponseTooLarge. */
export function boundedResponse(response: Response, bytesMax: number): Response {
  if (response.body === null) return response;
  let bytes = 0;
  const counter = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      bytes += chunk.byteLength;
      if (bytes > bytesMax) controller.error(new ResponseTooLarge(bytesMax));
      else controller.enqueue(chunk);
    },
  });
  const { status, statusText, headers } = response;
  return new Response(response.body.pipeThrough(counter), { status, statusText, headers });
}
