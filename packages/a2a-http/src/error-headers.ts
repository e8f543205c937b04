import type { A2AError } from '@hopline/a2a';
import { retryAfterMs } from '@hopline/a2a-server';
import type { FastifyReply } from 'fastify';

/** Headers of an error: when to retry, how to authenticate. */
export function setErrorHeaders(reply: FastifyReply, error: A2AError): void {
  const waitMs = retryAfterMs(error);
  if (waitMs !== undefined) reply.header('retry-after', Math.ceil(waitMs / 1_000));
  if (error.challenge !== undefined) reply.header('www-authenticate', error.challenge);
}
