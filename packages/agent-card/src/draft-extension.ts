import type { AgentExtension } from './agent-card.ts';

/** URI of the extension for members of A2A's draft 1.1, which A2A-1.1-EXTENSION.md describes. Experimental until 1.1 is released. */
export const DRAFT_EXTENSION_URI = 'https://hopline.dev/extensions/experimental-a2a-1.1/v1';

/** The declaration on the card. `params` names the commit of the draft that the members follow. */
export const draftExtension: AgentExtension = {
  uri: DRAFT_EXTENSION_URI,
  description: 'Experimental: generation and timeline of the draft of A2A 1.1, as members of tasks and events.',
  required: false,
  params: { draft: 'dev-1.1', commit: '28491879ff41a9c230fb51f3f7bd6096b80cc341', timeline: 'a2aproject/A2A#2129' },
};
