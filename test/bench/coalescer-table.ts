import { benchCoalescer, OURS } from './coalescer/bench.ts';
import { coalescerReport } from './coalescer/report.ts';
import type { Question } from './question.ts';

/** The coalescer against the offline optimum: simulated time, so the machine does not matter. The whole table is in the notes. */
export const coalescerTable: Question = {
  name: 'coalescer',
  async ask() {
    const bench = benchCoalescer();
    const [title, ...lines] = coalescerReport(bench);
    const ours = bench.rows.filter(({ rule }) => rule === OURS);
    const worst = Math.max(...ours.map(({ costRatio }) => costRatio));
    return [
      {
        title: title!,
        table: { columns: [''], rows: lines.map(line => [line]) },
        targets: [
          { name: 'coalescer over the offline optimum, largest of all clocks and K', wanted: { atMost: 1.5 }, found: worst },
        ],
      },
    ];
  },
};
