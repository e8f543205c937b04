export type {
  AgentCapabilities,
  AgentCard,
  AgentCardSettings,
  AgentExtension,
  AgentInterface,
  AgentProvider,
  CardSecurity,
} from './agent-card.ts';
export { AGENT_CARD_PATHS, agentCard, CARD_KEYS_PATH, MODES } from './agent-card.ts';
export { cardFindings } from './card-findings.ts';
export { cardReport, decodeCardReport, noCardReport } from './card-report.ts';
export type { RemoteAgent } from './decode-agent-card.ts';
export { decodeAgentCard } from './decode-agent-card.ts';
export { DRAFT_EXTENSION_URI, draftExtension } from './draft-extension.ts';
export type { ExtendedAgent } from './extended-card.ts';
export { AGENTS_EXTENSION_URI, cardOfMessage, extendedAgentCard } from './extended-card.ts';
export { activeExtensions, EXTENSIONS_HEADER, extensionUris, LEGACY_EXTENSIONS_HEADER } from './extensions.ts';
export type { CardAgent } from './merged-skills.ts';
export { mergedSkills } from './merged-skills.ts';
export { RESUME_EXTENSION_URI, resumeExtension, taskWithGeneration, withGeneration } from './resume-extension.ts';
