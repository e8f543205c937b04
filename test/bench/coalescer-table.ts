import {
  BEST_ONLINE_RATIO_MAX,
  benchCoalescer,
  type CoalescerRow,
  EVENT_COSTS_MS,
  OURS,
  STRUCTURE_RATIO_MAX,
} from './coalescer/bench.ts';
import type { Finding, Question } from './question.ts';

/** The coalescer against the offline optimum of K x events + sum of delay. Simulated time: the load of the machine has no effect. */
export const coalescerTable: Question = {
  name: 'coalescer',
  async ask() {
    const { streams, rows } = benchCoalescer();
    const ours = rows.filter(({ rule }) => rule === OURS);
    const patternless = ours.filter(({ bestOnlineRatio }) => bestOnlineRatio !== undefined);
    const structured = ours.filter(({ bestOnlineRatio }) => bestOnlineRatio === undefined);
    return [
      {
        title: `coalescer: cost over the offline optimum, ${streams}`,
        table: tableOf('clock', ours),
        targets: [
          {
            name: 'coalescer over the offline optimum, any K, clocks with structure',
            wanted: { atMost: STRUCTURE_RATIO_MAX },
            found: largest(structured),
          },
        ],
      },
      {
        title: 'coalescer: cost over the best online rule, clocks without structure',
        table: tableOf('clock', patternless, 'bestOnlineRatio'),
        notes: ['the best rule is chosen afterwards; like ours it sends the first text at once, and knows no end of a lane'],
        targets: [
          {
            name: 'coalescer over the best online rule, any K, clocks without structure',
            wanted: { atMost: BEST_ONLINE_RATIO_MAX },
            found: largest(patternless, 'bestOnlineRatio'),
          },
        ],
      },
      {
        title: 'the same beside other rules, each under the clock that suits it least',
        table: tableOf('rule', rows),
        notes: ['every clock, K and rule: node test/bench/coalescer/main.ts, or --json'],
        data: rows,
      },
    ];
  },
};

type Ratio = 'costRatio' | 'bestOnlineRatio';

/** One row per clock or rule: the largest ratio at each K. */
function tableOf(by: 'clock' | 'rule', rows: readonly CoalescerRow[], ratio: Ratio = 'costRatio'): Finding['table'] {
  const names = [...new Set(rows.map(row => row[by]))];
  const cell = (name: string, eventCostMs: number) =>
    largest(
      rows.filter(row => row[by] === name && row.eventCostMs === eventCostMs),
      ratio,
    ).toFixed(2);
  return {
    columns: [by, ...EVENT_COSTS_MS.map(cost => `K=${cost}`)],
    rows: names.map(name => [name, ...EVENT_COSTS_MS.map(cost => cell(name, cost))]),
  };
}

function largest(rows: readonly CoalescerRow[], ratio: Ratio = 'costRatio'): number {
  return Math.max(...rows.map(row => row[ratio] ?? 0));
}
