import { createHash, randomBytes } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Webhooks } from '@hopline/agent-a2a';
import { isLoopback } from '@hopline/endpoint';
import type { WakeUps } from '@hopline/log';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { discardBody } from './discard-body.ts';
import { RateLimit } from './rate-limit.ts';

/** Of a webhook's token; bytes. Nobody is asked who they are: the token is what a caller has to know. */
const TOKEN_BYTES = 32;
const TOKEN = /^[-\w]{43}$/;
/** Of a call, which nobody reads. An agent may well send the whole task; bytes. */
export const CALL_BYTES_MAX = 4 * 1024 * 1024;
/** Calls that are passed on to other processes within a second. More than agents make that call for every token; one that is not passed on only delays. */
const CALLS_PASSED_ON_PER_S_MAX = 1_000;

/**
 * The addresses where agents of others call turns that wait for them: `POST /webhooks/<token>`, one for each turn, gone with it. A call wakes its turn up and says nothing to it. Where processes
 * of the agent share an address, a call may meet one that does not run its turn: it passes the call on, by a hash of the token, so that nobody who listens there learns an address.
 * Every token that could be one gets the same answer: who has none cannot find out whether it exists.
 */
export class TurnWebhooks {
  /** By hash of the token. */
  readonly #turns = new Map<string, () => void>();
  readonly #publicUrl: string | undefined;
  readonly #passedOn = new RateLimit(CALLS_PASSED_ON_PER_S_MAX);
  #passOn: (key: string) => void = () => {};
  #listening: string | undefined;

  /** `publicUrl`: where others reach this door, or another of the same agent. */
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

  /** From now on, until `signal` aborts, calls for turns of the agent's other processes are passed on, and theirs heard. */
  share(wakeUps: WakeUps, agent: string, signal: AbortSignal): void {
    // An address of this process alone is met by nobody who wants another.
    if (this.#publicUrl === undefined) return;
    wakeUps.listen(agent, key => this.#turns.get(key)?.(), signal);
    this.#passOn = key => wakeUps.wake(agent, key);
  }

  /** Webhooks for an agent at `url`. */
  forAgent(url: string): Webhooks {
    return {
      open: onCalled => {
        const base = this.#reachedFrom(url);
        if (base === undefined) return undefined;
        const token = randomBytes(TOKEN_BYTES).toString('base64url');
        const key = keyOf(token);
        this.#turns.set(key, onCalled);
        return { url: new URL(`webhooks/${token}`, base).href, close: () => void this.#turns.delete(key) };
      },
    };
  }

  register(app: FastifyInstance): void {
    app.register(async scope => {
      // Before the body: nobody reads it, so a call counts whatever it brings.
      scope.addHook<{ Params: { token: string } }>('onRequest', async ({ params }, reply) => {
        if (!TOKEN.test(params.token)) return reply.code(404).header('connection', 'close').send({ error: 'not found' });
        this.#called(keyOf(params.token));
      });
      scope.removeAllContentTypeParsers();
      scope.addContentTypeParser('*', (_request: FastifyRequest, body: IncomingMessage) => discardBody(body, CALL_BYTES_MAX));
      scope.setErrorHandler<{ statusCode?: number }>(({ statusCode = 500 }, _request, reply) =>
        reply.code(statusCode).header('connection', 'close').send({ error: 'not taken' }),
      );
      scope.post('/webhooks/:token', (_request, reply) => reply.code(204).send());
    });
  }

  #called(key: string): void {
    const onCalled = this.#turns.get(key);
    if (onCalled !== undefined) onCalled();
    else if (this.#passedOn.take()) this.#passOn(key);
  }

  /** An address of this machine alone is good for agents on it; a certificate for such an address is rarely one that they trust. */
  #reachedFrom(agentUrl: string): string | undefined {
    if (this.#publicUrl !== undefined) return this.#publicUrl.endsWith('/') ? this.#publicUrl : `${this.#publicUrl}/`;
    const here = this.#listening;
    if (here === undefined || !here.startsWith('http://')) return undefined;
    return isLoopback(new URL(agentUrl).hostname) && isLoopback(new URL(here).hostname) ? here : undefined;
  }
}

function keyOf(token: string): string {
  return createHash('sha256').update(token).digest('base64url');
}
