import { REDIRECTS_MAX, sameOriginRedirect } from '@hopline/outbound-http';
import { type Dispatcher, request } from 'undici';

type Options = Omit<NonNullable<Parameters<typeof request>[1]>, 'headers'> & { headers: Readonly<Record<string, string>> };

/**
 * A request of undici that follows redirects within its origin. It opens its own connection: the agent may close a kept connection while it
 * is being reused (gunicorn closes after 2 s, Node and uvicorn after 5 s), and then it is unknown whether the message was processed.
 */
export async function requestWithin(url: string, options: Options): Promise<Dispatcher.ResponseData<unknown>> {
  let target = new URL(url);
  // Asks for uncompressed responses, because nothing here decompresses them, and without this header a request accepts every coding (RFC
  // 9110, 12.5.3).
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
