import { execFileSync, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseAllDocuments } from 'yaml';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));
export const CHART = join(ROOT, 'infra/helm/hopline');
const hasHelm = spawnSync('helm', ['version', '--short']).status === 0;
export const skip = !hasHelm && 'helm is not on PATH';

const SCHEMAS = join(ROOT, 'test/kubernetes/schemas/{{ .ResourceKind }}{{ .KindSuffix }}.json');
const KUBECONFORM = process.env.KUBECONFORM ?? 'kubeconform';
export const withoutKubeconform =
  skip ||
  (spawnSync(KUBECONFORM, ['-v']).error !== undefined &&
    'kubeconform is not on PATH: go install github.com/yannh/kubeconform/cmd/kubeconform@v0.7.0');

export type Container = {
  image: string;
  name: string;
  args?: string[];
  env?: { name: string; value?: string; valueFrom?: { secretKeyRef?: { name: string; key: string } } }[];
  ports?: { name: string; containerPort: number }[];
  securityContext?: Record<string, unknown>;
  readinessProbe?: { periodSeconds: number; failureThreshold: number; httpGet: { port: string } };
  lifecycle?: { preStop: { sleep?: { seconds: number } } };
  resources?: { requests?: unknown; limits?: unknown };
  volumeMounts?: { name: string; mountPath: string; readOnly?: boolean }[];
  restartPolicy?: string;
};
export type PodSpec = {
  initContainers?: Container[];
  containers: Container[];
  securityContext?: Record<string, unknown>;
  automountServiceAccountToken?: boolean;
  terminationGracePeriodSeconds?: number;
  volumes?: { name: string; [source: string]: unknown }[];
};
type Metadata = { name: string; labels?: Record<string, string>; annotations?: Record<string, string> };
export type Manifest = {
  kind: string;
  metadata: Metadata;
  data?: Record<string, string>;
  spec: PodSpec & {
    replicas?: number;
    selector?: { matchLabels: unknown };
    template?: { metadata: Metadata; spec: PodSpec };
    jobTemplate?: { spec: { template: { metadata: Metadata; spec: PodSpec } } };
    triggers?: { type: string; metadata: Record<string, string> }[];
    ports?: { port: number }[];
  };
};

/** Arguments of helm. The values replace one with which the chart renders without authentication. */
export function template(values: readonly string[], chart = CHART): string[] {
  const all = ['allowUnauthenticated=true', ...values];
  return ['template', 'hopline', chart, '--kube-version', '1.34.0', ...all.flatMap(value => ['--set', value])];
}

/** Throws for a duplicate key, which YAML parsers treat differently. */
export function manifestsOf(text: string): Manifest[] {
  return parseAllDocuments(text).flatMap(document => {
    for (const error of document.errors) throw error;
    return (document.toJS() as Manifest | null) ?? [];
  });
}

export function render(values: readonly string[]): Manifest[] {
  return renderChart(CHART, values);
}

export function renderChart(chart: string, values: readonly string[]): Manifest[] {
  return manifestsOf(renderedText(values, chart));
}

/** Many tests render the same values, and each rendering costs helm about a second. */
const rendered = new Map<string, string>();

export function renderedText(values: readonly string[], chart = CHART): string {
  const args = template(values, chart);
  const key = args.join('\n');
  const text = rendered.get(key) ?? execFileSync('helm', args, { encoding: 'utf8', maxBuffer: 1 << 26, stdio: 'pipe' });
  rendered.set(key, text);
  return text;
}

/** Parts that the Kubernetes API server would not accept; empty if none. Objects of the skipped kinds are not checked. */
export function schemaFaults(input: string, skippedKinds: readonly string[] = []): string {
  const args = ['-strict', '-schema-location', SCHEMAS, '-skip', skippedKinds.join()];
  const { status, stdout, stderr } = spawnSync(KUBECONFORM, args, { input, encoding: 'utf8' });
  return status === 0 ? '' : stdout + stderr;
}

export function podTemplates(manifests: readonly Manifest[]): { metadata: Metadata; spec: PodSpec }[] {
  return manifests.flatMap(({ kind, metadata, spec }) => {
    const template = spec?.jobTemplate?.spec.template ?? spec?.template;
    return kind === 'Pod' ? [{ metadata, spec }] : template ? [template] : [];
  });
}

export function podSpecs(manifests: readonly Manifest[]): PodSpec[] {
  return podTemplates(manifests).map(({ spec }) => spec);
}

/** Containers of a pod, including those that run next to the service. */
export function allContainers({ initContainers = [], containers }: PodSpec): Container[] {
  return [...initContainers, ...containers];
}
