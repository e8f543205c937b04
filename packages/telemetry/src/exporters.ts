export type Env = Readonly<Record<string, string | undefined>>;

/** The destination of each signal, from the OTEL_* environment. */
export type Exporters = {
  /** Absent: no spans are created. */
  readonly tracesUrl?: string;
  /** Absent: metrics are not pushed. */
  readonly metricsUrl?: string;
  /** Milliseconds between two pushes; absent for the SDK's default of a minute. */
  readonly metricsIntervalMs?: number;
  /** Whether `/metrics` has content. */
  readonly servesMetrics: boolean;
  /** Absent: log lines go only to standard output. */
  readonly logsUrl?: string;
};

const PATHS = { TRACES: 'v1/traces', METRICS: 'v1/metrics', LOGS: 'v1/logs' } as const;
type Signal = keyof typeof PATHS;
const COLLECTOR = 'http://localhost:4318';

/**
 * Reads OTEL_SDK_DISABLED, OTEL_{TRACES,METRICS,LOGS}_EXPORTER, OTEL_EXPORTER_OTLP_ENDPOINT and its variants per signal. Spans go to an
 * endpoint as soon as one is set; metrics and log lines only if their exporter is `otlp`. Throws for an unknown exporter, an unsupported
 * protocol, a sampler that the SDK would ignore, or an endpoint that is not a URL; the error does not quote the endpoint.
 */
export function exportersFrom(env: Env): Exporters {
  const isOff = env.OTEL_SDK_DISABLED?.toLowerCase() === 'true';
  const traces = exporterNames(env, 'TRACES', ['otlp', 'none'], 'otlp');
  const metrics = exporterNames(env, 'METRICS', ['prometheus', 'otlp', 'none'], 'prometheus');
  const logs = exporterNames(env, 'LOGS', ['otlp', 'none'], 'none');
  const tracesUrl = isOff || !traces.includes('otlp') ? undefined : endpointOf(env, 'TRACES');
  if (tracesUrl !== undefined) checkSampler(env);
  const metricsUrl =
    isOff || !metrics.includes('otlp') ? undefined : (endpointOf(env, 'METRICS') ?? `${COLLECTOR}/${PATHS.METRICS}`);
  const logsUrl = isOff || !logs.includes('otlp') ? undefined : (endpointOf(env, 'LOGS') ?? `${COLLECTOR}/${PATHS.LOGS}`);
  const intervalMs = Number(env.OTEL_METRIC_EXPORT_INTERVAL);
  return {
    servesMetrics: metrics.includes('prometheus'),
    ...(tracesUrl !== undefined && { tracesUrl }),
    ...(metricsUrl !== undefined && { metricsUrl }),
    ...(intervalMs > 0 && { metricsIntervalMs: intervalMs }),
    ...(logsUrl !== undefined && { logsUrl }),
  };
}

function exporterNames(env: Env, signal: Signal, known: readonly string[], byDefault: string): string[] {
  const variable = `OTEL_${signal}_EXPORTER`;
  const names = (env[variable] || byDefault).split(',').map(name => name.trim());
  if (names.some(name => !known.includes(name))) throw new Error(`${variable} must be one or more of ${known.join(', ')}`);
  if (names.length > 1 && names.includes('none')) throw new Error(`${variable}: "none" cannot be combined with other exporters`);
  return names;
}

function endpointOf(env: Env, signal: Signal): string | undefined {
  const signalUrl = env[`OTEL_EXPORTER_OTLP_${signal}_ENDPOINT`];
  const base = env.OTEL_EXPORTER_OTLP_ENDPOINT;
  const endpoint = signalUrl || (base ? `${base.replace(/\/+$/, '')}/${PATHS[signal]}` : undefined);
  if (endpoint === undefined) return undefined;
  const protocol = env[`OTEL_EXPORTER_OTLP_${signal}_PROTOCOL`] || env.OTEL_EXPORTER_OTLP_PROTOCOL || 'http/protobuf';
  if (protocol !== 'http/protobuf') {
    throw new Error(`OTEL_EXPORTER_OTLP_PROTOCOL is "${protocol}": only http/protobuf is supported (port 4318 of a collector)`);
  }
  if (!URL.canParse(endpoint) || !/^https?:/.test(endpoint)) {
    throw new Error('OTEL_EXPORTER_OTLP_ENDPOINT must be an http:// or https:// URL');
  }
  checkHeaders(env, signal);
  return endpoint;
}

const SAMPLERS = ['always_on', 'always_off', 'traceidratio'].flatMap(name => [name, `parentbased_${name}`]);

/** The SDK samples everything if it cannot read these settings, whose purpose is to export less. */
function checkSampler({ OTEL_TRACES_SAMPLER: sampler, OTEL_TRACES_SAMPLER_ARG: ratio }: Env): void {
  if (!sampler?.trim()) return;
  if (!SAMPLERS.includes(sampler)) throw new Error(`OTEL_TRACES_SAMPLER must be one of ${SAMPLERS.join(', ')}`);
  const share = ratio?.trim() ? Number(ratio) : Number.NaN;
  if (sampler.includes('traceidratio') && !(share >= 0 && share <= 1))
    throw new Error(`OTEL_TRACES_SAMPLER_ARG must be a share from 0 to 1, such as 0.01, for OTEL_TRACES_SAMPLER=${sampler}`);
}

/**
 * Otherwise the exporters would leave out what they cannot send, and the collector would refuse each export without naming a setting.
 * Values may be credentials, so they are not quoted.
 */
function checkHeaders(env: Env, signal: Signal): void {
  for (const variable of ['OTEL_EXPORTER_OTLP_HEADERS', `OTEL_EXPORTER_OTLP_${signal}_HEADERS`])
    for (const pair of (env[variable] ?? '').split(',').filter(one => one.trim() !== '')) {
      const at = pair.indexOf('=');
      if (at <= 0 || !isHeaderValue(pair.slice(at + 1)))
        throw new Error(`${variable} must be a list name=value,…, with values in percent-encoding that a header can have`);
    }
}

function isHeaderValue(encoded: string): boolean {
  try {
    return /^[\t -~]*$/.test(decodeURIComponent(encoded.trim()));
  } catch {
    return false;
  }
}
