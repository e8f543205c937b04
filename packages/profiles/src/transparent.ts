import type { ForwardingProfile } from './profile.ts';
import { TOOL_NOTICES } from './tool-notices.ts';

/** Hopline in front of an existing agent: the agent's own events are passed on, and only ids, coalescing and hops are Hopline's. */
export const TRANSPARENT: ForwardingProfile = {
  name: 'transparent',
  turn: 'forward',
  agent: { text: { as: 'own', artifact: { name: 'response' } }, progress: 'status', notices: TOOL_NOTICES },
  kinds: { response: 'answer' },
};
