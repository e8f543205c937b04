import type { A2AError } from '@hopline/a2a';
import { RETRY_AFTER_S } from '@hopline/a2a-server';
import type { FastifyReply } from 'fastify';

/** Headers of an error: when to retry, how to authenticate. */
export function setErrorHeaders(reply: FastifyReply, error: A2AError): void {
  if (error.code === 'UNAVAILABLE') reply.header('retry-after', RETRY_AFTER_S);
  if (error.challenge !== undefined) reply.header('www-authenticate', error.challenge);
}
