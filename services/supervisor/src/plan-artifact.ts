import type { ArtifactInput, LaneArtifact } from '@hopline/events';

/** The plan while it is streamed, between ⟦ and ⟧ (S0-11). */
export const PLAN_STREAMING: LaneArtifact = {
  name: 'execution_plan_streaming',
  description: 'Execution plan streaming in progress',
};

/** The plan once it is complete: the same artifact, replaced and closed, so that a folded task has one plan, not two (C-3). */
export function completeUpdate(lane: string, text: string): ArtifactInput {
  const artifact = { name: 'execution_plan_update', description: 'Complete execution plan streamed to user' };
  return { kind: 'artifact', lane, artifact, parts: [{ text }], append: false, last: true };
}
