import { type CoalescerBench, type CoalescerRow, EVENT_COSTS_MS, OURS } from './bench.ts';

/** The printed lines: streams, all rows, our ratios by clock, and the largest ratio of each rule. */
export function coalescerReport({ streams, rows }: CoalescerBench): string[] {
  const title = `coalescer against the offline optimum of K x events + sum of delay; ${streams}; simulated time`;
  return [title, ...formatRows(rows), '', ...formatRatios(rows), '', ...formatLargest(rows)];
}

/** Lines of one table: a clock and K per block, a rule per line. */
function formatRows(rows: readonly CoalescerRow[]): string[] {
  const lines: string[] = [];
  for (const [index, row] of rows.entries()) {
    const before = rows[index - 1];
    if (before?.clock !== row.clock || before.eventCostMs !== row.eventCostMs) {
      const title = `${row.clock}, K = ${row.eventCostMs} ms`;
      lines.push('', `${title.padEnd(34)} ev/1000  mean ms   p99 ms  cost/OPT`);
    }
    const cells = [row.eventsPer1000.toFixed(0), row.meanAddedMs.toFixed(1), row.p99AddedMs.toFixed(1), row.costRatio.toFixed(2)];
    lines.push(`  ${row.rule.padEnd(31)}${cells.map(cell => cell.padStart(9)).join('')}`);
  }
  return lines;
}

/** One line per clock: our cost over the optimum at each K, and the worst single lane. */
function formatRatios(rows: readonly CoalescerRow[]): string[] {
  const ours = rows.filter(row => row.rule === OURS);
  const lines = [...new Set(ours.map(row => row.clock))].map(clock => {
    const mine = ours.filter(row => row.clock === clock);
    const worst = Math.max(...mine.map(row => row.worstLaneRatio));
    return `${line(clock, mine)}${worst.toFixed(2).padStart(12)}`;
  });
  return [`${head(`${OURS}: cost/OPT at K =`)}  worst lane`, ...lines];
}

/** One line per rule: its largest cost over the optimum under any clock, at each K. */
function formatLargest(rows: readonly CoalescerRow[]): string[] {
  const lines = [...new Set(rows.map(row => row.rule))].map(rule => {
    const largest = EVENT_COSTS_MS.map(eventCostMs => {
      const mine = rows.filter(row => row.rule === rule && row.eventCostMs === eventCostMs);
      return { costRatio: Math.max(...mine.map(row => row.costRatio)) };
    });
    return line(rule, largest);
  });
  return [head('largest under any clock'), ...lines];
}

const NAME_WIDTH = 32;

function head(name: string): string {
  return name.padEnd(NAME_WIDTH) + EVENT_COSTS_MS.map(cost => String(cost).padStart(9)).join('');
}

function line(name: string, rows: readonly { costRatio: number }[]): string {
  return name.padEnd(NAME_WIDTH) + rows.map(row => row.costRatio.toFixed(2).padStart(9)).join('');
}
