/** Maximum redirects for one request of a client that follows redirects. */
export const REDIRECTS_MAX = 3;

/** Redirects that keep the method and the body (RFC 9110, 15.4.8 and 15.4.9). */
const METHOD_KEPT: readonly number[] = [307, 308];
const MOVED: readonly number[] = [301, 302];

type RedirectResponse = { method: string; url: URL; status: number; location: string | null | undefined };

/**
 * The URL for repeating a request, or undefined when the response is final. Python frameworks redirect `/mcp` to `/mcp/`, so redirects
 * within the origin
 * are followed. A redirect to another origin is not: `fetch` drops `Authorization` there, but sends every other credential header.
 */
export function sameOriginRedirect({ method, url, status, location }: RedirectResponse): URL | undefined {
  const isFollowed = METHOD_KEPT.includes(status) || (method === 'GET' && MOVED.includes(status));
  if (!isFollowed || typeof location !== 'string' || !URL.canParse(location, url.href)) return undefined;
  const target = new URL(location, url);
  return target.origin === url.origin ? target : undefined;
}
