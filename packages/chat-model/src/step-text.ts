import type { LanguageModelV4FinishReason, LanguageModelV4StreamPart, LanguageModelV4Usage } from '@ai-sdk/provider';
import type { TokenUsage } from '@hopline/events';
import type { Step, StepEvent, ToolCall } from './chat.ts';
import { MODEL_STEP_CALLS_MAX } from './limits.ts';
import { ModelError } from './model-error.ts';
import { modelErrorOf } from './provider-error.ts';

/** Folds the parts of one response into a step. Throws ModelError as soon as the step cannot become complete. */
export class StepText {
  readonly #unitsMax: number;
  #units = 0;
  #text = '';
  readonly #calls: { id: string; name: string; input: string }[] = [];
  /** Empty until the provider has reported it. */
  usage: TokenUsage = {};

  constructor(unitsMax: number) {
    this.#unitsMax = unitsMax;
  }

  /** Returns the event of the part, if it has one. */
  take(part: LanguageModelV4StreamPart): StepEvent | undefined {
    switch (part.type) {
      case 'text-delta':
        this.#count(part.delta);
        this.#text += part.delta;
        return { type: 'text', text: part.delta };
      case 'reasoning-delta':
        this.#count(part.delta);
        return { type: 'reasoning', text: part.delta };
      case 'tool-input-delta':
        this.#count(part.delta);
        return undefined;
      case 'tool-call':
        this.#call(part.toolCallId, part.toolName, part.input);
        return undefined;
      case 'error':
        throw modelErrorOf(part.error);
      case 'finish': {
        this.usage = usageOf(part.usage);
        this.#finish(part.finishReason);
        return undefined;
      }
      default:
        return undefined;
    }
  }

  /** Returns the step after its response has ended. Calls are parsed only here, because a stream that breaks off leaves a partial call. */
  step(): Step {
    const calls = this.#calls.map(({ id, name, input }): ToolCall => ({ id, name, args: parseArgs(input) }));
    return { text: this.#text, calls, ...(Object.keys(this.usage).length > 0 && { usage: this.usage }) };
  }

  #count(delta: string): void {
    this.#units += delta.length;
    if (this.#units > this.#unitsMax) throw new ModelError('too_long');
  }

  #call(id: string, name: string, input: string): void {
    if (this.#calls.length === MODEL_STEP_CALLS_MAX) throw new ModelError('too_many_calls');
    this.#calls.push({ id, name, input });
  }

  #finish(reason: LanguageModelV4FinishReason): void {
    if (reason.unified === 'length') throw new ModelError('length_limit');
    // The library reports a refusal in the same way. The model ended its answer by itself, so the answer is complete.
    if (reason.unified === 'content-filter' && reason.raw !== 'stop') throw new ModelError('filtered');
    if (reason.unified === 'error') throw new ModelError('cut_off');
  }
}

function usageOf({ inputTokens: input, outputTokens: output }: LanguageModelV4Usage): TokenUsage {
  return {
    ...(input.total !== undefined && { inputTokens: input.total }),
    ...(output.total !== undefined && { outputTokens: output.total }),
    ...(input.cacheRead !== undefined && { cachedTokens: input.cacheRead }),
    ...(output.reasoning !== undefined && { reasoningTokens: output.reasoning }),
  };
}

/** Some providers send an empty text for a call without arguments. */
function parseArgs(input: string): Record<string, unknown> {
  if (input.trim() === '') return {};
  let args: unknown;
  try {
    args = JSON.parse(input);
  } catch {
    throw new ModelError('half_a_call');
  }
  if (typeof args !== 'object' || args === null || Array.isArray(args)) throw new ModelError('half_a_call');
  return args as Record<string, unknown>;
}
