import type { Audit, Percentiles, ProducerActivity, TaskBelow, TaskTrace, VisibleEvent } from '@hopline/task-audit';
import { costLabel, duration, endOf, modelNote, percent, plural, slowestOf, waterfallOf } from '@hopline/task-audit/waterfall';
import { timeOfDay } from '@hopline/telemetry/log-line';

/** Maximum number of chunks of a task that are printed one by one; a longer task has one line for each run of chunks. */
export const CHUNK_LINES_MAX = 40;
/** Width in columns of a trace that is not printed on a terminal. */
const TRACE_COLUMNS = 110;
/** Fewest columns of a bar: narrower bars would all look alike. */
const BAR_COLUMNS_MIN = 10;
const BAR_COLUMNS_MAX = 60;

/** A trace as text: the waterfall of its hops, and the hop that cost the most. Numbers and names, never text. */
export function traceLines(trace: TaskTrace, columns = TRACE_COLUMNS): string[] {
  const { taskId, contextId, state, fault, startedAt, nowMs, traces, unsampled = [], partial = [], events } = trace;
  const last = events.at(-1);
  const slowest = slowestOf(trace);
  const why = fault === undefined ? '' : ` (${fault.agent}: ${fault.reason})`;
  return [
    `task ${taskId} ${state}${why}, ${plural(last?.generation ?? 0, 'event')} in ${seconds(nowMs ?? last?.atMs ?? 0)}; context ${contextId}`,
    `started ${new Date(startedAt).toISOString()}; times of day are local, as in hopline logs`,
    ...traces.map(id => `trace ${id}${unsampled.includes(id) ? ' (not sampled: only log lines have it)' : ''}`),
    ...(partial.length === 0
      ? []
      : [`partial ${partial.join(', ')}: retention has removed the beginning, or the task was imported`]),
    '',
    ...waterfallLines(trace, columns),
    ...modelLines(trace),
    ...(slowest === undefined ? [] : ['', slowest]),
  ];
}

/** The rest of a trace: what each hop cost, the relays that stored it, the inputs of each producer, and the events that clients received. */
export function detailLines(trace: TaskTrace, everyChunk: boolean): string[] {
  return [
    '',
    ...costLines(trace),
    '',
    ...chunkHopLines(trace),
    '',
    ...relayLines(trace),
    '',
    'producers',
    ...trace.producers.map(producerLine),
    '',
    'events',
    ...eventLines(trace, everyChunk),
  ];
}

/** The tasks below a task as a tree. */
export function treeLines(tasks: readonly TaskBelow[]): string[] {
  return ['', 'tasks below', ...levelLines(tasks, '  ')];
}

function levelLines(tasks: readonly TaskBelow[], indent: string): string[] {
  return tasks.flatMap(({ agent, turn, attempt, taskId, url, audited, fault, below }) => {
    const again = [...(turn > 1 ? [`turn ${turn}`] : []), ...(attempt > 1 ? [`attempt ${attempt}`] : [])].join(', ');
    const state =
      audited === undefined
        ? (fault ?? 'not read')
        : `${audited.state}, ${seconds(audited.durationMs)}, ${plural(audited.tokens, 'token')}`;
    const at = url === undefined ? '' : ` at ${url}`;
    return [
      `${indent}${agent}${again === '' ? '' : ` (${again})`}: task ${taskId}${at}: ${state}`,
      ...levelLines(below, `${indent}  `),
    ];
  });
}

function waterfallLines(trace: TaskTrace, columns: number): string[] {
  const rows = waterfallOf(trace);
  const endMs = endOf(trace);
  const labels = rows.map(({ label, kind }) => `${kind === 'tool' || kind === 'step' ? '    ' : '  '}${label}`);
  const labelWidth = labels.reduce((widest, label) => Math.max(widest, label.length), 0);
  const noteWidth = rows.reduce((widest, { note }) => Math.max(widest, note.length), 0);
  const left = columns - labelWidth - noteWidth - TIME_COLUMNS - 6;
  const width = Math.min(BAR_COLUMNS_MAX, Math.max(BAR_COLUMNS_MIN, left));
  const turns = new Set(rows.map(({ turn }) => turn));
  return [...turns].flatMap(turn => [
    `turn ${turn}`,
    ...rows.flatMap(({ fromMs, toMs, note, kind, turn: own }, index) => {
      if (own !== turn) return [];
      const time = timeOfDay(trace.startedAt + fromMs);
      return [`${time}  ${labels[index]!.padEnd(labelWidth)} |${bar(fromMs, toMs, endMs, width, BARS[kind])}| ${note}`];
    }),
  ]);
}

