import type { TraceCarrier } from '@hopline/telemetry';

/** A tool call a model chose: complete, and its arguments are a JSON object. */
export type ToolCall = { id: string; name: string; args: Record<string, unknown> };

export type ChatMessage =
  | { role: 'system' | 'user'; text: string }
  | { role: 'assistant'; text: string; calls: readonly ToolCall[] }
  | { role: 'tool'; call: ToolCall; text: string };

/** `parameters`: JSON Schema of the arguments, an object. Name: 1 to 64 of `A-Za-z0-9_-`. */
export type ChatTool = { name: string; description: string; parameters: Record<string, unknown> };

export type ChatRequest = {
  messages: readonly ChatMessage[];
  tools: readonly ChatTool[];
  /** UTF-16 units this step may have, default STEP_UNITS_MAX. */
  unitsMax?: number;
  trace: TraceCarrier;
  signal: AbortSignal;
};

/** What a step streams. `restart`: the attempt broke off; all the step has said so far is void, and it is said anew. */
export type StepEvent = { type: 'text'; text: string } | { type: 'reasoning'; text: string } | { type: 'restart' };

/** One answer of the model, complete. No calls: the model has said all it wants to say. */
export type Step = { text: string; calls: ToolCall[] };

export interface ChatModel {
  /**
   * Asks the model once and streams what it says; returns the whole step. A retryable failure is asked again within the bounds of `ModelLimits`.
   * Throws ModelError; when `signal` aborts, whatever reason it has.
   */
  step(request: ChatRequest): AsyncGenerator<StepEvent, Step>;
}
