import type { Message, Metadata } from '@hopline/a2a';

/** Metadata that decides identity and routing is ours alone: what comes from outside under these names is left out (S1-15). */
const RESERVED_PREFIX = 'hopline.';

function withoutReserved(metadata: Metadata): Metadata {
  return Object.fromEntries(Object.entries(metadata).filter(([key]) => !key.toLowerCase().startsWith(RESERVED_PREFIX)));
}

/** undefined when nothing is left. */
export function ownMetadata(metadata: Metadata | undefined): Metadata | undefined {
  if (metadata === undefined) return undefined;
  const left = withoutReserved(metadata);
  return Object.keys(left).length > 0 ? left : undefined;
}

/** The message as it came (S1-6, S1-8), without reserved keys on it and on its parts. */
export function ownMessage(message: Message): Message {
  return { ...cleaned(message), parts: message.parts.map(cleaned) };
}

function cleaned<T extends { metadata?: Metadata }>(value: T): T {
  const { metadata, ...rest } = value;
  const own = ownMetadata(metadata);
  return (own === undefined ? rest : { ...rest, metadata: own }) as T;
}
