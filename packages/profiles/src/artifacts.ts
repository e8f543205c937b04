import type { AgentPresentation, ArtifactKind, LaneArtifact } from '@hopline/events';
import { AION } from './aion.ts';
import { CAIPE } from './caipe.ts';
import { fill } from './notices.ts';
import type { ArtifactHeader, ConductingProfile, Profile } from './profile.ts';
import { TRANSPARENT } from './transparent.ts';

/** Kinds of artifacts by name, of all profiles that Hopline has: a server below may use any of them. */
const KINDS: Readonly<Record<string, ArtifactKind>> = { ...TRANSPARENT.kinds, ...AION.kinds, ...CAIPE.kinds };

/** The kind of an artifact by its name; undefined for an artifact of an agent's own. */
export function artifactKind(name: string | undefined, kinds = KINDS): ArtifactKind | undefined {
  return name !== undefined && Object.hasOwn(kinds, name) ? kinds[name] : undefined;
}

/** An artifact of the supervisor as a lane declares it. */
export function laneArtifact(profile: Profile, header: ArtifactHeader, supervisor: string): LaneArtifact {
  return { ...described(header, supervisor), ...(profile.separateClose && { separateClose: true }) };
}

/** Streamed text: an agent's with the call it came by, the supervisor's own without (C-24). */
export function answerArtifact(profile: ConductingProfile, supervisor: string, sourceAgent: string, call?: string): LaneArtifact {
  const metadata = { sourceAgent, ...(call !== undefined && { toolCallId: call }) };
  return { ...laneArtifact(profile, profile.answer, supervisor), metadata };
}

/** What the called agent needs of the profile. `answer`: the artifact of its text, where the supervisor answers for it. */
export function agentPresentation(profile: Profile, answer?: LaneArtifact): AgentPresentation {
  const { agent, separateClose, kinds } = profile;
  const base = { progress: agent.progress, notices: agent.notices, ...(separateClose && { separateClose }) };
  if (agent.text.as !== 'answer') return { ...base, text: agent.text };
  if (answer === undefined) throw new Error(`profile ${profile.name}: text is an answer, and the call has no artifact for it`);
  return { ...base, text: { ...agent.text, artifact: answer, kinds: { ...KINDS, ...kinds } } };
}

function described({ name, description }: ArtifactHeader, supervisor: string): LaneArtifact {
  return { name, ...(description !== undefined && { description: fill(description, { supervisor }) }) };
}
