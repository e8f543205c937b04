import type { AgentPresentation, ArtifactKind, LaneArtifact } from '@hopline/events';
import { AION } from './aion.ts';
import { CAIPE } from './caipe.ts';
import { ARTIFACT_KINDS } from './check-profile.ts';
import { fill } from './notices.ts';
import type { ArtifactHeader, ConductingProfile, Profile } from './profile.ts';
import { TRANSPARENT } from './transparent.ts';

/** Kinds of artifacts by name, of all profiles that Hopline has: a server below may use any of them. */
const KINDS: Readonly<Record<string, ArtifactKind>> = { ...TRANSPARENT.kinds, ...AION.kinds, ...CAIPE.kinds };

/** The kind of an artifact by its name; undefined for an artifact of an agent's own. */
export function artifactKind(name: string | undefined, kinds = KINDS): ArtifactKind | undefined {
  return name !== undefined && Object.hasOwn(kinds, name) ? kinds[name] : undefined;
}

/** The kind of an artifact by its name, else by what a custom profile recorded on it. */
export function kindOfArtifact(
  { name, metadata }: Pick<LaneArtifact, 'name' | 'metadata'>,
  kinds = KINDS,
): ArtifactKind | undefined {
  const { artifactKind: recorded } = metadata ?? {};
  return artifactKind(name, kinds) ?? (ARTIFACT_KINDS.has(recorded) ? (recorded as ArtifactKind) : undefined);
}

/** Records the kind on an artifact whose name only a custom profile has: no client and no other cluster knows it. */
export function withKind<A extends Pick<LaneArtifact, 'name' | 'metadata'>>(artifact: A, kind: ArtifactKind | undefined): A {
  if (kind === undefined || artifactKind(artifact.name) !== undefined) return artifact;
  return { ...artifact, metadata: { ...artifact.metadata, artifactKind: kind } };
}

/** An artifact of the supervisor as a lane declares it. */
export function laneArtifact(profile: Profile, header: ArtifactHeader, supervisor: string): LaneArtifact {
  const artifact = { ...described(header, supervisor), ...(profile.separateClose && { separateClose: true as const }) };
  return withKind<LaneArtifact>(artifact, artifactKind(header.name, profile.kinds));
}

/** Streamed text: an agent's with the call it came by, the supervisor's own without (C-24). */
export function answerArtifact(profile: ConductingProfile, supervisor: string, sourceAgent: string, call?: string): LaneArtifact {
  const artifact = laneArtifact(profile, profile.answer, supervisor);
  const metadata = { ...artifact.metadata, sourceAgent, ...(call !== undefined && { toolCallId: call }) };
  return { ...artifact, metadata };
}

/** What the called agent needs of the profile. `answer`: the artifact of its text, where the supervisor answers for it. */
export function agentPresentation(profile: Profile, answer?: LaneArtifact): AgentPresentation {
  const { agent, separateClose, kinds } = profile;
  const base = { progress: agent.progress, notices: agent.notices, ...(separateClose && { separateClose }) };
  if (agent.text.as !== 'answer') {
    const { as, artifact } = agent.text;
    return { ...base, text: { as, artifact: withKind(artifact, artifactKind(artifact.name, kinds)) } };
  }
  if (answer === undefined) throw new Error(`profile ${profile.name}: text is an answer, and the call has no artifact for it`);
  return { ...base, text: { ...agent.text, artifact: answer, kinds: { ...KINDS, ...kinds } } };
}

function described({ name, description }: ArtifactHeader, supervisor: string): LaneArtifact {
  return { name, ...(description !== undefined && { description: fill(description, { supervisor }) }) };
}
