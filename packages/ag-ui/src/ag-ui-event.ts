import type { JsonObject } from '@hopline/a2a';

/** Version of AG-UI that the encoder writes. */
export const PROTOCOL_VERSION = '1.0';

type ToolCall = { id: string; type: 'function'; function: { name: string; arguments: string } };

/** The messages of an AG-UI thread that a run adds. */
export type AgUiMessage =
  | { id: string; role: 'assistant'; content: string; name?: string }
  | { id: string; role: 'assistant'; toolCalls: ToolCall[] }
  | { id: string; role: 'tool'; toolCallId: string; content: string; error?: string }
  | { id: string; role: 'reasoning'; content: string };

type Interrupt = {
  id: string;
  reason: string;
  message?: string;
  toolCallId?: string;
  responseSchema?: JsonObject;
  metadata?: JsonObject;
};

export type RunOutcome = { type: 'success' } | { type: 'cancelled' } | { type: 'interrupt'; interrupts: Interrupt[] };

/**
 * The events of AG-UI that a task becomes. They are declared here so that users of the encoder need not install AG-UI. Tests check them
 * against AG-UI's schemas and its verifier.
 */
export type AgUiEvent =
  | { type: 'RUN_STARTED'; threadId: string; runId: string; protocolVersion: string }
  | { type: 'RUN_FINISHED'; threadId: string; runId: string; outcome: RunOutcome; usage?: JsonObject[] }
  | { type: 'RUN_ERROR'; message: string; code: string }
  | { type: 'MESSAGES_SNAPSHOT'; messages: readonly unknown[] }
  | { type: 'STATE_SNAPSHOT'; snapshot: JsonObject }
  | { type: 'STATE_DELTA'; delta: { op: 'replace' | 'add'; path: string; value: unknown }[] }
  | { type: 'TEXT_MESSAGE_START'; messageId: string; role: 'assistant'; name?: string }
  | { type: 'TEXT_MESSAGE_CONTENT' | 'REASONING_MESSAGE_CONTENT'; messageId: string; delta: string }
  | { type: 'TEXT_MESSAGE_END' | 'REASONING_START' | 'REASONING_MESSAGE_END' | 'REASONING_END'; messageId: string }
  | { type: 'REASONING_MESSAGE_START'; messageId: string; role: 'reasoning' }
  | { type: 'TOOL_CALL_START'; toolCallId: string; toolCallName: string }
  | { type: 'TOOL_CALL_ARGS'; toolCallId: string; delta: string }
  | { type: 'TOOL_CALL_END'; toolCallId: string }
  | { type: 'TOOL_CALL_RESULT'; messageId: string; toolCallId: string; content: string; role: 'tool' }
  | { type: 'STEP_STARTED' | 'STEP_FINISHED'; stepName: string }
  | { type: 'CUSTOM'; name: string; value: unknown };
