import type { Metadata } from '@hopline/a2a';

/**
 * Key of a request's metadata: the number of clusters that the request has passed. The adapter of remote agents writes it, and a cluster keeps it in its
 * task. A remote agent that does not pass it on begins again at 0.
 */
export const CLUSTER_DEPTH_KEY = 'hopline.depth';

/** Number of clusters that a request may pass. Otherwise an agent whose URL leads back to its own cluster would call itself endlessly. */
export const CLUSTER_DEPTH_MAX = 8;

/** The number of clusters that a request has passed, at most CLUSTER_DEPTH_MAX; 0 for a value of another form. */
export function clusterDepthOf(metadata: Metadata | undefined): number {
  const value = metadata?.[CLUSTER_DEPTH_KEY];
  return Number.isSafeInteger(value) && (value as number) > 0 ? Math.min(value as number, CLUSTER_DEPTH_MAX) : 0;
}
