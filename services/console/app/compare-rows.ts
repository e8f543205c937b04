import { cutIndex, differingSpan } from '@hopline/a2a';
import type { TaskDiff, TaskMeasure } from '@hopline/replay/diff-tasks';
import type { TaskReport } from '@hopline/task-audit';
import { duration, endOf, waterfallOf } from '@hopline/task-audit/waterfall';

/** A figure of both tasks. `change`: from A to B; empty if one task lacks the figure. */
type MeasureRow = { name: string; a: string; b: string; change: string };

/** Figures that differ between any two runs: time, tokens and calls. Calls of one agent are matched in their order. */
export function measureRows({ a, b }: Pick<TaskDiff, 'a' | 'b'>): MeasureRow[] {
  const counted = (name: string, of: (task: TaskMeasure) => number) => rowOf(name, of(a), of(b), count);
  const timed = (name: string, one: number | undefined, other: number | undefined) => rowOf(name, one, other, duration);
  const [before, after] = [namedCalls(a), namedCalls(b)];
  return [
    timed('time', a.totalMs, b.totalMs),
    timed('first text after', a.firstTextMs, b.firstTextMs),
    counted('tokens', task => task.tokens),
    counted('characters', task => task.characters),
    counted('chunks', task => task.chunks),
    counted('frames', task => task.frames),
    ...[...new Set([...before.keys(), ...after.keys()])].map(name => timed(`call of ${name}`, before.get(name), after.get(name))),
  ];
}

/** Milliseconds by agent; further calls of an agent have a number. A call that has not ended has no value. */
function namedCalls({ calls }: TaskMeasure): Map<string, number | undefined> {
  const named = new Map<string, number | undefined>();
  for (const [agent, own] of Map.groupBy(calls, call => call.agent))
    for (const [index, { ms }] of own.entries()) named.set(index === 0 ? agent : `${agent}, number ${index + 1}`, ms);
  return named;
}

function rowOf(name: string, a: number | undefined, b: number | undefined, text: (value: number) => string): MeasureRow {
  const shown = (value: number | undefined) => (value === undefined ? '–' : text(value));
  return { name, a: shown(a), b: shown(b), change: a === undefined || b === undefined ? '' : changeOf(a, b, text) };
}

function changeOf(a: number, b: number, text: (value: number) => string): string {
  if (a === b) return 'same';
  const share = a === 0 ? '' : ` (${b > a ? '+' : '−'}${Math.round((100 * Math.abs(b - a)) / a)} %)`;
  return `${b > a ? '+' : '−'}${text(Math.abs(b - a))}${share}`;
}

const count = (value: number) => value.toLocaleString('en');

/** A time in which a hop took place, as fractions of the longer task. */
type TimeBar = { from: number; to: number; text: string };
/** The times of one hop in both tasks. */
export type TimeRow = { label: string; a: readonly TimeBar[]; b: readonly TimeBar[] };

/** More rows, or bars in one, would be unreadable. */
const TIME_ROWS_MAX = 60;
const TIME_BARS_MAX = 200;

/** The hops, tools and texts of two tasks on one axis, which both begin with their first input. */
export function timeRows(a: TaskReport, b: TaskReport): TimeRow[] {
  const endMs = Math.max(endOf(a), endOf(b));
  const [one, other] = [barsByLabel(a, endMs), barsByLabel(b, endMs)];
  const labels = [...new Set([...one.keys(), ...other.keys()])].slice(0, TIME_ROWS_MAX);
  return labels.map(label => ({ label, a: one.get(label) ?? [], b: other.get(label) ?? [] }));
}

function barsByLabel(report: TaskReport, endMs: number): Map<string, TimeBar[]> {
  const found = new Map<string, TimeBar[]>();
  for (const { kind, turn, label, fromMs, toMs } of waterfallOf(report)) {
    if (kind === 'gap') continue;
    const name = turn === 1 ? label : `${label}, turn ${turn}`;
    const bars = found.get(name) ?? [];
    if (bars.length < TIME_BARS_MAX) bars.push({ from: fromMs / endMs, to: toMs / endMs, text: duration(toMs - fromMs) });
    found.set(name, bars);
  }
  return found;
}

/** A text around the place where it differs from the other. `differing` is empty if it only lacks text of the other. */
type DifferingText = { before: string; differing: string; after: string };

/** Characters shown on each side of the difference between two texts. Equal text further away is omitted. */
export const CONTEXT_CHARS = 1_000;
/** Characters shown at each end of a longer difference, because a browser lays out all of it at once. */
export const DIFFERING_CHARS_MAX = 20_000;
/** Distance within which a cut is moved to a space. It is limited because some languages have no spaces. */
const WORD_CHARS_MAX = 100;

export function differingTexts(a: string, b: string): [DifferingText, DifferingText] {
  const { start, aEnd, bEnd } = differingSpan(a, b);
  return [aroundOf(a, start, aEnd), aroundOf(b, start, bEnd)];
}

function aroundOf(text: string, start: number, end: number): DifferingText {
  const [from, to] = [wordStart(text, start - CONTEXT_CHARS), wordStart(text, end + CONTEXT_CHARS)];
  return {
    before: `${from > 0 ? '… ' : ''}${text.slice(from, start)}`,
    differing: shortened(text.slice(start, end)),
    after: `${text.slice(end, to)}${to < text.length ? ' …' : ''}`,
  };
}

function shortened(text: string): string {
  if (text.length <= DIFFERING_CHARS_MAX) return text;
  const [head, tail] = [cutIndex(text, DIFFERING_CHARS_MAX / 2), cutIndex(text, text.length - DIFFERING_CHARS_MAX / 2)];
  return `${text.slice(0, head)} … ${count(tail - head)} characters … ${text.slice(tail)}`;
}

/** The next place after white space, if it is near. */
function wordStart(text: string, index: number): number {
  if (index <= 0) return 0;
  if (index >= text.length) return text.length;
  const found = text.slice(index, index + WORD_CHARS_MAX).search(/(?<=\s)\S/);
  return found < 0 ? cutIndex(text, index) : index + found;
}
