import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ProgramName } from './programs.ts';

/** Ports that people and services use, on the loopback address only; `otlp` takes spans over HTTP. Each is an option of `npm run observe`. */
export const PORTS = { prometheus: 9090, jaeger: 16686, grafana: 3000, otlp: 4318 } as const;
export type Ports = Record<keyof typeof PORTS, number>;
/** Ports that only the programs of the stack use among themselves. */
type InnerPorts = { otlpGrpc: number; jaegerGrpc: number; spanMetrics: number };

export const addressOf = (port: number) => `127.0.0.1:${port}`;

const FOLDER = fileURLToPath(new URL('./', import.meta.url));
const CHART = fileURLToPath(new URL('../helm/hopline/', import.meta.url));

export type StartedProgram = { name: ProgramName; command: string[]; url: string; env: Record<string, string> };

/** Writes the configuration of the stack into `state`. Returns how to start each program that was found. */
export function prepareStack(
  found: Partial<Record<ProgramName, string>>,
  { state, natsMetrics, ports, inner }: { state: string; natsMetrics: string; ports: Ports; inner: InnerPorts },
): StartedProgram[] {
  const values: Record<string, string> = {
    STATE: state,
    RULES: join(CHART, 'rules'),
    DASHBOARDS: join(CHART, 'dashboards'),
    NATS_METRICS: natsMetrics,
    SPAN_METRICS: addressOf(inner.spanMetrics),
    OTLP_HTTP: addressOf(ports.otlp),
    OTLP_GRPC: addressOf(inner.otlpGrpc),
    JAEGER_OTLP: addressOf(inner.otlpGrpc),
    JAEGER_HTTP: addressOf(ports.jaeger),
    JAEGER_GRPC: addressOf(inner.jaegerGrpc),
    PROMETHEUS_URL: `http://${addressOf(ports.prometheus)}`,
    JAEGER_URL: `http://${addressOf(ports.jaeger)}`,
  };
  const write = (name: string, path = name) => {
    const target = join(state, path);
    mkdirSync(join(target, '..'), { recursive: true, mode: 0o700 });
    writeFileSync(target, withValues(readFileSync(join(FOLDER, 'config', name), 'utf8'), values));
    return target;
  };
  const programs: StartedProgram[] = [];
  const add = (name: ProgramName, args: string[], env: Record<string, string> = {}) =>
    programs.push({ name, command: [found[name]!, ...args], url: `http://${addressOf(ports[name])}`, env });
  if (found.prometheus) {
    const storage = [`--storage.tsdb.path=${join(state, 'prometheus')}`, '--enable-feature=exemplar-storage'];
    add('prometheus', [
      `--config.file=${write('prometheus.yaml')}`,
      `--web.listen-address=${addressOf(ports.prometheus)}`,
      ...storage,
    ]);
  }
  if (found.jaeger) add('jaeger', ['--config', write('collector.yaml'), '--config', write('jaeger.yaml')]);
  if (found.grafana) {
    write('grafana-datasources.yaml', 'grafana/datasources/hopline.yaml');
    write('grafana-dashboards.yaml', 'grafana/dashboards/hopline.yaml');
    // No login is needed, because it listens only on the loopback address.
    add('grafana', found.grafana.endsWith('grafana') ? ['server'] : [], {
      GF_SERVER_HTTP_ADDR: '127.0.0.1',
      GF_SERVER_HTTP_PORT: `${ports.grafana}`,
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
