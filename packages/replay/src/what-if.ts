import { type CoalesceSettings, checkSettings, DEFAULT_SETTINGS, offlineOptimum } from '@hopline/coalesce';
import { type AgentInput, type AgentRecord, type Fact, isVisible, type Producer } from '@hopline/events';
import type { StoredInput } from '@hopline/log';
import { SUPERVISOR, withDecidedConditions } from '@hopline/task';
import type { StoredTask } from './stored-task.ts';
import { type TextDelays, textDelays } from './text-delays.ts';
import { timedReplay } from './timed-replay.ts';

/** The events that clients would have received, and how long text would have waited for them. */
export type WhatIfRow = {
  /** Undefined for the row of the recording. */
  coalesce: Pick<CoalesceSettings, 'eventCostMs' | 'holdMsMax'> | undefined;
  /** Events that each client receives. */
  frames: number;
  chunks: number;
  tokens: number;
  /** Hold of the oldest token of each chunk in milliseconds; 0 without a chunk. */
  heldMs: { p50: number; p99: number; max: number };
  /**
   * `ms`: (chunks x event cost) + delay of every token. `optimumMs`: the lowest such sum for the same arrivals if they are known in
   * advance. No rule can cost less, except through text that waits beyond `holdMsMax` for the other half of a character. Absent for the
   * recording, whose settings are unknown.
   */
  cost?: { ms: number; optimumMs: number };
};

export type WhatIfOptions = {
  settings: readonly Partial<CoalesceSettings>[];
  /** Omits what the supervisor adds for its clients (plan, notices, the whole answer again), as in a profile that forwards. */
  forwards?: boolean;
};

/** Replays recorded tasks under other settings of the coalescer. Nothing is compared with the stored facts. */
export class WhatIf {
  readonly #options: WhatIfOptions;
  readonly #recorded = new Tally(undefined);
  readonly #tallies: Tally[];
  tasks = 0;

