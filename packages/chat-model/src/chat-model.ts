import { setTimeout as sleep } from 'node:timers/promises';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import type { LanguageModelV4, LanguageModelV4StreamPart } from '@ai-sdk/provider';
import { present } from '@hopline/a2a/json-value';
import { Deadlines, HEADER_VALUE, type MissedDeadline, unsendableHeader } from '@hopline/outbound-http';
import { Arrivals } from './arrivals.ts';
import type { ChatModel, ModelRequest, Step, StepEvent } from './chat.ts';
import { ABANDONED, ChatTelemetry } from './chat-telemetry.ts';
import {
  type ChatModelOptions,
  MODEL_LIMITS,
  MODEL_RESPONSE_BYTES_MAX,
  MODEL_STEP_UNITS_MAX,
  type ModelLimits,
} from './limits.ts';
import { mergedTextFetch } from './merged-text.ts';
import { ModelError } from './model-error.ts';
import { type ModelPrice, readPrices } from './model-prices.ts';
import { promptOf, toolsOf } from './prompt.ts';
import { modelErrorOf } from './provider-error.ts';
import { retryDelayMs } from './retry-delay.ts';
import { StepText } from './step-text.ts';

/** A model behind an OpenAI-compatible address. Creating it sends no request. */
export function createChatModel(options: ChatModelOptions): ChatModel {
  return new OpenAICompatibleModel(options);
}

type Progress = { hasEvents: boolean };

class OpenAICompatibleModel implements ChatModel {
  readonly #model: LanguageModelV4;
  readonly #name: string;
  readonly #baseUrl: string;
  readonly #price: ModelPrice | undefined;
  readonly #limits: ModelLimits;
  readonly #temperature: { temperature?: number };

  constructor({ model, baseUrl, apiKey, headers, temperature, limits, pricesFile, fetch }: ChatModelOptions) {
    requireHeaderValues(apiKey, headers);
    this.#name = model;
    this.#baseUrl = baseUrl;
    this.#price = pricesFile === undefined ? undefined : readPrices(pricesFile)(model);
    this.#limits = { ...MODEL_LIMITS, ...present({ ...limits }) };
    this.#temperature = temperature === undefined ? {} : { temperature };
    const provider = createOpenAICompatible({
      name: 'model',
      baseURL: baseUrl,
      ...(apiKey !== undefined && { apiKey }),
      ...(headers && { headers: { ...headers } }),
      includeUsage: true,
      fetch: mergedTextFetch(MODEL_RESPONSE_BYTES_MAX, fetch),
    });
    this.#model = provider.chatModel(model);
  }

  async *step(request: ModelRequest): AsyncGenerator<readonly StepEvent[], Step> {
    for (let tries = 1; ; tries += 1) {
      const progress: Progress = { hasEvents: false };
      try {
        return yield* this.#try(request, progress);
      } catch (error) {
        request.signal.throwIfAborted();
        const failure = modelErrorOf(error);
        const waitMs = retryDelayMs(tries, failure.retryAfterMs, Math.random);
        if (!failure.retryable || tries >= this.#limits.triesMax || waitMs === undefined) throw failure;
        if (progress.hasEvents) yield [{ type: 'restart' }];
        await sleep(waitMs, undefined, { signal: request.signal });
      }
    }
  }

  /** Sends one request. */
  async *#try(
    { messages, tools, unitsMax, trace, signal, onEnded }: ModelRequest,
    progress: Progress,
  ): AsyncGenerator<readonly StepEvent[], Step> {
    const telemetry = new ChatTelemetry({ model: this.#name, baseUrl: this.#baseUrl, price: this.#price, trace, onEnded });
    let failure: string | undefined = ABANDONED;
    const { firstTokenMsMax: firstEventMsMax, ...limits } = this.#limits;
    using deadlines = new Deadlines({ ...limits, firstEventMsMax }, modelErrorOfDeadline, signal);
    const folded = new StepText(unitsMax ?? MODEL_STEP_UNITS_MAX);
    let arrivals: Arrivals<LanguageModelV4StreamPart> | undefined;
    try {
      const { stream } = await this.#model.doStream({
        prompt: promptOf(messages),
        ...(tools.length > 0 && { tools: toolsOf(tools) }),
        ...this.#temperature,
        headers: { ...telemetry.hop.carrier() },
        abortSignal: deadlines.signal,
      });
      arrivals = new Arrivals(stream);
      for (let parts = await arrivals.next(); parts !== undefined; parts = await arrivals.next()) {
        // The library emits these two parts before the model's first event.
        if (parts.some(({ type }) => type !== 'stream-start' && type !== 'response-metadata')) deadlines.touch();
        const events: StepEvent[] = [];
        try {
          for (const part of parts) {
            telemetry.take(part);
            const event = folded.take(part);
            if (event !== undefined) events.push(event);
          }
        } finally {
          // Items that arrived before an error are yielded before it.
          if (events.length > 0) {
            progress.hasEvents = true;
            // Silence does not count while the reader waits, e.g. for the log.
            deadlines.pause();
            yield events;
            deadlines.resume();
          }
        }
      }
      const step = folded.step();
      failure = undefined;
      return step;
    } catch (error) {
      const fault = deadlines.fault ?? modelErrorOf(error);
      if (!signal.aborted) failure = fault.code;
      throw fault;
    } finally {
      arrivals?.cancel().catch(() => {});
      telemetry.end(failure, folded.usage);
    }
  }
}

const CODES = { 'first-event': 'no_first_token', silence: 'silent', total: 'too_slow' } as const;

function modelErrorOfDeadline({ limit }: MissedDeadline): ModelError {
  return new ModelError(CODES[limit]);
}

/**
 * Without this check every request would fail with an error that names neither the key nor the header. Their values may be secrets, so they
 * are not quoted.
 */
function requireHeaderValues(apiKey: string | undefined, headers: Readonly<Record<string, string>> = {}): void {
  if (apiKey !== undefined && !HEADER_VALUE.test(apiKey))
    throw new RangeError('the API key of the model has characters that an HTTP header cannot have');
  const header = unsendableHeader(headers);
  if (header !== undefined)
    throw new RangeError(`the header ${header} of the model has characters that an HTTP header cannot have`);
}
