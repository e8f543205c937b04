/**
 * Metrics of NATS from its monitoring port (`/varz`, `/jsz`, `/healthz`), under the names that prometheus-nats-exporter uses. The rules work with
 * either of them, and so do the dashboards, except for the panel of `jetstream_stream_first_timestamp_seconds`, a metric that the exporter
 * lacks. On Kubernetes the chart runs this program next to each server.
 */

type Stream = {
  name: string;
  cluster?: { leader?: string };
  config: { max_bytes: number };
  state: { bytes: number; messages: number; last_seq: number; first_ts: string };
  consumer_detail?: {
    name: string;
    delivered: { consumer_seq: number };
    num_pending: number;
    num_ack_pending: number;
    num_redelivered: number;
  }[];
};
type Varz = { server_name: string; connections: number; slow_consumers: number; cpu: number; mem: number };
type Healthz = { status: string };
type Jsz = { account_details?: { stream_detail?: Stream[] }[] };

const READ_MS_MAX = 3_000;

/** Prometheus text. Throws when the server does not answer within READ_MS_MAX. */
export async function natsMetrics(monitorUrl: string): Promise<string> {
  const read = async <T>(path: string): Promise<T> => {
    const response = await fetch(new URL(path, monitorUrl), { signal: AbortSignal.timeout(READ_MS_MAX) });
    if (!response.ok) throw new Error(`NATS answered ${path} with ${response.status}`);
    return (await response.json()) as T;
  };
  const [varz, jsz, healthz] = await Promise.all([
    read<Varz>('/varz'),
    read<Jsz>('/jsz?streams=true&consumers=true&config=true'),
    read<Healthz>('/healthz').catch(() => undefined),
  ]);
  const lines = new MetricLines();
  const server = { server_name: varz.server_name };
  lines.add('gnatsd_varz_connections', 'Open connections', server, varz.connections);
  lines.add('gnatsd_varz_slow_consumers', 'Connections cut because they read too slowly', server, varz.slow_consumers);
  lines.add('gnatsd_varz_cpu', 'Percent of one core', server, varz.cpu);
  lines.add('gnatsd_varz_mem', 'Resident memory, bytes', server, varz.mem);
  lines.add('gnatsd_healthz_status', 'Whether /healthz fails: 0 or 1', server, healthz?.status === 'ok' ? 0 : 1);
  for (const stream of (jsz.account_details ?? []).flatMap(({ stream_detail = [] }) => stream_detail)) {
    const isLeader = stream.cluster?.leader === undefined || stream.cluster.leader === varz.server_name;
    const of = { ...server, stream_name: stream.name, is_stream_leader: `${isLeader}` };
    lines.add('jetstream_stream_total_bytes', 'Bytes stored', of, stream.state.bytes);
    lines.add('jetstream_stream_limit_bytes', 'Bytes that may be stored, -1 without a limit', of, stream.config.max_bytes);
    lines.add('jetstream_stream_total_messages', 'Messages stored', of, stream.state.messages);
    lines.add('jetstream_stream_last_seq', 'Sequence of the newest message', of, stream.state.last_seq);
    if (stream.state.messages > 0) {
      const firstAt = Date.parse(stream.state.first_ts) / 1_000;
      lines.add(
        'jetstream_stream_first_timestamp_seconds',
        'When the oldest message was stored, seconds since 1970',
        of,
        firstAt,
      );
    }
    for (const { name, delivered, num_pending, num_ack_pending, num_redelivered } of stream.consumer_detail ?? []) {
      // Only the consumers of the work queue have lasting names; readers of one task live for seconds.
      if (!stream.name.endsWith('_WORK')) continue;
      const consumer = { ...of, consumer_name: name };
      lines.add('jetstream_consumer_num_pending', 'Messages that were not delivered yet', consumer, num_pending);
      lines.add('jetstream_consumer_delivered_consumer_seq', 'Deliveries so far', consumer, delivered.consumer_seq);
      lines.add(
        'jetstream_consumer_num_ack_pending',
        'Messages that were delivered and not acknowledged',
        consumer,
        num_ack_pending,
      );
      lines.add(
        'jetstream_consumer_num_redelivered',
        'Messages in delivery for at least the second time',
        consumer,
        num_redelivered,
      );
    }
  }
  return lines.text();
}

class MetricLines {
  readonly #metrics = new Map<string, { help: string; lines: string[] }>();

  add(name: string, help: string, labels: Record<string, string>, value: number): void {
    const metric = this.#metrics.get(name) ?? { help, lines: [] };
    this.#metrics.set(name, metric);
    const shown = Object.entries(labels).map(([label, text]) => `${label}=${JSON.stringify(text)}`);
    metric.lines.push(`${name}{${shown.join(',')}} ${value}`);
  }

  text(): string {
    const blocks = [...this.#metrics].map(
      ([name, { help, lines }]) => `# HELP ${name} ${help}\n# TYPE ${name} gauge\n${lines.join('\n')}\n`,
    );
    return blocks.join('');
  }
}
