import type { ArtifactKind, LaneArtifact } from '@hopline/events';
import { AION } from './aion.ts';
import { CAIPE } from './caipe.ts';
import { TRANSPARENT } from './transparent.ts';

/** Kinds of artifacts by name, from all built-in profiles, because a nested server may use any of them. */
export const KINDS: Readonly<Record<string, ArtifactKind>> = { ...TRANSPARENT.kinds, ...AION.kinds, ...CAIPE.kinds };

export const ARTIFACT_KINDS: ReadonlySet<unknown> = new Set(['plan', 'answer', 'result', 'call-start', 'call-end', 'progress']);

/** The kind of an artifact by its name; undefined for an artifact that only an agent knows. */
export function artifactKind(name: string | undefined, kinds = KINDS): ArtifactKind | undefined {
  return name !== undefined && Object.hasOwn(kinds, name) ? kinds[name] : undefined;
}

/** The kind of an artifact: by its name or, if the name is unknown, the kind that a custom profile recorded on it. */
export function kindOfArtifact(
  { name, metadata }: Pick<LaneArtifact, 'name' | 'metadata'>,
  kinds = KINDS,
): ArtifactKind | undefined {
  const { artifactKind: recorded } = metadata ?? {};
  return artifactKind(name, kinds) ?? (ARTIFACT_KINDS.has(recorded) ? (recorded as ArtifactKind) : undefined);
}