const TIME_COLUMNS = '00:00:00.000'.length;
const BARS = { hop: '█', tool: '▒', step: '▒', text: '▓', attempt: '█', takeover: '!', gap: '·' } as const;

function bar(fromMs: number, toMs: number, endMs: number, width: number, mark: string): string {
  const start = Math.min(width - 1, Math.max(0, Math.floor((fromMs / endMs) * width)));
  const length = Math.max(1, Math.min(width - start, Math.round(((toMs - fromMs) / endMs) * width)));
  return (' '.repeat(start) + mark.repeat(length)).padEnd(width);
}

/** An ingress of an earlier version reports no models. */
function modelLines({ models = [] }: TaskTrace): string[] {
  if (models.length === 0) return [];
  return ['', 'models', ...models.map(cost => `  ${cost.agent} ${cost.model}: ${modelNote(cost)}`)];
}

function costLines({ costs }: TaskTrace): string[] {
  const rows = costs.map(cost => [costLabel(cost), duration(cost.ms), percent(cost.share)]);
  return columnsOf([['time on the critical path', 'time', 'share'], ...rows]);
}

function chunkHopLines({ chunkHops, notRecorded }: TaskTrace): string[] {
  const rows = chunkHops.map(({ hop, count, p50, p99, max }) => [hop, `${count}`, ...[p50, p99, max].map(duration)]);
  return [
    ...columnsOf([['hops of one chunk', 'chunks', 'p50', 'p99', 'longest'], ...rows]),
    `  not recorded in the log: ${notRecorded.join(', ')}; see /metrics`,
  ];
}

function columnsOf(rows: readonly string[][]): string[] {
  const widths = rows.reduce<number[]>((widest, row) => row.map((cell, i) => Math.max(cell.length, widest[i] ?? 0)), []);
  return rows.map((row, index) => {
    const [first = '', ...rest] = row;
    const indent = index === 0 ? '' : '  ';
    const cells = rest.map((cell, i) => cell.padStart((widths[i + 1] ?? 0) + 3));
    return `${indent}${first.padEnd((widths[0] ?? 0) + 2 - indent.length)}${cells.join('')}`;
  });
}

function relayLines({ relays, startedAt }: TaskTrace): string[] {
  return [
    'relays',
    ...relays.map(({ relay = 'unknown', fromGeneration, records, fromMs, takeover }) => {
      const cause = takeover === undefined ? '' : `; took over at ${timeOfDay(startedAt + takeover.atMs)} (${takeover.cause})`;
      return `  ${relay}: ${plural(records, 'record')}, from event ${fromGeneration} at ${timeOfDay(startedAt + fromMs)}${cause}`;
    }),
  ];
}

function producerLine(producer: ProducerActivity): string {
  const { id, agent, turn, attempt, cause, tokens, characters, otherEvents, firstMs, lastMs, gapMsMax, appendMs } = producer;
  const name = id === agent ? id : `${agent} (${id})`;
  const content = `${plural(tokens, 'token')}, ${plural(characters, 'character')}, ${plural(otherEvents, 'other event')}`;
  const times = `from ${seconds(firstMs)} to ${seconds(lastMs)}, longest gap ${gapMsMax} ms`;
  const which = `turn ${turn}, attempt ${attempt}${cause === undefined ? '' : ` (${cause})`}`;
  return `  ${name}, ${which}: ${content}; ${times}; acknowledged after ${spread(appendMs)}`;
}

function eventLines({ events, heldMs, ageMs }: TaskTrace, all: boolean): string[] {
  const count = events.filter(({ chunk }) => chunk !== undefined).length;
  const runs = all || count <= CHUNK_LINES_MAX ? events.map(event => [event]) : runsOf(events);
  const isFolded = runs.length < events.length;
  return [
    ...runs.map(run => (run.length === 1 ? eventLine(run[0]!) : runLine(run))),
    ...(isFolded ? ['  (chunks are folded: --chunks prints each)'] : []),
    '',
    `relay: ${count} chunks; oldest token held ${spread(heldMs)}; ${spread(ageMs)} old when stored`,
  ];
}

/** Consecutive chunks of one artifact and attempt. */
function runsOf(events: readonly VisibleEvent[]): VisibleEvent[][] {
  const runs: VisibleEvent[][] = [];
  for (const event of events) {
    const run = runs.at(-1);
    if (run !== undefined && continues(event, run.at(-1)!)) run.push(event);
    else runs.push([event]);
  }
  return runs;
}

