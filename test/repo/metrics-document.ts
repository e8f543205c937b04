import assert from 'node:assert/strict';
import { createHopMetrics } from '../../packages/telemetry/src/metrics.ts';
import { observeProcess } from '../../packages/telemetry/src/process-metrics.ts';
import { startMetrics } from '../../packages/telemetry/src/start-metrics.ts';

const INTRO = `# Metrics

Generated from \`packages/telemetry\` by \`node test/repo/write-reference.ts\`. Do not edit by hand.

Every service serves its metrics as Prometheus text at \`/metrics\`. An instrument that a service does not use exports nothing.
The labels are \`service\`, \`agent\` (the name of a configured agent), \`reason\` and \`kind\` (words of closed lists; any other value becomes \`other\`).
Task ids, context ids and message ids are never labels. [infra/RUNBOOK.md](../../infra/RUNBOOK.md) names the metrics to look at for each symptom.
`;

type Meter = NonNullable<Parameters<typeof createHopMetrics>[1]>;
type Instrument = { name: string; type: string; unit: string; description: string };

const TYPES: Record<string, string> = {
  createCounter: 'counter',
  createUpDownCounter: 'gauge',
  createHistogram: 'histogram',
  createObservableGauge: 'gauge',
};

/** The text of docs/reference/metrics.md. Prometheus names come from the exporter itself, found by the description of the instrument. */
export async function metricsDocument(): Promise<string> {
  const { provider, text } = await startMetrics({});
  const found: Instrument[] = [];
  const meter = new Proxy(provider.getMeter('hopline'), {
    get(target, property) {
      const value = target[property as keyof Meter];
      const type = TYPES[String(property)];
      if (type === undefined) return value;
      return (name: string, options: { unit: string; description: string }) => {
        found.push({ name, type, ...options });
        return (value as (...args: unknown[]) => unknown).call(target, name, options);
      };
    },
  });
  for (const instrument of Object.values(createHopMetrics('service', meter))) {
    if ('recordMs' in instrument) instrument.recordMs(1);
    else instrument.add(1);
  }
  observeProcess(meter, 'service');
  const exported = await text();
  await provider.shutdown();
  const rows = found.map(({ name, type, unit, description }) => {
    const lines = [...exported.matchAll(/^# HELP (\S+) (.*)$/gm)].filter(([, , help]) => help === description);
    assert.equal(lines.length, 1, `${name}: exactly one metric is described as "${description}"`);
    return [`\`${lines[0]![1]}\``, `\`${name}\``, type, `\`${unit}\``, description];
  });
  return `${INTRO}\n${table([['Prometheus', 'OpenTelemetry', 'Type', 'Unit', 'Meaning'], ...rows])}`;
}

function table(rows: string[][]): string {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map(row => row[column]!.length)));
  const line = (cells: string[]) => `| ${cells.map((cell, column) => cell.padEnd(widths[column]!)).join(' | ')} |`;
  const [head, ...body] = rows.map(line);
  return `${[head, line(widths.map(width => '-'.repeat(width))), ...body].join('\n')}\n`;
}
