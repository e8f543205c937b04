import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ProgramName } from './programs.ts';

/** Ports of the stack, on the loopback address only. */
export const ADDRESSES = {
  prometheus: '127.0.0.1:9090',
  jaeger: '127.0.0.1:16686',
  grafana: '127.0.0.1:3000',
  otlp: '127.0.0.1:4318',
  spanMetrics: '127.0.0.1:8889',
} as const;

const FOLDER = fileURLToPath(new URL('./', import.meta.url));
const CHART = fileURLToPath(new URL('../helm/hopline/', import.meta.url));

export type StartedProgram = { name: ProgramName; command: string[]; url: string; env: Record<string, string> };

/** Writes the configuration of the stack into `state`. Returns how to start each program that was found. */
export function prepareStack(
  found: Partial<Record<ProgramName, string>>,
  { state, natsMetrics }: { state: string; natsMetrics: string },
): StartedProgram[] {
  const values: Record<string, string> = {
    STATE: state,
    RULES: join(CHART, 'rules'),
    DASHBOARDS: join(CHART, 'dashboards'),
    NATS_METRICS: natsMetrics,
    SPAN_METRICS: ADDRESSES.spanMetrics,
    JAEGER_OTLP: '127.0.0.1:4317',
    PROMETHEUS_URL: `http://${ADDRESSES.prometheus}`,
    JAEGER_URL: `http://${ADDRESSES.jaeger}`,
  };
  const write = (name: string, path = name) => {
    const target = join(state, path);
    mkdirSync(join(target, '..'), { recursive: true, mode: 0o700 });
    writeFileSync(target, withValues(readFileSync(join(FOLDER, 'config', name), 'utf8'), values));
    return target;
  };
  const programs: StartedProgram[] = [];
  const add = (name: ProgramName, args: string[], env: Record<string, string> = {}) =>
    programs.push({ name, command: [found[name]!, ...args], url: `http://${ADDRESSES[name]}`, env });
  if (found.prometheus) {
    const storage = [`--storage.tsdb.path=${join(state, 'prometheus')}`, '--enable-feature=exemplar-storage'];
    add('prometheus', [`--config.file=${write('prometheus.yaml')}`, `--web.listen-address=${ADDRESSES.prometheus}`, ...storage]);
  }
  if (found.jaeger) add('jaeger', ['--config', write('collector.yaml'), '--config', write('jaeger.yaml')]);
  if (found.grafana) {
    write('grafana-datasources.yaml', 'grafana/datasources/hopline.yaml');
    write('grafana-dashboards.yaml', 'grafana/dashboards/hopline.yaml');
    const [host, port] = ADDRESSES.grafana.split(':') as [string, string];
    // No login is needed, because it listens only on the loopback address.
    add('grafana', found.grafana.endsWith('grafana') ? ['server'] : [], {
      GF_SERVER_HTTP_ADDR: host,
      GF_SERVER_HTTP_PORT: port,
      GF_PATHS_DATA: join(state, 'grafana/data'),
      GF_PATHS_PROVISIONING: join(state, 'grafana'),
      GF_AUTH_ANONYMOUS_ENABLED: 'true',
      GF_AUTH_ANONYMOUS_ORG_ROLE: 'Admin',
      GF_ANALYTICS_REPORTING_ENABLED: 'false',
    });
  }
  return programs;
}

/** Replaces `${NAME}`. Throws for a name without a value, which the program would report as a fault of its own. */
function withValues(text: string, values: Readonly<Record<string, string>>): string {
  return text.replaceAll(/(?<!\$)\$\{(\w+)\}/g, (_, name: string) => {
    const value = values[name];
    if (value === undefined) throw new Error(`the configuration needs a value for ${name}`);
    return value;
  });
}
