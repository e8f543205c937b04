export type { CardSignature, CardSignerSettings } from './card-signer.ts';
export { CardSigner } from './card-signer.ts';
export type { CardDocument, PublishedDocument } from './published-card.ts';
export { PublishedCard } from './published-card.ts';
