import { AGENT_CARD_PATHS, CARD_KEYS_PATH } from '@hopline/agent-card';
import type { PublishedCard, PublishedDocument } from '@hopline/agent-card/signing';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';

/** How long clients may cache a card and the keys of its signatures, in seconds. Agents come and go. */
const CARD_AGE_S = 30;

/**
 * GET of the card at both well-known paths, also below `/a2a` for clients that are given that address, with an ETag ([A2A 1.0] 8.6).
 * Last-Modified is the time at which this process first served this content; replicas differ, so conditional requests use only the ETag. A
 * signed card also has the keys to verify it (RFC 7517 5).
 */
export function registerAgentCard(app: FastifyInstance, card: PublishedCard): void {
  let served = { etag: '', since: '' };
  for (const path of AGENT_CARD_PATHS.flatMap(path => [path, `/a2a${path}`])) {
    app.get(path, async (request, reply) => {
      const { json, etag } = await card.current();
      if (etag !== served.etag) served = { etag, since: new Date().toUTCString() };
      reply.header('last-modified', served.since);
      return sendDocument(request, reply, { json, etag }, 'application/json; charset=utf-8');
    });
  }
  const { keys } = card;
  if (keys === undefined) return;
  app.get(CARD_KEYS_PATH, (request, reply) => sendDocument(request, reply, keys, 'application/jwk-set+json'));
}

/** Sent as bytes: the framework would add a charset, which the media type of keys does not allow. */
function sendDocument(
  request: FastifyRequest,
  reply: FastifyReply,
  { json, etag }: PublishedDocument,
  type: string,
): FastifyReply {
  reply.header('etag', etag).header('cache-control', `public, max-age=${CARD_AGE_S}`);
  if (isKnown(request.headers['if-none-match'], etag)) return reply.code(304).send();
  return reply.header('content-type', type).send(Buffer.from(json));
}

/** Whether the client already has this version, by weak comparison as RFC 9110 13.1.2 requires. */
function isKnown(ifNoneMatch: string | undefined, etag: string): boolean {
  const tags = (ifNoneMatch ?? '').split(',').map(tag => tag.trim());
  return tags.some(tag => tag === '*' || opaque(tag) === opaque(etag));
}

function opaque(tag: string): string {
  return tag.replace(/^W\//, '');
}
