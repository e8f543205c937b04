import type { ForwardingProfile } from './profile.ts';
import { TOOL_NOTICES } from './tool-notices.ts';

/** Aion Server: streamed text is a transitory artifact with a fixed id, and the message at the end remains (S1-26, S1-28). */
export const AION: ForwardingProfile = {
  name: 'aion',
  turn: 'forward',
  agent: {
    text: { as: 'transitory', artifact: { id: 'aion:stream-delta', transitory: true, name: 'Stream Delta' } },
    progress: 'status',
    notices: TOOL_NOTICES,
  },
  kinds: { 'Stream Delta': 'answer' },
};
