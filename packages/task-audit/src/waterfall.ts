import type { PathHop } from './critical-path.ts';
import type { ModelCost } from './model-costs.ts';
import type { ProducerActivity } from './producers.ts';
import type { TaskTrace, TracedGap, VisibleEvent } from './trace.ts';
import { stepName, stepText } from './traced-steps.ts';

/** A row of the waterfall: a bar from `fromMs` to `toMs` after the task's first input. */
export type WaterfallRow = {
  kind: 'hop' | 'tool' | 'step' | 'text' | 'attempt' | 'takeover' | 'gap';
  turn: number;
  label: string;
  fromMs: number;
  toMs: number;
  /** Figures and causes, printed after the bar. */
  note: string;
};

/** Why a relay took over, in words. */
export const TAKEOVER_CAUSES: Readonly<Record<string, string>> = {
  fresh: 'the shard had no owner',
  released: 'the relay before it released the shard',
  lost: 'the relay before it died',
  restarted: 'the shard failed and started again in the same relay',
};

/** The cause of a gap, in words. */
export const GAP_CAUSES: Readonly<Record<TracedGap['cause'], string>> = {
  client: 'the task waited for its client',
  takeover: 'a relay took over',
  attempt: 'the work was repeated',
  queue: 'work waited for a free worker',
  tool: 'a tool ran',
  relay: 'text waited in the relay',
  agent: 'the producers wrote nothing',
};

const ATTEMPT_CAUSES = {
  requeue: 'after its item was returned',
  redelivery: 'after the attempt before failed or its worker died',
} as const;

/** The hops of a task, the text of each producer, repeated attempts, takeovers and gaps, in the order of their beginnings. */
export function waterfallOf(trace: TaskTrace): WaterfallRow[] {
  const { hops, relays, gaps, producers } = trace;
  const turnAt = (ms: number) => producers.findLast(({ firstMs }) => firstMs <= ms)?.turn ?? 1;
  const rows = [
    ...openRows(trace),
    ...hops.map(({ hop, turn, fromMs, toMs, ms, agent, name }): WaterfallRow => {
      const label = [hop, agent, name].filter(word => word !== undefined).join(' ');
      return { kind: hop === 'tool' ? 'tool' : 'hop', turn, label, fromMs, toMs, note: duration(ms) };
    }),
    ...producers.flatMap(producer => attemptRows(producer)),
    ...producers.flatMap(producer => stepRows(producer)),
    ...producers.flatMap(producer => textRows(producer, trace)),
    ...relays.flatMap(({ relay, takeover, fromMs }): WaterfallRow[] => {
      if (takeover === undefined) return [];
      const { atMs, cause } = takeover;
      const note = `${relay ?? 'another relay'}: ${TAKEOVER_CAUSES[cause] ?? cause}`;
      return [{ kind: 'takeover', turn: turnAt(atMs), label: 'takeover', fromMs: atMs, toMs: Math.max(atMs, fromMs), note }];
    }),
    ...gaps.map(({ fromMs, toMs, cause }): WaterfallRow => {
      const note = `${duration(toMs - fromMs)}: ${GAP_CAUSES[cause] ?? cause}`;
      return { kind: 'gap', turn: turnAt(fromMs), label: 'gap', fromMs, toMs, note };
    }),
  ];
  return rows.toSorted((a, b) => a.turn - b.turn || a.fromMs - b.fromMs || a.toMs - b.toMs);
}

/** The wait that lasts until now, in a turn that still runs. */
function openRows({ turns, nowMs }: TaskTrace): WaterfallRow[] {
  const { turn, path } = turns.at(-1) ?? { turn: 1, path: [] };
  const part = path.at(-1);
  if (nowMs === undefined || part === undefined || part.toMs < nowMs) return [];
  const { hop, fromMs, toMs } = part;
  const note = `${duration(toMs - fromMs)}, ${hop === 'silence' ? 'no event since' : 'and still lasts'}`;
  return [{ kind: 'gap', turn, label: costLabel(part), fromMs, toMs, note }];
}

/** The reason of a turn in which the item is only settled after the last attempt (packages/agent/src/run-attempt.ts). */
const ATTEMPTS_EXHAUSTED = 'attempts exhausted';

function attemptRows({
  agent,
  turn,
  attempt,
  takenMs,
  firstTokenMs,
  endMs,
  lastMs,
  cause,
  reason,
}: ProducerActivity): WaterfallRow[] {
  // The delivery after the last attempt stores only that no attempt is left.
  if (attempt === 1 || takenMs === undefined || reason === ATTEMPTS_EXHAUSTED) return [];
  const toMs = Math.max(takenMs, firstTokenMs ?? endMs ?? lastMs);
  const why = cause === undefined ? '' : `, ${ATTEMPT_CAUSES[cause]}`;
  const note = `${duration(toMs - takenMs)}${why}`;
  return [{ kind: 'attempt', turn, label: `attempt ${attempt} ${agent}`, fromMs: takenMs, toMs, note }];
}

/** Rows of the steps of one attempt. A turn may have a thousand. */
const STEP_ROWS_MAX = 50;

