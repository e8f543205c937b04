import { layout, type Output, type Run } from './terminal.ts';

/** A recorded run. Its times are those of the picture, in which long pauses are cut. */
export type Recording = {
  columns: number;
  panes: { title: string; rows: number; outputs: Output[] }[];
  /** When the relay was killed, and when the next text of the answer arrived. */
  killMs: number;
  againMs: number;
  /** The time between both in the run itself. */
  silentMs: number;
};

const CELL_PX = 8.4;
const ROW_PX = 19;
const PAD_PX = 14;
const TITLE_PX = 28;
/** How long the last frame stays before the picture starts again. */
const HOLD_MS = 6_000;

/** The recording as an animated SVG: plain text with styles, no script. A reader who asks for reduced motion sees its end. */
export function render({ columns, panes, killMs, againMs, silentMs }: Recording): string {
  const laid = panes.map(({ title, rows, outputs }) => ({ title, visible: rows, runs: layout(outputs, columns) }));
  const endMs = Math.max(...laid.flatMap(({ runs }) => runs.map(({ ms }) => ms))) + HOLD_MS;
  const percent = (ms: number) => `${Number(((ms / endMs) * 100).toFixed(3))}%`;
  const times = [...new Set(laid.flatMap(({ runs }) => runs.map(({ ms }) => ms)))].toSorted((a, b) => a - b);
  const width = Math.ceil(columns * CELL_PX + 2 * PAD_PX);
  const styles = times.map(ms => `.t${ms}{animation-name:t${ms}}@keyframes t${ms}{0%{opacity:0}${percent(ms)}{opacity:1}}`);
  const bodies: string[] = [];
  let top = 0;
  for (const [index, { title, visible, runs }] of laid.entries()) {
    const height = TITLE_PX + visible * ROW_PX + PAD_PX;
    styles.push(scrolling(`s${index}`, runs, visible, percent));
    bodies.push(
      `<svg y="${top}" width="${width}" height="${height}">`,
      `<text class="title" x="${PAD_PX}" y="18">${escaped(title)}</text>`,
      ...(index === 0
        ? [
            `<text class="gone a" x="${width - PAD_PX}" y="18" text-anchor="end">relay killed: ${seconds(silentMs)} without text</text>`,
          ]
        : []),
      `<svg y="${TITLE_PX}" width="${width}" height="${visible * ROW_PX + 4}"><g class="a s${index}">`,
      ...runs.map(runText),
      '</g></svg></svg>',
    );
    top += height;
    if (index < panes.length - 1) bodies.push(`<path class="line" d="M0 ${top}h${width}"/>`);
  }
  styles.push(`.gone{animation-name:gone;opacity:0}@keyframes gone{${percent(killMs)}{opacity:1}${percent(againMs)}{opacity:0}}`);
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${top}" width="${width}" height="${top}" role="img" aria-labelledby="name">`,
    '<title id="name">A client reads an answer; the relay is killed with kill -9 in mid-sentence, and the text continues where it stopped</title>',
    `<style>${style(endMs)}${styles.join('')}</style>`,
    `<rect class="back" width="${width}" height="${top}" rx="10"/>`,
    ...bodies,
    '</svg>',
    '',
  ].join('\n');
}

/** A style moves up by a row whenever the text would leave the pane. */
function scrolling(name: string, runs: readonly Run[], visible: number, percent: (ms: number) => string): string {
  const steps: string[] = ['0%{transform:none}'];
  let offset = 0;
  for (const { ms, row } of runs) {
    if (row - visible + 1 <= offset) continue;
    offset = row - visible + 1;
    steps.push(`${percent(ms)}{transform:translateY(${-offset * ROW_PX}px)}`);
  }
  // If several moves happen at the same time, only the last one counts.
  const last = new Map(steps.map(step => [step.split('{')[0]!, step]));
  return `.${name}{animation-name:${name};transform:translateY(${-offset * ROW_PX}px)}@keyframes ${name}{${[...last.values()].join('')}}`;
}

function runText({ ms, row, column, cells, text, style: kind }: Run): string {
  const x = Number((PAD_PX + column * CELL_PX).toFixed(1));
  const shown = text.trimEnd();
  if (shown === '') return '';
  // Fonts differ in width; a terminal does not.
  const length = Number(((cells - (text.length - shown.length)) * CELL_PX).toFixed(1));
  const classes = ['a', `t${ms}`, ...(kind === 'plain' ? [] : [kind])].join(' ');
  return `<text class="${classes}" x="${x}" y="${row * ROW_PX + 14}" textLength="${length}">${escaped(shown)}</text>`;
}

const seconds = (ms: number) => `${(ms / 1_000).toFixed(1)} s`;
const escaped = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

function style(endMs: number): string {
  return [
    'svg{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:#1b1f27}',
    'text{white-space:pre}',
    `.a{animation-duration:${endMs}ms;animation-timing-function:step-end;animation-iteration-count:infinite}`,
    '.back{fill:#f6f7f9;stroke:#dfe3ea}.line{stroke:#dfe3ea}.title{font-size:12px;fill:#5d6675}',
    '.dim{fill:#5d6675}.bold{font-weight:600}.red,.gone{fill:#b3261e}.gone{font-size:12px;font-weight:600}',
    '@media(prefers-color-scheme:dark){svg{fill:#e6e9ef}.back{fill:#101216;stroke:#2b303a}.line{stroke:#2b303a}',
    '.title,.dim{fill:#98a2b3}.red,.gone{fill:#ff8a80}}',
    '@media(prefers-reduced-motion:reduce){.a{animation:none}}',
  ].join('');
}
