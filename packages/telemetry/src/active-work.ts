import { context, createContextKey } from '@opentelemetry/api';
import type { HopAttributes } from './hop-span.ts';
import { ATTR } from './names.ts';
import { type OwnerNames, ownerAttributes } from './parties.ts';
import type { TraceCarrier } from './propagation.ts';

/** The turn that runs, for libraries that are called deep in an agent. `agent`: its name, or `supervisor`. */
export type ActiveWork = {
  readonly agent: string;
  readonly taskId: string;
  readonly contextId: string;
  readonly owner?: OwnerNames | undefined;
  /** Value of the label `tenant`. */
  readonly tenant: string;
  /** The turn's own span, which is not exported yet. */
  readonly span?: TraceCarrier;
  /** Called when a request to a model has ended. */
  readonly onModelCall?: (call: EndedModelCall) => void;
};

/** A request to a model. `at`: epoch milliseconds. `cost`: in the currency of the user's price file. */
type EndedModelCall = {
  model: string;
  at: number;
  ms: number;
  inputTokens?: number;
  cachedTokens?: number;
  outputTokens?: number;
  reasoningTokens?: number;
  cost?: number;
};

const KEY = createContextKey('work of hopline');

/** Runs `fn`, and everything that it awaits, as part of this turn. */
export function inWork<T>(work: ActiveWork, fn: () => T): T {
  return context.with(context.active().setValue(KEY, work), fn);
}

/** Runs `fn`, and everything that it awaits, in the running turn. Its requests to models are passed to `onModelCall` when they end. */
export function withModelCalls<T>(onModelCall: (call: EndedModelCall) => void, fn: () => T): T {
  const work = activeWork();
  return work === undefined ? fn() : inWork({ ...work, onModelCall }, fn);
}

/** Undefined outside a turn, and before startTelemetry. */
export function activeWork(): ActiveWork | undefined {
  return context.active().getValue(KEY) as ActiveWork | undefined;
}

/** Attributes for a span of the running turn. */
export function workAttributes(work: ActiveWork | undefined): HopAttributes {
  if (work === undefined) return {};
  const { agent, taskId, contextId, owner } = work;
  return {
    [ATTR.genAiAgentName]: agent,
    [ATTR.genAiConversation]: contextId,
    [ATTR.a2aTask]: taskId,
    ...ownerAttributes(owner),
  };
}

/**
 * The link from a span of the running turn to the turn's own span. The span is below the receipt of the work item, which survives the
 * process. With the link a viewer can show it below its agent. ADR 246.
 */
export function workLinks(work: ActiveWork | undefined): readonly TraceCarrier[] {
  return work?.span === undefined ? [] : [work.span];
}
