import type { Message, Metadata } from '@hopline/a2a';
import { CLUSTER_DEPTH_KEY, clusterDepthOf } from '@hopline/events';

/**
 * Keys with this prefix determine identity and routing, so only Hopline may write them, and keys from clients are removed. The server
 * writes `hopline.fork` itself after it has checked it (fork.ts).
 */
const RESERVED_PREFIX = 'hopline.';

/** Removes keys that only Hopline may set. Returns undefined if no key is left. */
export function withoutReservedMetadata(metadata: Metadata | undefined): Metadata | undefined {
  const entries = Object.entries(metadata ?? {}).filter(([key]) => !key.toLowerCase().startsWith(RESERVED_PREFIX));
  return entries.length > 0 ? Object.fromEntries(entries) : undefined;
}

/** The metadata of a request without reserved keys, plus the number of clusters that the request has passed. */
export function requestMetadata(metadata: Metadata | undefined): Metadata | undefined {
  const unreserved = withoutReservedMetadata(metadata);
  const depth = clusterDepthOf(metadata);
  return depth === 0 ? unreserved : { ...unreserved, [CLUSTER_DEPTH_KEY]: depth };
}

/** The message without reserved keys in its metadata and in the metadata of its parts; everything else is unchanged. */
export function withoutReservedKeys(message: Message): Message {
  return { ...cleaned(message), parts: message.parts.map(cleaned) };
}

function cleaned<T extends { metadata?: Metadata }>(value: T): T {
  const { metadata, ...rest } = value;
  const unreserved = withoutReservedMetadata(metadata);
  return (unreserved === undefined ? rest : { ...rest, metadata: unreserved }) as T;
}
