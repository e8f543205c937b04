/**
 * `fetch` whose responses are cut after `bytesMax` bytes: the library keeps an error's body, and each event of a stream, in memory.
 * Redirects are answers with their status: a prompt and its key go where the settings say and nowhere else.
 */
export function boundedFetch(bytesMax: number): typeof fetch {
  return async (url, init) => {
    const response = await fetch(url, { ...init, redirect: 'manual' });
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
  };
}
