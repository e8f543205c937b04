import { codePoints, cutIndex } from '@hopline/a2a';
import type { ToolTiming } from '@hopline/events';
import {
  ATTR,
  activeWork,
  COUNT,
  executeToolSpan,
  type Hop,
  type HopMetrics,
  startHop,
  type TraceCarrier,
  workAttributes,
  workLinks,
} from '@hopline/telemetry';
import type { AgentEvent } from './agent.ts';

/** Maximum number of tool calls of one turn that have their own spans. The span of the turn counts all of them. */
const TOOL_SPANS_MAX = 64;
/** Characters of a tool's name in the log. */
const TOOL_NAME_CHARS_MAX = 64;

type TurnMetricsOptions = {
  hop: Hop;
  agent: string;
  metrics: Pick<HopMetrics, 'hopDuration'> | undefined;
  /** Epoch milliseconds at which this process took the work item. */
  takenAt: number;
  isFirstAttempt: boolean;
  /** Called when a tool call with a span has ended. */
  onToolEnd: (call: ToolTiming) => void;
};

/** Numbers of a turn for its span and its hops: amounts and times of tokens, never their text. Each tool call has its own span. */
export class TurnMetrics {
  readonly #options: TurnMetricsOptions;
  readonly #startedMs = performance.now();
  /** When the item was taken, on the clock of `performance.now`, because the wall clock may be set while the turn runs. */
  readonly #takenMs: number;
  readonly #tools = new Map<string, { hop: Hop; tool: string; startedAt: number; startedMs: number }>();
  #toolCalls = 0;
  /** Time with at least one open tool call since the last text. */
  #toolMs = 0;
  #toolsSinceMs: number | undefined;
  /** When the last event arrived or the turn began; undefined while the turn waits for its client. */
  #eventMs: number | undefined = this.#startedMs;
  /** When the last text arrived, and the time from the first to the last text without the time in tools. */
  #lastMs: number | undefined;
  #talkMs = 0;
  /** Values of the hop's current segment. */
  #events = 0;
  #tokens = 0;
  #characters = 0;
  #gapMsMax = 0;

