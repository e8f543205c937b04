import { createHash } from 'node:crypto';
import { isBalanced, type TaskReport, type TracedChunk, type VisibleEvent } from '@hopline/task-audit';
import {
  costLabel,
  costText,
  duration,
  endOf,
  GAP_CAUSES,
  percent,
  plural,
  slowestOf,
  TAKEOVER_CAUSES,
  type WaterfallRow,
  waterfallOf,
} from '@hopline/task-audit/waterfall';
import { timeOfDay } from '@hopline/telemetry/log-line';
import { withoutControls } from '@hopline/terminal';
import { INCOMPLETE } from './trace-lines.ts';

/** Columns of a chart: chunks that are closer together share one. */
export const CHART_COLUMNS = 300;
/** Maximum number of rows in the table of events; later events are left out. */
export const EVENT_ROWS_MAX = 2_000;

const CHART_WIDTH = 1_000;
const CHART_HEIGHT = 100;

/** Markup, as opposed to text. */
class Markup {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

type Content = Markup | string | number | readonly Content[];

const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };

/** A template of markup. Every value that is not itself Markup is escaped as text. */
function html(parts: TemplateStringsArray, ...values: Content[]): Markup {
  return new Markup(parts.reduce((page, part, index) => page + markupOf(values[index - 1]!) + part));
}

