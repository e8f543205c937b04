import type { TokenUsage } from '@hopline/events';
import type { TraceCarrier } from '@hopline/telemetry';

/** A complete tool call of a model; its arguments are a JSON object. */
export type ToolCall = { id: string; name: string; args: Record<string, unknown> };

/** A file for the model: `raw` in base64, or an address that the provider reads. */
export type ChatFile = { mediaType: string; filename?: string } & ({ raw: string } | { url: string });

export type ChatMessage =
  | { role: 'system'; text: string }
  | { role: 'user'; text: string; files?: readonly ChatFile[] }
  | { role: 'assistant'; text: string; calls: readonly ToolCall[] }
  | { role: 'tool'; call: ToolCall; text: string };

/** `parameters`: JSON Schema of the arguments, an object. Name: 1 to 64 of `A-Za-z0-9_-`. */
export type ChatTool = { name: string; description: string; parameters: Record<string, unknown> };

export type ModelRequest = {
  messages: readonly ChatMessage[];
  tools: readonly ChatTool[];
  /** Limit for the length of the step in UTF-16 units. Default: MODEL_STEP_UNITS_MAX. */
  unitsMax?: number;
  /** Trace context of the requests. Absent: the active span is their parent. */
  trace?: TraceCarrier;
  signal: AbortSignal;
  /** Receives each request that has ended. The metrics of this process then do not count it, because the caller does. */
  onEnded?: ((request: EndedRequest) => void) | undefined;
};

/** A request that has ended. `at`: its start in epoch milliseconds. `failure`: a word of a closed list; absent when the step is complete. */
export type EndedRequest = { model: string; at: number; ms: number; failure?: string; usage: TokenUsage };

/** Events of a step. `restart`: the attempt failed, all earlier events of the step are void, and a new attempt follows. */
export type StepEvent = { type: 'text'; text: string } | { type: 'reasoning'; text: string } | { type: 'restart' };

/** One complete answer of the model. Without calls it is the final one. `usage` is absent if the provider reports none. */
export type Step = { text: string; calls: ToolCall[]; usage?: TokenUsage };

export interface ChatModel {
  /**
   * Streams one answer of the model, in arrays of events that arrived together, and returns it whole. Retryable failures are
   * retried within `ModelLimits`.
   * Throws ModelError, or the reason of `signal` when it aborts.
   */
  step(request: ModelRequest): AsyncGenerator<readonly StepEvent[], Step>;
}
