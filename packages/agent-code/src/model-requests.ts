import type { EndedRequest } from '@hopline/chat-model';
import { countRequest } from '@hopline/chat-model/chat-telemetry';
import { costOf, type ModelPrice } from '@hopline/chat-model/model-prices';
import { type ActiveWork, ATTR, type TraceCarrier } from '@hopline/telemetry';

/** Maximum number of models of one host that metrics name. Code may send any name, and each one becomes a series. */
export const MODEL_NAMES_MAX = 16;
/** Requests to models that are counted of one turn. */
export const MODEL_REQUESTS_MAX = 10_000;
const OTHER = 'other';

type Attributes = Readonly<Record<string, string | number | boolean>>;

/** Counts the requests of a host's code to models. The host has neither metrics nor prices. */
export class ModelRequests {
  readonly #names = new Set<string>();
  readonly #priceOf: (model: string) => ModelPrice | undefined;

  constructor(priceOf: (model: string) => ModelPrice | undefined = () => undefined) {
    this.#priceOf = priceOf;
  }

  count(request: EndedRequest, { work, trace }: { work: ActiveWork | undefined; trace: TraceCarrier }): void {
    const { model } = request;
    if (this.#names.size < MODEL_NAMES_MAX) this.#names.add(model);
    const named = this.#names.has(model) ? request : { ...request, model: OTHER };
    countRequest(named, { work, price: this.#priceOf(model), trace });
  }

  /** The attributes of a span of the code, with the cost if it is the span of a request. */
  withCost(attributes: Attributes): Attributes {
    const { [ATTR.genAiRequestModel]: model } = attributes;
    if (typeof model !== 'string') return attributes;
    const tokens = (key: string) => (typeof attributes[key] === 'number' ? attributes[key] : undefined);
    const usage = {
      inputTokens: tokens(ATTR.genAiInputTokens),
      cachedTokens: tokens(ATTR.genAiCachedTokens),
      outputTokens: tokens(ATTR.genAiOutputTokens),
    };
    const cost = costOf(usage, this.#priceOf(model));
    return cost === undefined ? attributes : { ...attributes, [ATTR.cost]: cost };
  }
}