  constructor(options: TurnMetricsOptions) {
    this.#options = options;
    this.#takenMs = this.#startedMs - (Date.now() - options.takenAt);
    options.hop.beforeSegmentEnd(() => this.#report());
  }

  /** Milliseconds since the last event; 0 while the turn waits for its client. */
  get silentMs(): number {
    return this.#eventMs === undefined ? 0 : performance.now() - this.#eventMs;
  }

  count(event: AgentEvent): void {
    const now = performance.now();
    this.#events += 1;
    this.#eventMs = isWaiting(event) ? undefined : now;
    if (event.type === 'tool') this.#tool(event);
    if (event.type !== 'text') return;
    this.#tokens += 1;
    this.#characters += codePoints(event.text);
    if (this.#lastMs === undefined) {
      this.#options.hop.max(COUNT.firstTokenMs, Math.round(now - this.#startedMs));
      this.#endAgentHop(now);
    } else {
      const sinceMs = now - this.#lastMs;
      if (sinceMs > this.#gapMsMax) this.#gapMsMax = sinceMs;
      this.#talkMs += sinceMs - this.#takeToolMs(now);
    }
    this.#lastMs = now;
  }

  /** The trace context of an open tool call, for the request to its server. */
  toolTrace(callId: string): TraceCarrier {
    return (this.#tools.get(callId)?.hop ?? this.#options.hop).carrier();
  }

  /** Ends all open measurements. Call it when the turn is over. */
  end(): void {
    const now = performance.now();
    if (this.#lastMs === undefined) this.#endAgentHop(now);
    else {
      const { agent, metrics } = this.#options;
      metrics?.hopDuration.recordMs(this.#talkMs, { hop: 'talk', agent }, this.#options.hop.carrier());
      metrics?.hopDuration.recordMs(
        now - this.#lastMs - this.#takeToolMs(now),
        { hop: 'finish', agent },
        this.#options.hop.carrier(),
      );
    }
    for (const { hop } of this.#tools.values()) {
      hop.set({ [ATTR.outcome]: 'open' });
      hop.end();
    }
    this.#tools.clear();
  }

  #report(): void {
    const { hop } = this.#options;
    if (this.#events > 0) hop.count(COUNT.events, this.#events);
    if (this.#tokens > 0) {
      hop.count(COUNT.tokens, this.#tokens);
      hop.count(COUNT.characters, this.#characters);
    }
    if (this.#gapMsMax > 0) hop.max(COUNT.gapMsMax, Math.round(this.#gapMsMax));
    this.#events = 0;
    this.#tokens = 0;
    this.#characters = 0;
    this.#gapMsMax = 0;
  }

  #tool({ phase, callId, tool, failed = false }: Extract<AgentEvent, { type: 'tool' }>): void {
    if (phase === 'start') this.#startTool(callId, tool);
    else this.#endTool(callId, failed);
  }

  #startTool(callId: string, tool: string): void {
    const { hop: turn } = this.#options;
    turn.count(COUNT.toolCalls);
    this.#toolsSinceMs ??= performance.now();
    this.#toolCalls += 1;
    if (this.#toolCalls > TOOL_SPANS_MAX || this.#tools.has(callId)) return;
    const work = activeWork();
    const hop = startHop(executeToolSpan(tool), {
      kind: 'client',
      parent: turn.carrier(),
      links: workLinks(work),
      attributes: {
        [ATTR.genAiOperation]: 'execute_tool',
        [ATTR.genAiTool]: tool,
        [ATTR.genAiToolCall]: callId,
        [ATTR.genAiToolType]: 'function',
        ...workAttributes(work),
      },
    });
    this.#tools.set(callId, { hop, tool, startedAt: Date.now(), startedMs: performance.now() });
  }

  #endTool(callId: string, failed: boolean): void {
    const { agent, metrics, onToolEnd } = this.#options;
    const open = this.#tools.get(callId);
    this.#tools.delete(callId);
    if (open !== undefined) {
      const { tool, startedAt: at, startedMs } = open;
      const ms = Math.round(performance.now() - startedMs);
      metrics?.hopDuration.recordMs(ms, { hop: 'tool', agent }, this.#options.hop.carrier());
      onToolEnd({ name: tool.slice(0, cutIndex(tool, TOOL_NAME_CHARS_MAX)), at, ms });
      if (failed) open.hop.fail('tool_failed');
      else open.hop.end();
    }
    if (this.#tools.size === 0) this.#pauseTools();
  }

  #pauseTools(): void {
    if (this.#toolsSinceMs !== undefined) this.#toolMs += performance.now() - this.#toolsSinceMs;
    this.#toolsSinceMs = undefined;
  }

  /** The time in tools since the last text. An open tool counts up to now. */
  #takeToolMs(now: number): number {
    const openMs = this.#toolsSinceMs === undefined ? 0 : now - this.#toolsSinceMs;
    if (this.#toolsSinceMs !== undefined) this.#toolsSinceMs = now;
    const toolMs = this.#toolMs + openMs;
    this.#toolMs = 0;
    return toolMs;
  }

  /** From the work item to the first text, without the time in tools, which is a separate hop. */
  #endAgentHop(now: number): void {
    const { agent, metrics, isFirstAttempt } = this.#options;
    const toolMs = this.#takeToolMs(now);
    if (isFirstAttempt)
      metrics?.hopDuration.recordMs(now - this.#takenMs - toolMs, { hop: 'agent', agent }, this.#options.hop.carrier());
  }
}

/** Whether the turn waits for its client from this event to the next one. */
function isWaiting(event: AgentEvent): boolean {
  return event.type === 'auth-required' || (event.type === 'tool' && event.waiting === true);
}
