import { hash } from 'node:crypto';
import type { JsonObject } from '@hopline/a2a';
import type { AgentCard } from './agent-card.ts';
import type { CardSignature, CardSigner } from './card-signer.ts';

/** JSON text as it goes on the wire. `etag`: with its quotes. */
export type PublishedDocument = { json: string; etag: string };

/** Its ETag is weak where the card is signed: replicas serve the same content, each under a signature of its own. */
export type CardDocument<Card extends object = AgentCard> = PublishedDocument & { card: Card & { signatures?: CardSignature[] } };

/** A card that changes with the agents behind it. It is made for each reader, which is cheap, and signed once for each content, which is not. */
export class PublishedCard<Card extends object = AgentCard> {
  /** What the signatures are verified with: a JWK set of the public key; undefined where the card is not signed. */
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
      // Not for ever: the next reader tries again.
      this.#content = '';
      throw thrown;
    });
  }

  async #published(card: Card, content: string): Promise<CardDocument<Card>> {
    const signer = this.#signer;
    const tag = tagOf(content + (signer?.identity ?? ''));
    if (signer === undefined) return { card, json: content, etag: `"${tag}"` };
    // What is served is signed: members that JSON leaves out are in neither.
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
