import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { chartSchemaDocument } from './chart-schema-document.ts';
import { markdownTable } from './markdown-table.ts';

type Schema = {
  $ref?: string;
  $defs?: Record<string, Schema>;
  patternProperties?: Record<string, Schema>;
  type?: string | string[];
  description?: string;
  enum?: unknown[];
  minimum?: number;
  maximum?: number;
  properties?: Record<string, Schema>;
  items?: Schema;
  required?: string[];
};

const INTRO = `# Values of the chart

Generated from \`values.yaml\` and \`values.schema.json\` of \`infra/helm/hopline\` and \`infra/helm/hopline-agent\` by \`node test/repo/write-reference.ts\`. Do not edit by hand.

\`helm install\` rejects a value that is not listed here. [Kubernetes](../guides/kubernetes.md) explains which ones a production cluster needs;
\`settings\` takes any setting of [settings](settings.md) that has no value of its own.
`;

const AGENT_INTRO = `## The chart hopline-agent

One agent in a running Hopline.
`;

/** The beginning of each chart's README.md, which `helm show readme` prints. Links begin with ../../../, which the release workflow replaces. */
const READMES: Record<string, string> = {
  hopline: `# Hopline

An event-sourced relay cluster for A2A streams over NATS JetStream: ingress, relays, supervisors, a notifier, your agents, and NATS with three nodes.
Clients resume every stream on any replica, so no load balancer needs session affinity.

\`\`\`sh
helm install hopline oci://REGISTRY/charts/hopline --values values.yaml
\`\`\`

REGISTRY is that of the release, for example \`ghcr.io/OWNER\`; in a checkout the chart is \`infra/helm/hopline\`. values.yaml has at least \`auth\` or
\`allowUnauthenticated: true\`. Kubernetes 1.30 or newer and Helm 3 or 4 are needed.

- [Kubernetes](../../../docs/guides/kubernetes.md): production checklist, sizing, backup, TLS, larger volumes, symptoms
- [Load balancers](../../../docs/guides/load-balancers.md): what each needs, and the value that sets it
- [Upgrading](../../../docs/guides/upgrading.md): values that changed, what restarts
- [How a release is signed](../../../infra/release/README.md), and the commands that verify it

A role, an agent and NATS each have \`pods\`, whose members are those of \`pods\` below. The file is generated from \`values.yaml\` and \`values.schema.json\`.
`,
  'hopline-agent': `# One agent in a running Hopline

\`\`\`sh
helm install weather oci://REGISTRY/charts/hopline-agent --values weather.yaml
\`\`\`

REGISTRY is that of the release, for example \`ghcr.io/OWNER\`; in a checkout the chart is \`infra/helm/hopline-agent\`. weather.yaml has at least \`entry\`.
[Kubernetes](../../../docs/guides/kubernetes.md#an-agent-as-a-release-of-its-own) explains it. The file is generated from \`values.yaml\` and \`values.schema.json\`.
`,
};

/** The text of a chart's README.md. */
export function chartReadme(chart: string): Promise<string> {
  return chartValues(chart, `${READMES[chart]!}\n## Values\n`, '##');
}

type Row = { value: string; default: string; allowed: string; meaning: string };

/** The text of docs/reference/values.md. */
export async function valuesDocument(): Promise<string> {
  return `${await chartValues('hopline', INTRO, '##')}\n${await chartValues('hopline-agent', AGENT_INTRO, '###')}`;
}

async function chartValues(chart: string, intro: string, heading: string): Promise<string> {
  const folder = new URL(`../../infra/helm/${chart}/`, import.meta.url);
  const schema = JSON.parse(await chartSchemaDocument(chart)) as Schema;
  const values = parse(readFileSync(new URL('values.yaml', folder), 'utf8')) as Record<string, unknown>;
  const alone: Row[] = [];
  const definition = ({ $ref }: Schema) => schema.$defs![$ref!.replace('#/$defs/', '')]!;
  const sections: string[] = [];
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    const rows = rowsOf(name, property, values[name], definition);
    if (rows.length === 1) alone.push(...rows);
    else sections.push(`${heading} ${name}\n\n${property.description}\n\n${table(rows)}`);
  }
  return [intro, table(alone), ...sections].join('\n');
}

function table(rows: readonly Row[]): string {
  const head = ['Value', 'Default', 'Allowed', 'Meaning'];
  return markdownTable([head, ...rows.map(row => [row.value, row.default, row.allowed, row.meaning])]);
}

/** One row for each value without members. */
function rowsOf(path: string, given: Schema, value: unknown, definition: (reference: Schema) => Schema): Row[] {
  const schema = given.$ref === undefined ? given : definition(given);
  const byName = Object.values(schema.patternProperties ?? {});
  if (path === 'agents') return rowsOf('agents.NAME', byName[0]!, undefined, definition);
  // settings.md lists the members of `settings`, agents.schema.json those of an entry, and the members of `pods` of a role are those of `pods`.
  const isListedElsewhere = /(^|\.)(settings|entry)$|\.pods$/.test(path);
  const members = isListedElsewhere ? undefined : (schema.properties ?? schema.items?.properties);
  // Kubernetes describes the members of its own types.
  const isOfKubernetes =
    (schema.required ?? schema.items?.required) === undefined &&
    Object.values(members ?? {}).every(({ $ref, description }) => ($ref ?? description) === undefined);
  if (members === undefined || isOfKubernetes) {
    const meaning = cell(given.description ?? schema.description ?? '');
    return [{ value: code(path), default: shown(value), allowed: allowedOf(schema), meaning }];
  }
  const isList = schema.items !== undefined;
  return Object.entries(members).flatMap(([name, member]) => {
    const inner = isList ? undefined : (value as Record<string, unknown> | undefined)?.[name];
    const isRequired = ((isList ? schema.items?.required : schema.required) ?? []).includes(name);
    const rows = rowsOf(`${path}${isList ? '[]' : ''}.${name}`, member, inner, definition);
    return isRequired ? rows.map(row => ({ ...row, default: 'required' })) : rows;
  });
}

function shown(value: unknown): string {
  if (value === undefined) return 'not set';
  if (value === '') return 'empty';
  return code(JSON.stringify(value));
}

function allowedOf({ type, enum: choices, minimum, maximum }: Schema): string {
  if (choices !== undefined) return cell(`one of ${choices.map(one => code(String(one))).join(', ')}`);
  const words = [type].flat().join(' or ');
  if (minimum !== undefined && maximum !== undefined) return `${words}, ${minimum} to ${maximum}`;
  return minimum === undefined ? words : `${words}, at least ${minimum}`;
}

function code(text: string): string {
  return `\`${cell(text)}\``;
}

/** A vertical bar ends a cell, even in code. */
function cell(text: string): string {
  return text.replaceAll(/(?<!\\)\|/g, '\\|');
}
