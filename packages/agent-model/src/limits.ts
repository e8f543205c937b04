export { MODEL_MS_MAX, OPENAI_BASE_URL_DEFAULT } from '@hopline/chat-model/limits';

/** Bounds of one turn that an operator may set. */
export const MODEL_AGENT_LIMITS = {
  /** Times the model is asked; each but the last ends in tool calls. */
  stepsMax: 16,
  /** Of one tool's result that the model reads, UTF-16 units; the rest is cut, and the model is told. */
  toolResultUnitsMax: 64 * 1024,
} as const;

/** `stepsMax` can be no more than this. */
export const STEPS_MAX = 128;
/** Text of earlier turns that goes to the model, UTF-16 units; of more, the oldest is left out. */
export const HISTORY_UNITS_MAX = 64 * 1024;
/** Tools offered to a model: OpenAI takes no more (https://platform.openai.com/docs/api-reference/chat/create). */
export const TOOLS_MAX = 128;
/** MCP servers of one agent. */
export const SERVERS_MAX = 16;
