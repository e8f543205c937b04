import { benchCoalescer, type CoalescerRow, EVENT_COSTS_MS, OURS } from './coalescer/bench.ts';
import type { Finding, Question } from './question.ts';

/** The coalescer against the offline optimum of K x events + sum of delay. Simulated time: the load of the machine has no effect. */
export const coalescerTable: Question = {
  name: 'coalescer',
  async ask() {
    const { streams, rows } = benchCoalescer();
    const ours = rows.filter(({ rule }) => rule === OURS);
    return [
      { title: `coalescer: cost over the offline optimum, ${streams}`, table: tableOf('clock', ours) },
      {
        title: 'the same beside other rules, each under the clock that suits it least',
        table: tableOf('rule', rows),
        notes: ['every clock, K and rule: node test/bench/coalescer/main.ts, or --json'],
        targets: [{ name: 'coalescer over the offline optimum, any clock and K', wanted: { atMost: 1.5 }, found: largest(ours) }],
        data: rows,
      },
    ];
  },
};

/** One row per clock or rule: the largest ratio at each K. */
function tableOf(by: 'clock' | 'rule', rows: readonly CoalescerRow[]): Finding['table'] {
  const names = [...new Set(rows.map(row => row[by]))];
  const cell = (name: string, eventCostMs: number) =>
    largest(rows.filter(row => row[by] === name && row.eventCostMs === eventCostMs)).toFixed(2);
  return {
    columns: [by, ...EVENT_COSTS_MS.map(cost => `K=${cost}`)],
    rows: names.map(name => [name, ...EVENT_COSTS_MS.map(cost => cell(name, cost))]),
  };
}

function largest(rows: readonly CoalescerRow[]): number {
  return Math.max(...rows.map(({ costRatio }) => costRatio));
}