function markupOf(value: Content): string {
  if (value instanceof Markup) return value.text;
  if (Array.isArray(value)) return value.map(markupOf).join('');
  return withoutControls(String(value)).replace(/[&<>"']/g, character => ENTITIES[character]!);
}

/** Renders the trace as one page without scripts or requests, with only numbers and names. Pure. */
export function tracePage(report: TaskReport): string {
  const { taskId, state, startedAt, traces, unsampled = [], contextId, partial = [], events } = report;
  const endMs = endOf(report);
  const rows = waterfallOf(report);
  const slowest = slowestOf(report);
  const count = events.filter(({ chunk }) => chunk !== undefined).length;
  const page = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${new Markup(POLICY)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>Task ${taskId}</title>
<style>${new Markup(STYLE)}</style>
</head>
<body>
<header>
<h1>Task <code>${taskId}</code> <span class="state">${state}</span></h1>
<dl>
<dt>Started</dt><dd><time>${new Date(startedAt).toISOString()}</time></dd>
<dt>Duration</dt><dd>${duration(endMs)}, ${plural(events.at(-1)?.generation ?? 0, 'event')}, ${plural(count, 'chunk')}</dd>
<dt>Context</dt><dd><code>${contextId}</code></dd>
${traces.map(id => html`<dt>Trace</dt><dd><code>${id}</code>${unsampled.includes(id) ? ' (not sampled)' : ''}</dd>`)}
${slowest === undefined ? [] : html`<dt>Slowest</dt><dd>${slowest.replace('slowest: ', '')}</dd>`}
${partial.length === 0 ? [] : html`<dt>Partial</dt><dd>${partial.join(', ')}: the beginning is missing</dd>`}
<dt>Audit</dt><dd>${auditText(report)}</dd>
</dl>
</header>
<main>
${[...new Set(rows.map(({ turn }) => turn))].map(turn => turnSection(report, rows, turn, endMs))}
${chartSections(report, endMs)}
${costsTables(report)}
${modelsTable(report)}
${gapsTable(report)}
${relaysTable(report)}
${producersTable(report)}
${eventsTable(report)}
</main>
</body>
</html>
`;
  return page.text;
}

function auditText({ audit }: TaskReport): string {
  if (audit.incomplete) return INCOMPLETE;
  return isBalanced(audit) ? 'all text is complete and unchanged' : 'inputs are unaccounted for, or text differs';
}

function turnSection({ startedAt }: TaskReport, rows: readonly WaterfallRow[], turn: number, endMs: number): Markup {
  const rowsOfTurn = rows.filter(row => row.turn === turn);
  return html`<section>
<h2>Waterfall of turn ${turn}</h2>
<table class="waterfall">
<thead><tr><th>Time</th><th>Hop</th><th class="wide"><span class="axis"><span>0 s</span><span>${duration(endMs)}</span></span></th><th>Duration and cause</th></tr></thead>
<tbody>
${rowsOfTurn.map(
  ({ kind, label, fromMs, toMs, note }) => html`<tr class="${kind}">
<td>${timeOfDay(startedAt + fromMs)}</td><td>${label}</td>
<td class="wide"><svg viewBox="0 0 ${CHART_WIDTH} 10" preserveAspectRatio="none" aria-hidden="true">${barRect(fromMs, toMs, endMs)}</svg></td>
<td>${note}</td></tr>
`,
)}</tbody>
</table>
</section>`;
}

/** At least two units wide, so that a short hop is seen. */
function barRect(fromMs: number, toMs: number, endMs: number): Markup {
  const x = xOf(fromMs, endMs);
  return html`<rect x="${x}" y="0" width="${fixed(Math.max(2, xOf(toMs, endMs) - x))}" height="10"></rect>`;
}

const xOf = (ms: number, endMs: number) => fixed(Math.min(CHART_WIDTH, Math.max(0, (ms / endMs) * CHART_WIDTH)));
const fixed = (value: number) => Math.round(value * 10) / 10;

type ChartColumn = { index: number; chunks: number; tokens: number; slowest: TracedChunk };

/**
 * Groups chunks by time into at most CHART_COLUMNS columns. A column counts its chunks and tokens, and names the chunk whose oldest token
 * had waited longest when it was stored.
 */
export function chartColumns(events: readonly VisibleEvent[], endMs: number): ChartColumn[] {
  const columns = new Map<number, ChartColumn>();
  for (const { chunk, atMs } of events) {
    if (chunk === undefined) continue;
    const index = Math.min(CHART_COLUMNS - 1, Math.max(0, Math.floor((atMs / endMs) * CHART_COLUMNS)));
    const column = columns.get(index);
    if (column === undefined) columns.set(index, { index, chunks: 1, tokens: chunk.tokens, slowest: chunk });
    else {
      column.chunks += 1;
      column.tokens += chunk.tokens;
      if (ageOf(chunk) > ageOf(column.slowest)) column.slowest = chunk;
    }
  }
  return [...columns.values()];
}

const ageOf = ({ ageMs, appendMs = 0 }: TracedChunk) => ageMs + appendMs;

function chartSections(report: TaskReport, endMs: number): Markup {
  const columns = chartColumns(report.events, endMs);
  if (columns.length === 0) return html``;
  const tokensMax = columns.reduce((most, { tokens }) => Math.max(most, tokens), 1);
  const ageMax = columns.reduce((most, { slowest }) => Math.max(most, ageOf(slowest)), 1);
  const width = CHART_WIDTH / CHART_COLUMNS;
  const tokens = columns.map(({ index, tokens: own, chunks }) => {
    const height = fixed((own / tokensMax) * CHART_HEIGHT);
    const title = `${plural(own, 'token')} in ${plural(chunks, 'chunk')}`;
    return html`<rect class="tokens" x="${fixed(index * width)}" y="${CHART_HEIGHT - height}" width="${fixed(width)}" height="${height}"><title>${title}</title></rect>`;
  });
  const hops = columns.map(({ index, slowest }) => stackedRects(slowest, fixed(index * width), fixed(width), ageMax));
  return html`<section>
<h2>Chunks over time</h2>
<p>Tokens stored, the most in one column: ${tokensMax}. Hatched: gaps. Lines: takeovers.</p>
${chart(report, endMs, tokens, 'Tokens stored over time')}
<h2>Hops of the slowest chunk of each column</h2>
<p class="legend">${CHUNK_HOPS.map(([hop]) => html`<span class="${hop}">${hop}</span> `)}; the longest: ${duration(ageMax)}</p>
${chart(report, endMs, hops, 'Time from token to log over time')}
</section>`;
}

const CHUNK_HOPS = [
  ['publish', 'publishMs'],
  ['hold', 'heldMs'],
  ['wait_for_append', 'waitMs'],
  ['append', 'appendMs'],
] as const;

function stackedRects(chunk: TracedChunk, x: number, width: number, ageMax: number): Markup {
  let top = CHART_HEIGHT;
  const title = CHUNK_HOPS.map(([hop, member]) => `${hop} ${chunk[member] ?? 0} ms`).join(', ');
  const rects = CHUNK_HOPS.map(([hop, member]) => {
    const height = ((chunk[member] ?? 0) / ageMax) * CHART_HEIGHT;
    top -= height;
    return html`<rect class="${hop}" x="${x}" y="${fixed(top)}" width="${width}" height="${fixed(height)}"></rect>`;
  });
  return html`<g><title>${title}, released: ${chunk.reason}</title>${rects}</g>`;
}

function chart({ gaps, relays }: TaskReport, endMs: number, content: readonly Markup[], label: string): Markup {
  const shades = gaps.map(({ fromMs, toMs, cause }) => {
    const x = xOf(fromMs, endMs);
    const title = `gap of ${duration(toMs - fromMs)}: ${GAP_CAUSES[cause] ?? cause}`;
    return html`<rect class="gap" x="${x}" y="0" width="${fixed(xOf(toMs, endMs) - x)}" height="${CHART_HEIGHT}"><title>${title}</title></rect>`;
  });
  const lines = relays.flatMap(({ takeover }) => {
    if (takeover === undefined) return [];
    const x = xOf(takeover.atMs, endMs);
    return [html`<line class="takeover" x1="${x}" x2="${x}" y1="0" y2="${CHART_HEIGHT}"></line>`];
  });
  return html`<svg class="chart" role="img" aria-label="${label}" viewBox="0 0 ${CHART_WIDTH} ${CHART_HEIGHT}" preserveAspectRatio="none">
<defs><pattern id="hatch" width="8" height="8" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect class="hatch" width="3" height="8"></rect></pattern></defs>
${shades}${content}${lines}</svg>
<p class="axis"><span>0 s</span><span>${duration(endMs / 2)}</span><span>${duration(endMs)}</span></p>`;
}

function table(title: string, heads: readonly string[], rows: readonly (readonly Content[])[]): Markup {
  if (rows.length === 0) return html``;
  return html`<section>
<h2>${title}</h2>
<table>
<thead><tr>${heads.map(head => html`<th>${head}</th>`)}</tr></thead>
<tbody>
${rows.map(row => html`<tr>${row.map(cell => html`<td>${cell}</td>`)}</tr>\n`)}</tbody>
</table>
</section>`;
}

function costsTables({ costs, chunkHops, notRecorded }: TaskReport): Markup {
  const rows = costs.map(cost => [costLabel(cost), duration(cost.ms), percent(cost.share)]);
  const chunks = chunkHops.map(({ hop, count, p50, p99, max }) => [hop, count, duration(p50), duration(p99), duration(max)]);
  return html`${table('What each hop cost', ['Hop', 'Time on the critical path', 'Share'], rows)}
${table('Hops of one chunk', ['Hop', 'Chunks', 'Median', 'p99', 'Longest'], chunks)}
<p>Not recorded in the log: ${notRecorded.join(', ')}.</p>`;
}

function modelsTable({ models = [] }: TaskReport): Markup {
  const heads = ['Agent', 'Model', 'Requests', 'Input', 'Cached', 'Output', 'Reasoning', 'Cost'];
  const rows = models.map(({ agent, model, requests, inputTokens, cachedTokens, outputTokens, reasoningTokens, cost }) => {
    const tokens = [inputTokens, cachedTokens, outputTokens, reasoningTokens].map(count => count ?? '');
    return [agent, model, requests, ...tokens, cost === undefined ? '' : costText(cost)];
  });
  return table('Models', heads, rows);
}

function gapsTable({ gaps, startedAt }: TaskReport): Markup {
  const rows = gaps.map(({ fromMs, toMs, generation, cause }) => {
    return [timeOfDay(startedAt + fromMs), duration(toMs - fromMs), GAP_CAUSES[cause] ?? cause, generation];
  });
  return table('Gaps', ['From', 'Duration', 'Cause', 'Event after it'], rows);
}

function relaysTable({ relays, startedAt }: TaskReport): Markup {
  const rows = relays.map(({ relay = 'unknown', fromGeneration, records, fromMs, takeover }) => {
    const cause = takeover === undefined ? '' : (TAKEOVER_CAUSES[takeover.cause] ?? takeover.cause);
    return [relay, timeOfDay(startedAt + fromMs), fromGeneration, records, cause];
  });
  return table('Relays', ['Relay', 'First record', 'First event', 'Records', 'Takeover'], rows);
}

function producersTable({ producers }: TaskReport): Markup {
  const rows = producers.map(({ agent, id, turn, attempt, cause = '', tokens, characters, gapMsMax, appendMs }) => {
    return [
      agent,
      id,
      turn,
      `${attempt}${cause === '' ? '' : ` (${cause})`}`,
      tokens,
      characters,
      duration(gapMsMax),
      duration(appendMs.p99),
    ];
  });
  const heads = ['Agent', 'Producer', 'Turn', 'Attempt', 'Tokens', 'Characters', 'Longest silence', 'Acknowledged (p99)'];
  return table('Producers', heads, rows);
}

function eventsTable({ events, startedAt }: TaskReport): Markup {
  const rows = events.slice(0, EVENT_ROWS_MAX).map(event => {
    const { generation, seq, atMs, name, characters, agent = '', chunk } = event;
    const base = [`${generation}.${seq}`, timeOfDay(startedAt + atMs), name, agent, characters];
    if (chunk === undefined) return [...base, '', '', '', '', '', '', ''];
    const { tokens, firstSeq, lastSeq, publishMs, heldMs, waitMs, appendMs = '', reason } = chunk;
    return [...base, tokens, `${firstSeq} to ${lastSeq}`, publishMs, heldMs, waitMs, appendMs, reason];
  });
  const more = events.length - EVENT_ROWS_MAX;
  const heads = [
    'Cursor',
    'Time',
    'Event',
    'Agent',
    'Characters',
    'Tokens',
    'Inputs',
    'publish',
    'hold',
    'wait_for_append',
    'append',
    'Released',
  ];
  const note = more > 0 ? html`<p>and ${plural(more, 'more event')}: hopline trace --chunks prints all</p>` : html``;
  return html`<details><summary>${plural(events.length, 'event')}, times in ms</summary>${table('Events', heads, rows)}${note}</details>`;
}

const STYLE = `
:root { color-scheme: light dark; --text: #1b1f24; --back: #fff; --dim: #57606a; --line: #d0d7de; --hop: #0969da; --tool: #8250df;
  --output: #1a7f37; --retry: #bc4c00; --gap: #9a6700; --takeover: #cf222e; --hold: #bf8700; --wait: #bc4c00; --append: #6e7781; }
@media (prefers-color-scheme: dark) { :root { --text: #e6edf3; --back: #0d1117; --dim: #9198a1; --line: #3d444d; --hop: #58a6ff;
  --tool: #bc8cff; --output: #3fb950; --retry: #f0883e; --gap: #d29922; --takeover: #ff7b72; --hold: #e3b341; --wait: #f0883e; --append: #8b949e; } }
body { margin: 0 auto; max-width: 80rem; padding: 1rem; color: var(--text); background: var(--back); font: 14px/1.45 system-ui, sans-serif; }
h1 { font-size: 1.3rem; overflow-wrap: anywhere; } h2 { font-size: 1.05rem; margin: 1.5rem 0 .4rem; }
.state { color: var(--dim); font-weight: normal; } p { margin: .3rem 0; color: var(--dim); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; margin: 0; } dt { color: var(--dim); } dd { margin: 0; overflow-wrap: anywhere; }
section { overflow-x: auto; } table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th { text-align: left; font-weight: normal; color: var(--dim); } th, td { padding: .15rem .6rem .15rem 0; border-bottom: 1px solid var(--line); white-space: nowrap; }
.wide { width: 60%; min-width: 12rem; } .waterfall svg { display: block; width: 100%; height: 12px; } .tool td:nth-child(2), .step td:nth-child(2) { padding-left: 1.2rem; }
.axis { display: flex; justify-content: space-between; } rect { fill: var(--hop); } .tool rect, .step rect { fill: var(--tool); } .text rect, rect.tokens { fill: var(--output); }
.attempt rect { fill: var(--retry); } .gap rect, rect.hatch { fill: var(--gap); opacity: .5; } rect.gap { fill: url(#hatch); } .takeover rect { fill: var(--takeover); }
.chart { display: block; width: 100%; height: 9rem; border-bottom: 1px solid var(--line); } line.takeover { stroke: var(--takeover); stroke-width: 2; vector-effect: non-scaling-stroke; }
rect.publish { fill: var(--hop); } rect.hold { fill: var(--hold); } rect.wait_for_append { fill: var(--wait); } rect.append { fill: var(--append); }
.legend span { border-left: .8rem solid var(--hop); padding: 0 .6rem 0 .3rem; } .legend .hold { border-color: var(--hold); }
.legend .wait_for_append { border-color: var(--wait); } .legend .append { border-color: var(--append); } summary { margin: 1.5rem 0 .4rem; cursor: pointer; }
`;

/** No script, no request, no form; only the one style sheet above. */
const POLICY = `default-src 'none'; style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'; base-uri 'none'; form-action 'none'`;