  /** Throws RangeError for settings that are out of bounds. */
  constructor(options: WhatIfOptions) {
    this.#options = options;
    this.#tallies = options.settings.map(settings => {
      const complete = { ...DEFAULT_SETTINGS, ...settings };
      checkSettings(complete);
      return new Tally(complete);
    });
  }

  add({ taskId, facts, inputs }: StoredTask): void {
    this.tasks += 1;
    const recorded = facts.flatMap(({ record }) => record.facts);
    this.#recorded.add(recorded);
    const decided = withDecidedConditions(inputs, recorded);
    const used = withoutHolds(this.#options.forwards ? forwarded(decided) : decided);
    for (const tally of this.#tallies) {
      const made = timedReplay({ taskId, inputs: used }, { coalesce: tally.coalesce! });
      tally.add(made.map(({ fact }) => fact));
      tally.addCost(textDelays(used, made));
    }
  }

  /** The rows; the first one is the recording. */
  get rows(): WhatIfRow[] {
    return [this.#recorded, ...this.#tallies].map(tally => tally.row);
  }
}

class Tally {
  readonly coalesce: CoalesceSettings | undefined;
  readonly #heldMs: number[] = [];
  #costMs = 0;
  #optimumMs = 0;
  #frames = 0;
  #tokens = 0;

  constructor(coalesce: CoalesceSettings | undefined) {
    this.coalesce = coalesce;
  }

  add(facts: readonly Fact[]): void {
    for (const fact of facts) {
      if (isVisible(fact)) this.#frames += 1;
      if (fact.kind !== 'artifact.updated' || fact.chunk === undefined) continue;
      this.#tokens += fact.chunk.count;
      this.#heldMs.push(fact.chunk.heldMs);
    }
  }

  addCost({ chunks, delayMs, lanes }: TextDelays): void {
    const { eventCostMs, holdMsMax } = this.coalesce!;
    this.#costMs += chunks * eventCostMs + delayMs;
    for (const times of lanes) this.#optimumMs += offlineOptimum(times, eventCostMs, holdMsMax).cost;
  }

  get row(): WhatIfRow {
    const sorted = Float64Array.from(this.#heldMs).sort();
    const at = (percent: number) => sorted[Math.max(1, Math.ceil((percent / 100) * sorted.length)) - 1] ?? 0;
    return {
      coalesce: this.coalesce && { eventCostMs: this.coalesce.eventCostMs, holdMsMax: this.coalesce.holdMsMax },
      frames: this.#frames,
      chunks: sorted.length,
      tokens: this.#tokens,
      heldMs: { p50: at(50), p99: at(99), max: at(100) },
      ...(this.coalesce && { cost: { ms: this.#costMs, optimumMs: this.#optimumMs } }),
    };
  }
}

const SHOWN: ReadonlySet<AgentInput['kind']> = new Set<AgentInput['kind']>(['open', 'text', 'close', 'artifact']);

/** Removes the supervisor's artifacts from the inputs, and lets the first chunk of an artifact also be its last. */
function forwarded(inputs: readonly StoredInput[]): StoredInput[] {
  const next = new Map<string, number>();
  return inputs.flatMap(input => {
    const { record } = input;
    if (!('inputs' in record)) return [input];
    const kept = record.inputs
      .filter(({ kind }) => record.from.id !== SUPERVISOR || !SHOWN.has(kind))
      .map(one => (one.kind === 'open' ? { ...one, artifact: { ...one.artifact, separateClose: undefined } } : one));
    if (kept.length === 0) return [];
    // Omitted inputs take no ordinals; otherwise the next input would follow a gap.
    const key = runOf(record.from);
    const n = record.from.id === SUPERVISOR ? (next.get(key) ?? 1) : record.n;
    next.set(
      key,
      kept.reduce((sum, one) => sum + (one.kind === 'text' ? one.tokens.length : 1), n),
    );
    return [{ ...input, record: { ...record, n, inputs: kept as AgentInput[] } }];
  });
}

/**
 * The inputs as they would have been stored if no producer had held text. Each token is stored as long after its creation as its record was
 * stored after the end of the hold. Only then do other settings show how long text would have waited. Tokens of several producers are in
 * the order of these times, and those of one producer in its own order.
 */
function withoutHolds(inputs: readonly StoredInput[]): StoredInput[] {
  const newestOf = new Map<string, number>();
  let newestMs = 0;
  const apart = inputs.flatMap(input => {
    const { record } = input;
    // The clock of the log may have been set back, for example by another leader.
    newestMs = Math.max(newestMs, input.storedAt);
    const storedAt = newestMs;
    if (!('inputs' in record)) return [{ ...input, storedAt }];
    const { heldMs, inputs: together, n: firstN, ...rest } = record;
    const producer = runOf(record.from);
    const single = (atMs: number, record: AgentRecord) => {
      const ms = Math.min(storedAt, Math.max(atMs, newestOf.get(producer) ?? 0));
      newestOf.set(producer, ms);
      return { ...input, storedAt: ms, record };
    };
    if (heldMs === undefined) return [single(storedAt, record)];
    const oldest = together.find(one => one.kind === 'text');
    const wayMs = storedAt - (record.at + (oldest?.dt?.[0] ?? 0) + heldMs);
    let n = firstN;
    const recordOf = (at: number, content: AgentInput): AgentRecord => ({ ...rest, at, n: n++, inputs: [content] });
    return together.flatMap(one => {
      if (one.kind !== 'text') return [single(storedAt, recordOf(record.at, one))];
      return one.tokens.map((token, index) => {
        const atMs = record.at + (one.dt?.[index] ?? 0);
        return single(atMs + wayMs, recordOf(atMs, { ...one, tokens: [token], dt: [0], ids: [] }));
      });
    });
  });
  // Sequences only show the order here.
  return apart.toSorted((one, other) => one.storedAt - other.storedAt).map((input, index) => ({ ...input, seq: index + 1 }));
}

function runOf({ id, turn, item, attempt }: Producer): string {
  return `${id}/${turn}/${item}/${attempt}`;
}
