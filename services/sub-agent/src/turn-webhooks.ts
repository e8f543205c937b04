import { randomBytes } from 'node:crypto';
import type { Webhooks } from '@hopline/agent-a2a';
import { isLoopback } from '@hopline/auth';
import type { FastifyInstance } from 'fastify';

/** Of a webhook's token; bytes. Nobody is asked who they are: the token is what a caller has to know. */
const TOKEN_BYTES = 32;
/** Of a call, which nobody reads. An agent may well send the whole task; bytes. */
export const CALL_BYTES_MAX = 4 * 1024 * 1024;

/** The addresses where agents of others call turns that wait for them: `POST /webhooks/<token>`, one for each turn, gone with it. A call wakes its turn up and says nothing to it. */
export class TurnWebhooks {
  readonly #turns = new Map<string, () => void>();
  readonly #publicUrl: string | undefined;
  #listening: string | undefined;

  /** `publicUrl`: where others reach this door. */
  constructor(publicUrl: string | undefined) {
    this.#publicUrl = publicUrl;
  }

  /** Turns that can be called now. */
  get size(): number {
    return this.#turns.size;
  }

  /** The door listens here now. */
  listening(address: string): void {
    this.#listening = address;
  }

  /** Webhooks for an agent at `url`. */
  forAgent(url: string): Webhooks {
    return {
      open: onCalled => {
        const base = this.#reachedFrom(url);
        if (base === undefined) return undefined;
        const token = randomBytes(TOKEN_BYTES).toString('base64url');
        this.#turns.set(token, onCalled);
        return { url: new URL(`webhooks/${token}`, base).href, close: () => void this.#turns.delete(token) };
      },
    };
  }

  register(app: FastifyInstance): void {
    app.register(async scope => {
      // Before the body: nobody reads it, so a call counts whatever it brings, and who has no token is not listened to.
      scope.addHook<{ Params: { token: string } }>('onRequest', async ({ params }, reply) => {
        const onCalled = this.#turns.get(params.token);
        if (onCalled === undefined) return reply.code(404).header('connection', 'close').send({ error: 'not found' });
        onCalled();
      });
      scope.removeAllContentTypeParsers();
      scope.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, _body, done) => done(null));
      scope.setErrorHandler<{ statusCode?: number }>(({ statusCode = 500 }, _request, reply) =>
        reply.code(statusCode).header('connection', 'close').send({ error: 'not taken' }),
      );
      scope.post('/webhooks/:token', { bodyLimit: CALL_BYTES_MAX }, (_request, reply) => reply.code(204).send());
    });
  }

  /** An address of this machine alone is good for agents on it; a certificate for such an address is rarely one that they trust. */
  #reachedFrom(agentUrl: string): string | undefined {
    if (this.#publicUrl !== undefined) return this.#publicUrl.endsWith('/') ? this.#publicUrl : `${this.#publicUrl}/`;
    const here = this.#listening;
    if (here === undefined || !here.startsWith('http://')) return undefined;
    return isLoopback(new URL(agentUrl).hostname) && isLoopback(new URL(here).hostname) ? here : undefined;
  }
}
