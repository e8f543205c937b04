import assert from 'node:assert/strict';
import { LABELS, METRICS, PROCESS_METRICS } from '../../packages/telemetry/src/metric-registry.ts';
import { createHopMetrics, SERIES_PER_METRIC_MAX, startAgentAtZero } from '../../packages/telemetry/src/metrics.ts';
import { observeProcess } from '../../packages/telemetry/src/process-metrics.ts';
import { startMetrics } from '../../packages/telemetry/src/start-metrics.ts';
import { markdownTable } from './markdown-table.ts';

const INTRO = `# Metrics

Generated from \`packages/telemetry/src/metric-registry.ts\` by \`node test/repo/write-reference.ts\`. Do not edit by hand.

Every service serves its metrics as Prometheus text at \`/metrics\`; with \`OTEL_METRICS_EXPORTER=otlp\`, or \`prometheus,otlp\`, it pushes them to
the collector. The names are the same both ways: those that a collector's Prometheus exporter makes of the OpenTelemetry names.
Every counter and gauge of a service exists from its start, with 0 in each combination of closed labels: an alert on \`increase()\` sees the
first failure after a scrape. Those before it are in \`counter and on (job, instance) time() - process_start_time_seconds < 600\`. Task ids, context ids and message ids are never labels; a value outside a closed list is \`other\`. A metric of a process
has at most ${SERIES_PER_METRIC_MAX} series; the values of all further labels are in one with \`otel_metric_overflow="true"\`. A relay has one for each hop and agent, so the hops of agents beyond the first 38
are summed there, until it restarts. [hops.md](hops.md) defines the values of \`hop\`. [infra/RUNBOOK.md](../../infra/RUNBOOK.md) names the metrics to look at for each symptom.
`;

/** Their first series appears with the first owner. */
const TENANT_METRICS = [
  'tenantRequests',
  'tenantRefused',
  'tenantTurns',
  'tenantStored',
  'tenantTurnTime',
  'tenantModelTokens',
  'tenantModelCost',
] as const;

type Shown = { name: string; type: string; unit: string; meaning: string; services?: readonly string[]; labels?: object };

/** The text of docs/reference/metrics.md. Prometheus names come from the exporter itself, found by the description of the instrument. */
export async function metricsDocument(): Promise<string> {
  const exported = await startMetrics({});
  for (const service of ['ingress', 'relay', 'supervisor', 'sub-agent', 'notifier']) {
    const metrics = createHopMetrics(service, exported);
    startAgentAtZero(metrics, service, 'demo');
    metrics.shardLag.observe(() => [[0, { shard: 0 }]]);
    metrics.shardRecords.observe(() => [[0, { shard: 0 }]]);
    for (const tenant of TENANT_METRICS) metrics[tenant].add(0, {});
    metrics.shardOldestInput.observe(() => [[0, { shard: 0 }]]);
    metrics.turnSilence.observe(() => [[0, { agent: 'demo' }]]);
    metrics.openTasksOldestStart.observe(() => [[0, {}]]);
    metrics.streamsOldestNeeded.observe(() => [[0, {}]]);
    metrics.webhookOldestEvent.observe(() => [[0, {}]]);
    metrics.logFirstTimestamp.observe(() => [[0, { stream: 'A2A_LOG' }]]);
    metrics.logAgeLimit.observe(() => [[0, { stream: 'A2A_LOG' }]]);
    metrics.openTasks.observe(() => [[0, { state: 'working' }]]);
    metrics.shardRestarts.add(0, { reason: 'conflict', shard: 0 });
    metrics.webhookFailing.observe(() => [[0, {}]]);
    metrics.checkFailing.observe(() => [[0, { check: 'appends' }]]);
    metrics.logConnected.observe(() => [[0, {}]]);
    metrics.certificateExpiry.observe(() => [[0, { kind: 'server' }]]);
    metrics.logShortages.add(0, { stream: 'A2A_RAW', reason: 'full' });
    if (service === 'relay') metrics.unknownRemoved.add(0, { stream: 'A2A_LOG', kind: 'unknown_consumers' });
    for (const instrument of Object.values(metrics)) if ('recordMs' in instrument) instrument.recordMs(1);
  }
  const stop = observeProcess(exported.meter, 'relay', '0.1.0');
  const text = await exported.text();
  stop();
  await exported.provider.shutdown();
  const all: Shown[] = [...Object.values(METRICS), ...Object.values(PROCESS_METRICS)];
  const rows = all.map(({ name, type, unit, meaning, services = ['all'], labels = {} }) => {
    const lines = [...text.matchAll(/^# HELP (\S+) (.*)$/gm)].filter(([, , help]) => help === meaning);
    assert.equal(lines.length, 1, `${name}: exactly one metric is described as "${meaning}"`);
    const shownServices = services.length === 5 ? 'all' : services.join(', ');
    const shownLabels = Object.keys(labels).map(label => `\`${label.replaceAll('.', '_')}\``);
    return [`\`${lines[0]![1]}\``, `\`${name}\``, type, `\`${unit}\``, shownServices, shownLabels.join(', '), meaning];
  });
  const columns = ['Prometheus', 'OpenTelemetry', 'Type', 'Unit', 'Services', 'Labels', 'Meaning'];
  return `${INTRO}\n${markdownTable([columns, ...rows])}\n${labelsSection()}`;
}

/** Every label with its single meaning, and its values if the list is closed. */
function labelsSection(): string {
  const values = Object.values(METRICS).flatMap(({ name, ...metric }) =>
    Object.entries('labels' in metric ? metric.labels : {}).flatMap(([label, list]) =>
      typeof list === 'string' || list.length > 24
        ? []
        : [[`\`${name}\``, `\`${label.replaceAll('.', '_')}\``, (list as readonly string[]).map(one => `\`${one}\``).join(', ')]],
    ),
  );
  const meanings = Object.entries(LABELS).map(([label, meaning]) => [`\`${label.replaceAll('.', '_')}\``, meaning]);
  return `## Labels\n\nEvery metric has \`service\`.\n\n${markdownTable([['Label', 'Meaning'], ...meanings])}
## Values of closed labels\n\n${markdownTable([['Metric', 'Label', 'Values'], ...values])}`;
}
