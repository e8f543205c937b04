import type { AgentPresentation, ArtifactKind, LaneArtifact } from '@hopline/events';
import { artifactKind, KINDS } from './kinds.ts';
import { fill } from './notices.ts';
import type { ArtifactHeader, ConductingProfile, Profile } from './profile.ts';

/** Records the kind on an artifact whose name exists only in a custom profile, because clients and other clusters do not know it. */
export function withKind<A extends Pick<LaneArtifact, 'name' | 'metadata'>>(artifact: A, kind: ArtifactKind | undefined): A {
  if (kind === undefined || artifactKind(artifact.name) !== undefined) return artifact;
  return { ...artifact, metadata: { ...artifact.metadata, artifactKind: kind } };
}

/** Turns an artifact of the supervisor into the form that a lane declares. */
export function laneArtifact(profile: Profile, header: ArtifactHeader, supervisor: string): LaneArtifact {
  const artifact = { ...described(header, supervisor), ...(profile.separateClose && { separateClose: true as const }) };
  return withKind<LaneArtifact>(artifact, artifactKind(header.name, profile.kinds));
}

/** The artifact of streamed text. An agent's text has the id of its call; the supervisor's has none (C-24). */
export function answerArtifact(profile: ConductingProfile, supervisor: string, sourceAgent: string, call?: string): LaneArtifact {
  const artifact = laneArtifact(profile, profile.answer, supervisor);
  const metadata = { ...artifact.metadata, sourceAgent, ...(call !== undefined && { toolCallId: call }) };
  return { ...artifact, metadata };
}

/** The part of the profile that the called agent needs. `answer`: the artifact of the agent's text, if the supervisor answers with it. */
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
