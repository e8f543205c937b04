import { CAIPE } from './caipe.ts';
import type { ConductingProfile } from './profile.ts';
import { TOOL_NOTICES } from './tool-notices.ts';

/**
 * For A2A clients that know no artifact names and show the text of every artifact. Artifacts contain only answers, each character once.
 * Plans, notices and progress are statuses, which such clients show briefly or never.
 */
export const CHAT: ConductingProfile = {
  name: 'chat',
  turn: 'conduct',
  plan: 'status',
  answer: { name: 'response' },
  calls: { ...CAIPE.calls, as: 'status' },
  agent: { text: { as: 'answer' }, progress: 'status', notices: { ...TOOL_NOTICES, as: 'status' } },
  kinds: { response: 'answer' },
};
