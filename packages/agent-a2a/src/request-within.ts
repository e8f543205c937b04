import { REDIRECTS_MAX, sameOriginRedirect } from '@hopline/outbound-http';
import { type Dispatcher, request } from 'undici';

type Options = Omit<NonNullable<Parameters<typeof request>[1]>, 'headers'> & { headers: Readonly<Record<string, string>> };

/**
 * A request of undici that follows redirects within its origin. It opens a connection of its own: a kept one may be closed by the
 * agent while it is being reused (gunicorn closes after 2 s, Node and uvicorn after 5 s), and then a message may have been
 * processed or not.
 */
export async function requestWithin(url: string, options: Options): Promise<Dispatcher.ResponseData<unknown>> {
  let target = new URL(url);
  // Responses are not decompressed, and a request without this header accepts every coding (RFC 9110, 12.5.3).
  const headers = { ...options.headers, 'accept-encoding': 'identity' };
  for (let redirects = 0; ; redirects += 1) {
    const response = await request(target, { ...options, headers, reset: true });
    const { location } = response.headers;
    const redirect = {
      method: options.method ?? 'GET',
      url: target,
      status: response.statusCode,
      location: typeof location === 'string' ? location : undefined,
    };
    const next = redirects < REDIRECTS_MAX ? sameOriginRedirect(redirect) : undefined;
    if (next === undefined) return response;
    await response.body.dump();
    target = next;
  }
}
