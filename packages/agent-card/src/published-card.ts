import { hash } from 'node:crypto';
import type { JsonObject } from '@hopline/a2a';
import type { AgentCard } from './agent-card.ts';
import type { CardSignature, CardSigner } from './card-signer.ts';

/** JSON text as served. `etag` includes its quotes. */
export type PublishedDocument = { json: string; etag: string };

/** The ETag of a signed card is weak: replicas serve the same content, each with its own signature. */
export type CardDocument<Card extends object = AgentCard> = PublishedDocument & { card: Card & { signatures?: CardSignature[] } };

/**
 * A card that changes with its agents. It is built for each request, which is cheap, but signed only once per content, because signing is
 * not.
 */
export class PublishedCard<Card extends object = AgentCard> {
  /** The JWK set that verifies the signatures; undefined when the card is not signed. */
  readonly keys: PublishedDocument | undefined;
  readonly #build: () => Card;
  readonly #signer: CardSigner | undefined;
  #content = '';
  #document: Promise<CardDocument<Card>> | undefined;

  constructor(build: () => Card, signer?: CardSigner) {
    this.#build = build;
    this.#signer = signer;
    this.keys = signer && keySet(signer);
  }

  current(): Promise<CardDocument<Card>> {
    const card = this.#build();
    const content = JSON.stringify(card);
    if (this.#document === undefined || content !== this.#content) {
      this.#content = content;
      this.#document = this.#published(card, content);
    }
    return this.#document.catch(thrown => {
      // Makes the next request try again.
      this.#content = '';
      throw thrown;
    });
  }

  async #published(card: Card, content: string): Promise<CardDocument<Card>> {
    const signer = this.#signer;
    const tag = tagOf(content + (signer?.identity ?? ''));
    if (signer === undefined) return { card, json: content, etag: `"${tag}"` };
    // Signed in its JSON form, without members that JSON omits.
    const signed = { ...card, signatures: await signer.sign(JSON.parse(content) as JsonObject) };
    return { card: signed, json: JSON.stringify(signed), etag: `W/"${tag}"` };
  }
}

function keySet(signer: CardSigner): PublishedDocument {
  const json = JSON.stringify({ keys: [signer.publicKey] });
  return { json, etag: `"${tagOf(json)}"` };
}

function tagOf(content: string): string {
  return hash('sha256', content).slice(0, 32);
}
