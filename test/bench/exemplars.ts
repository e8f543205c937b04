import { startTelemetry } from '@hopline/telemetry';
import { interleave } from './measure/rounds.ts';
import { spreadOf } from './measure/spread.ts';
import { SPREAD_COLUMNS, spreadCells } from './measure/table.ts';
import type { Question } from './question.ts';

const ROUNDS = { full: 15, quick: 7, tiny: 1 } as const;
/** Values of one measurement, which takes some tens of milliseconds. */
const VALUES = { full: 500_000, quick: 500_000, tiny: 1_000 } as const;
/** Values of histograms that a chunk of text causes in relay and ingress: its hops, its append and its age. */
const VALUES_OF_CHUNK = 8;
/**
 * Target for the cost that exemplars add to a value, in nanoseconds: a hundredth of the cost of a token in all services
 * (docs/reference/benchmarks.md).
 */
const ADDED_NS_MAX = 500;

/** The cost of the exemplar of a value: each value of a histogram stores its trace as the newest one of its bucket. */
export const exemplars: Question = {
  name: 'exemplars',
  async ask(size) {
    const telemetry = await startTelemetry({ service: 'relay', instance: 'bench', version: '0', env: {} });
    const { hopDuration } = telemetry.metrics;
    // The context of a task is one string for all its chunks.
    const trace = { traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01` };
    const labels = { hop: 'hold', agent: 'argocd' } as const;
    const nanosecondsOf = (withTrace: boolean) => async () => {
      const startedMs = performance.now();
      for (let n = 0; n < VALUES[size]; n += 1) {
        // Values of several buckets, as a hold has.
        if (withTrace) hopDuration.recordMs(n & 127, labels, trace);
        else hopDuration.recordMs(n & 127, labels);
      }
      return ((performance.now() - startedMs) * 1e6) / VALUES[size];
    };
    try {
      const sides = { without: nanosecondsOf(false), with: nanosecondsOf(true) };
      // The first round includes compilation.
      await interleave(1, sides);
      const found = await interleave(ROUNDS[size], sides);
      const added = spreadOf(found.with.map((value, round) => value - found.without[round]!));
      const row = (name: string, values: number[]) => [name, ...spreadCells(spreadOf(values))];
      return [
        {
          title: 'exemplars: one value of a histogram, nanoseconds',
          table: {
            columns: ['side', ...SPREAD_COLUMNS],
            rows: [row('without', found.without), row('with', found.with), ['added, by the pairs', ...spreadCells(added)]],
          },
          notes: [`a chunk of text causes ${VALUES_OF_CHUNK} values in relay and ingress together`],
          targets: [{ name: 'nanoseconds that an exemplar adds to a value', wanted: { atMost: ADDED_NS_MAX }, found: added }],
        },
      ];
    } finally {
      await telemetry.shutdown();
    }
  },
};