function stepRows({ agent, turn, steps = [] }: ProducerActivity): WaterfallRow[] {
  const rows = steps.slice(0, STEP_ROWS_MAX).map((step): WaterfallRow => {
    const { outcome, fromMs, toMs } = step;
    const isTimed = outcome === 'ran' || outcome === 'failed';
    const note = `${isTimed ? `${duration(toMs - fromMs)}, ` : ''}${stepText(step)}`;
    return { kind: 'step', turn, label: `step ${agent} ${stepName(step)}`, fromMs, toMs, note };
  });
  const more = steps.slice(STEP_ROWS_MAX);
  if (more.length === 0) return rows;
  const [fromMs, toMs] = [more[0]!.fromMs, more.at(-1)!.toMs];
  const reused = more.filter(({ outcome }) => outcome === 'reused').length;
  const note = `${reused} taken from earlier attempts`;
  return [...rows, { kind: 'step', turn, label: `${plural(more.length, 'more step')} ${agent}`, fromMs, toMs, note }];
}

/** A row for each producer's text, from the first token to the storage of the last chunk. */
function textRows(
  { id, agent, turn, attempt, tokens, firstTokenMs, lastTokenMs }: ProducerActivity,
  trace: TaskTrace,
): WaterfallRow[] {
  if (firstTokenMs === undefined || lastTokenMs === undefined) return [];
  const chunks = chunksOf(trace, { id, turn, attempt }).filter(({ atMs }) => atMs >= firstTokenMs);
  const stored = chunks.reduce((sum, { chunk }) => sum + chunk!.tokens, 0);
  // A producer may go on writing after the end of its task; those tokens are not part of the text.
  const lastMs = stored < tokens && chunks.length > 0 ? firstTokenMs : lastTokenMs;
  const toMs = chunks.reduce((latest, { atMs, storedMs = atMs }) => Math.max(latest, storedMs), lastMs);
  const count = stored < tokens ? `${stored} of ${plural(tokens, 'token')} stored` : plural(tokens, 'token');
  const note = `${duration(toMs - firstTokenMs)}, ${count} in ${plural(chunks.length, 'chunk')}`;
  return [{ kind: 'text', turn, label: `text ${agent}`, fromMs: firstTokenMs, toMs, note }];
}

/** The stored chunks of one attempt. */
export function chunksOf(
  { events }: Pick<TaskTrace, 'events'>,
  { id, turn, attempt }: Pick<ProducerActivity, 'id' | 'turn' | 'attempt'>,
): VisibleEvent[] {
  return events.filter(event => {
    return event.chunk !== undefined && event.producer === id && event.turn === turn && event.attempt === attempt;
  });
}

/** The hop that took the most of the critical path, in one sentence; undefined if the path has no hop. */
export function slowestOf({ costs, turns }: Pick<TaskTrace, 'costs' | 'turns'>): string | undefined {
  const [slowest] = costs;
  if (slowest === undefined) return undefined;
  const { ms, share } = slowest;
  const turnsText = turns.length === 1 ? 'the turn' : `${turns.length} turns`;
  return `slowest: ${costLabel(slowest)}, ${duration(ms)} of the ${duration(ms / share)} of ${turnsText} (${percent(share)})`;
}

/** The requests of an agent to a model, in words. An unknown number is left out. */
export function modelNote({ requests, inputTokens, cachedTokens, outputTokens, reasoningTokens, ms, cost }: ModelCost): string {
  const part = (tokens: number | undefined, word: string) => (tokens === undefined ? '' : ` (${tokens} ${word})`);
  return [
    `${plural(requests, 'request')} of ${duration(ms)} in all`,
    ...(inputTokens === undefined ? [] : [`${inputTokens} tokens in${part(cachedTokens, 'cached')}`]),
    ...(outputTokens === undefined ? [] : [`${outputTokens} out${part(reasoningTokens, 'reasoning')}`]),
    ...(cost === undefined ? [] : [`cost ${costText(cost)}`]),
  ].join(', ');
}

/** A cost with three digits, in the currency of the price file. */
export function costText(cost: number): string {
  return cost === 0 ? '0' : String(Number(cost.toPrecision(3)));
}

/** A hop with its agent. */
export function costLabel({ hop, agent }: { hop: PathHop; agent?: string }): string {
  return agent === undefined ? hop : `${hop} ${agent}`;
}

export function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}

const ENDED: ReadonlySet<string> = new Set(['completed', 'failed', 'canceled', 'rejected']);

/** The end of the task's time axis, milliseconds after its first input. */
export function endOf({ state, events, producers, hops, nowMs = 0 }: TaskTrace): number {
  // A producer may write on after the end of its task.
  const isOver = ENDED.has(state) && events.length > 0;
  const ends = [
    nowMs,
    ...events.map(({ atMs, storedMs = atMs }) => storedMs),
    ...(isOver ? [] : producers.map(({ lastMs }) => lastMs)),
    ...hops.map(({ toMs }) => toMs),
  ];
  return ends.reduce((latest, ms) => Math.max(latest, ms), 1);
}

export function duration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 120_000) return `${(ms / 1_000).toFixed(ms < 10_000 ? 2 : 1)} s`;
  return `${Math.floor(ms / 60_000)} m ${Math.floor((ms % 60_000) / 1_000)} s`;
}

export function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
