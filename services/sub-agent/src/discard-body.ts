import type { Readable } from 'node:stream';

/**
 * Reads a body to its end and keeps nothing of it: anybody may send one. Rejects with `statusCode` 413 when it is longer than `bytesMax`; then what is left of it
 * is still read, until its request is late.
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
