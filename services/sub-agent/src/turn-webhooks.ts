import { createHash, randomBytes } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Webhooks } from '@hopline/agent-a2a';
import { isLoopback } from '@hopline/endpoint';
import type { WakeUps } from '@hopline/log';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { discardBody } from './discard-body.ts';
import { RateLimit } from './rate-limit.ts';

/** Length of a webhook token in bytes. The token is the only credential of a caller. */
const TOKEN_BYTES = 32;
const TOKEN = /^[-\w]{43}$/;
/** Bytes of a call's body that are read and discarded, because an agent may send the whole task. */
export const CALL_BYTES_MAX = 4 * 1024 * 1024;
/**
 * Maximum number of calls per second that are forwarded to other processes: more than agents make that call for every token. A dropped call
 * only delays its turn.
 */
const CALLS_FORWARDED_PER_S_MAX = 1_000;

/**
 * Webhooks of remote agents: `POST /webhooks/<token>`, one per turn and removed with it. A call only triggers a poll of its turn. Processes
 * of one agent may share an address. A process that does not run the turn forwards the call under a hash of the token, so that subscribers
 * cannot find out the address. Every well-formed token gets the same response, so that callers cannot probe for existing ones.
 */
export class TurnWebhooks {
  /** Callbacks by the hash of the token. */
  readonly #turns = new Map<string, () => void>();
  readonly #publicUrl: string | undefined;
  readonly #forwarded = new RateLimit(CALLS_FORWARDED_PER_S_MAX);
  #forward: (key: string) => void = () => {};
  #listening: string | undefined;

  /** `publicUrl`: the URL of this endpoint, or a URL that the agent's processes share. */
  constructor(publicUrl: string | undefined) {
    this.#publicUrl = publicUrl;
  }

  /** Number of open webhooks. */
  get size(): number {
    return this.#turns.size;
  }

  /** Sets the address on which the endpoint listens. */
  listening(address: string): void {
    this.#listening = address;
  }

  /** Exchanges calls with the agent's other processes until `signal` aborts. */
  share(wakeUps: WakeUps, agent: string, signal: AbortSignal): void {
    // Other processes can share the address only if it is a public URL.
    if (this.#publicUrl === undefined) return;
    wakeUps.listen(agent, key => this.#turns.get(key)?.(), signal);
    this.#forward = key => wakeUps.wake(agent, key);
  }

  /** Webhooks for an agent at `url`. */
  forAgent(url: string): Webhooks {
    return {
      open: onCalled => {
        const base = this.#baseUrlFor(url);
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
      // The call takes effect before its body is read, because the body does not matter.
      scope.addHook<{ Params: { token: string } }>('onRequest', async ({ params }, reply) => {
        if (!TOKEN.test(params.token)) return reply.code(404).header('connection', 'close').send({ error: 'not found' });
        this.#called(keyOf(params.token));
      });
      scope.removeAllContentTypeParsers();
      scope.addContentTypeParser('*', (_request: FastifyRequest, body: IncomingMessage) => discardBody(body, CALL_BYTES_MAX));
      scope.setErrorHandler<{ statusCode?: number }>(({ statusCode = 500 }, _request, reply) =>
        reply.code(statusCode).header('connection', 'close').send({ error: 'not accepted' }),
      );
      scope.post('/webhooks/:token', (_request, reply) => reply.code(204).send());
    });
  }

  #called(key: string): void {
    const onCalled = this.#turns.get(key);
    if (onCalled !== undefined) onCalled();
    else if (this.#forwarded.take()) this.#forward(key);
  }

  /**
   * Returns the public URL, or a loopback address for agents on this machine. TLS is excluded, because its certificate rarely covers a
   * loopback address.
   */
  #baseUrlFor(agentUrl: string): string | undefined {
    if (this.#publicUrl !== undefined) return this.#publicUrl.endsWith('/') ? this.#publicUrl : `${this.#publicUrl}/`;
    const here = this.#listening;
    if (here === undefined || !here.startsWith('http://')) return undefined;
    return isLoopback(new URL(agentUrl).hostname) && isLoopback(new URL(here).hostname) ? here : undefined;
  }
}

function keyOf(token: string): string {
  return createHash('sha256').update(token).digest('base64url');
}
