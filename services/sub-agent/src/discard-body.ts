import type { Readable } from 'node:stream';

/**
 * Reads and discards a body. Rejects with `statusCode` 413 above `bytesMax`; the rest is still read until the request times out.
 */
export async function discardBody(body: Readable, bytesMax: number): Promise<void> {
  let bytes = 0;
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  body.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > bytesMax) reject(Object.assign(new Error('too large'), { statusCode: 413 }));
  });
  body.once('end', resolve);
  body.once('error', reject);
  body.once('close', resolve);
  return promise;
}
