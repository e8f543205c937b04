export { AION } from './aion.ts';
export { agentPresentation, answerArtifact, laneArtifact, withKind } from './artifacts.ts';
export { CAIPE } from './caipe.ts';
export { ProfileError } from './check-profile.ts';
export { kindOfArtifact } from './kinds.ts';
export { callNotice } from './notices.ts';
export type { ArtifactHeader, ConductingProfile, ForwardingProfile, Profile } from './profile.ts';
export { loadProfiles, PROFILE_SETTINGS, PROFILES, type Profiles } from './registry.ts';
export { TRANSPARENT } from './transparent.ts';
