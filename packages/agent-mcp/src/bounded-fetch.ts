/**
 * `fetch` whose POST responses are cut after `bytesMax` bytes: the SDK reads a whole JSON body, and each event of a stream, into memory.
 * The GET stream of a session lives as long as the session and is read event by event, so it is left alone.
 * Every request has a connection of its own: of a kept one that the server closes as it is used again nobody knows whether the tool has run.
 */
export function boundedFetch(bytesMax: number): (url: string | URL, init?: RequestInit) => Promise<Response> {
  return async (url, init) => {
    const headers = new Headers(init?.headers);
    headers.set('connection', 'close');
    const response = await fetch(url, { ...init, headers });
    return init?.method === 'POST' ? bounded(response, bytesMax) : response;
  };
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
