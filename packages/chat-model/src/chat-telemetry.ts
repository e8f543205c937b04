import type { LanguageModelV4StreamPart } from '@ai-sdk/provider';
import type { TokenUsage } from '@hopline/events';
import {
  type ActiveWork,
  ATTR,
  activeWork,
  chatSpan,
  type Hop,
  processMetrics,
  startHop,
  type TraceCarrier,
  workAttributes,
  workLinks,
} from '@hopline/telemetry';
import type { EndedRequest } from './chat.ts';
import { costOf, type ModelPrice } from './model-prices.ts';

const OPERATION = 'chat';
/** `error.type` of a request that its caller ended. The model did not fail. */
export const ABANDONED = 'abandoned';
/** Servers behind an OpenAI-compatible address do not name themselves. */
const PROVIDER = 'openai';

type TokenKind = 'input' | 'cached' | 'output' | 'reasoning';

type ChatTelemetryOptions = {
  model: string;
  baseUrl: string;
  price: ModelPrice | undefined;
  trace: TraceCarrier | undefined;
  onEnded: ((request: EndedRequest) => void) | undefined;
};

/**
 * Span and metrics of one request to a model, by the semantic conventions of OpenTelemetry for GenAI, version 1.41.1. They have counts and names,
 * never prompts or answers.
 */
export class ChatTelemetry {
  readonly hop: Hop;
  readonly #options: ChatTelemetryOptions;
  readonly #startedMs = performance.now();
  readonly #startedAt = Date.now();
  readonly #work = activeWork();

  constructor(options: ChatTelemetryOptions) {
    const { model, baseUrl, trace } = options;
    const { hostname, port, protocol } = new URL(baseUrl);
    this.#options = options;
    this.hop = startHop(chatSpan(model), {
      kind: 'client',
      ...(trace !== undefined && { parent: trace }),
      links: workLinks(this.#work),
      attributes: {
        [ATTR.genAiOperation]: OPERATION,
        [ATTR.genAiProvider]: PROVIDER,
        [ATTR.genAiRequestModel]: model,
        [ATTR.serverAddress]: hostname,
        [ATTR.serverPort]: Number(port || (protocol === 'https:' ? 443 : 80)),
        ...workAttributes(this.#work),
      },
    });
  }

  take(part: LanguageModelV4StreamPart): void {
    if (part.type === 'response-metadata')
      this.hop.set({ [ATTR.genAiResponseModel]: part.modelId, [ATTR.genAiResponseId]: part.id });
    if (part.type !== 'finish') return;
    this.hop.set({ [ATTR.genAiFinishReasons]: [part.finishReason.raw ?? part.finishReason.unified] });
  }

  /** `failure`: a word of a closed list; absent when the step is complete. */
  end(failure: string | undefined, usage: TokenUsage): void {
    const { hop } = this;
    const { inputTokens: input, cachedTokens: cached, outputTokens: output, reasoningTokens: reasoning } = usage;
    const cost = costOf(usage, this.#options.price);
    hop.set({
      [ATTR.genAiInputTokens]: input,
      [ATTR.genAiCachedTokens]: cached,
      [ATTR.genAiOutputTokens]: output,
      [ATTR.genAiReasoningTokens]: reasoning,
      [ATTR.cost]: cost,
    });
    const ms = performance.now() - this.#startedMs;
    const ended = { model: this.#options.model, at: this.#startedAt, ms, usage, ...(failure !== undefined && { failure }) };
    const { onEnded, price } = this.#options;
    if (onEnded === undefined) countRequest(ended, { work: this.#work, price, trace: hop.carrier() });
    else onEnded(ended);
    if (failure === undefined || failure === ABANDONED) hop.end();
    else hop.fail(failure);
  }
}

/** Counts a request in the metrics of this process, and reports it to the turn that it belongs to. */
export function countRequest(
  { model, at, ms, failure, usage }: EndedRequest,
  { work, price, trace }: { work: ActiveWork | undefined; price: ModelPrice | undefined; trace: TraceCarrier },
): void {
  const cost = costOf(usage, price);
  // Counts failed requests too, because the provider may charge for their tokens.
  work?.onModelCall?.({ model, at, ms: Math.round(ms), ...usage, ...(cost !== undefined && { cost }) });
  const metrics = processMetrics();
  if (metrics === undefined) return;
  const { inputTokens: input, cachedTokens: cached, outputTokens: output, reasoningTokens: reasoning } = usage;
  const { agent = 'other', tenant = 'none' } = work ?? {};
  const request = {
    agent,
    'gen_ai.operation.name': OPERATION,
    'gen_ai.provider.name': PROVIDER,
    'gen_ai.request.model': model,
  } as const;
  metrics.modelDuration.recordMs(ms, { ...request, ...(failure !== undefined && { 'error.type': failure }) }, trace);
  for (const [type, tokens] of Object.entries({ input, output }) as ['input' | 'output', number | undefined][])
    if (tokens !== undefined) metrics.modelTokens.record(tokens, { ...request, 'gen_ai.token.type': type }, trace);
  for (const [kind, tokens] of Object.entries({ input, cached, output, reasoning }) as [TokenKind, number | undefined][])
    if (tokens !== undefined) metrics.tenantModelTokens.add(tokens, { agent, tenant, model, kind });
  if (cost !== undefined) metrics.tenantModelCost.add(cost, { agent, tenant, model });
}