function continues(event: VisibleEvent, before: VisibleEvent): boolean {
  if (event.chunk === undefined || before.chunk === undefined) return false;
  return event.name === before.name && event.producer === before.producer && event.attempt === before.attempt;
}

function runLine(run: readonly VisibleEvent[]): string {
  const [first, last] = [run[0]!, run.at(-1)!];
  const sum = (read: (event: VisibleEvent) => number) => run.reduce((total, event) => total + read(event), 0);
  const max = (read: (event: VisibleEvent) => number) => run.reduce((most, event) => Math.max(most, read(event)), 0);
  const from = first.agent === undefined ? '' : ` of ${first.agent}`;
  const size = `${plural(run.length, 'chunk')}, ${sum(({ characters }) => characters)} characters, ${sum(({ chunk }) => chunk!.tokens)} tokens`;
  const slowest = `held at most ${max(({ chunk }) => chunk!.heldMs)} ms, at most ${max(({ chunk }) => chunk!.ageMs)} ms old`;
  const numbers = `${first.generation}-${last.generation}`;
  return `  ${numbers.padStart(9)} ${seconds(first.atMs).padStart(10)}  ${first.name}${from}, ${size}, until ${seconds(last.atMs)}, ${slowest}`;
}

export function eventLine({ generation, atMs, storedMs, name, characters, append, last, agent, chunk }: VisibleEvent): string {
  const marks = [append ? '+' : '', last ? '.' : ''].join('');
  const from = agent === undefined ? '' : ` of ${agent}`;
  const size = characters > 0 ? `, ${characters} characters` : '';
  const stored = storedMs === undefined || chunk !== undefined ? '' : `, stored after ${Math.max(0, storedMs - atMs)} ms`;
  return `  ${String(generation).padStart(9)} ${seconds(atMs).padStart(10)}  ${name}${marks}${from}${size}${chunk === undefined ? stored : chunkText(chunk)}`;
}

function chunkText({
  tokens,
  reason,
  firstSeq,
  lastSeq,
  publishMs,
  heldMs,
  waitMs,
  appendMs,
  ageMs,
}: NonNullable<VisibleEvent['chunk']>) {
  const inputs = firstSeq === lastSeq ? `input ${firstSeq}` : `inputs ${firstSeq} to ${lastSeq}`;
  const append = appendMs === undefined ? '' : `, append ${appendMs} ms`;
  const hops = `publish ${publishMs} ms, hold ${heldMs} ms, wait_for_append ${waitMs} ms${append}`;
  return `, ${plural(tokens, 'token')} of ${inputs}, ${reason}, ${hops}; ${ageMs} ms old`;
}

/** Printed instead of a verdict. */
export const INCOMPLETE = 'records have expired, or the task was imported: what is missing cannot be determined';

/** Received, accepted, rejected, merged and unaccounted inputs of each kind, and the verdict. */
export function auditLines(audit: Audit): string[] {
  const { tallies, chunks, mergedTokens, unaccounted, incomplete } = audit;
  const lines = Object.entries(tallies)
    .filter(([, { received }]) => received > 0)
    .map(([kind, { received, accepted, duplicates, pending, rejected }]) => {
      const reasons = Object.entries(rejected).map(([reason, count]) => `${count} rejected (${reason})`);
      const parts = [`${accepted} accepted`, ...reasons, ...(duplicates > 0 ? [`${duplicates} duplicates`] : [])];
      if (pending > 0) parts.push(`${pending} pending`);
      if (kind === 'text') parts.push(`${chunks} chunks out, ${mergedTokens} merged`);
      const lost = incomplete ? 0 : (unaccounted[kind as keyof typeof unaccounted] ?? 0);
      return `  ${kind}: ${received} in, ${parts.join(', ')}${lost === 0 ? '' : `, ${lost} UNACCOUNTED`}`;
    });
  return ['', 'audit', ...lines, `  ${verdictOf(audit)}`];
}

export function verdictOf({ differing, incomplete, unaccounted }: Audit): string {
  if (incomplete) return INCOMPLETE;
  if (differing.length > 0) return `DIFFERENT TEXT in ${differing.join(', ')}`;
  return Object.values(unaccounted).some(count => count !== 0)
    ? 'inputs are UNACCOUNTED for'
    : 'all text is complete and unchanged';
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(3)} s`;
}

function spread({ count, p50, p99, max }: Percentiles): string {
  return count === 0 ? 'none' : `p50 ${p50} ms, p99 ${p99} ms, max ${max} ms`;
}
