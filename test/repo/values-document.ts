import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { markdownTable } from './markdown-table.ts';

type Schema = {
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

type Row = { value: string; default: string; allowed: string; meaning: string };

/** The text of docs/reference/values.md. */
export function valuesDocument(): string {
  return `${chartValues('hopline', INTRO, '##')}\n${chartValues('hopline-agent', AGENT_INTRO, '###')}`;
}

function chartValues(chart: string, intro: string, heading: string): string {
  const folder = new URL(`../../infra/helm/${chart}/`, import.meta.url);
  const schema = JSON.parse(readFileSync(new URL('values.schema.json', folder), 'utf8')) as Schema;
  const values = parse(readFileSync(new URL('values.yaml', folder), 'utf8')) as Record<string, unknown>;
  const alone: Row[] = [];
  const sections: string[] = [];
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    const rows = rowsOf(name, property, values[name]);
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
function rowsOf(path: string, schema: Schema, value: unknown): Row[] {
  // settings.md lists the members of `settings`, agents.schema.json those of an entry.
  const members = /(^|\.)(settings|entry)$/.test(path) ? undefined : (schema.properties ?? schema.items?.properties);
  if (members === undefined) {
    return [{ value: code(path), default: shown(value), allowed: allowedOf(schema), meaning: cell(schema.description ?? '') }];
  }
  const isList = schema.items !== undefined;
  return Object.entries(members).flatMap(([name, member]) => {
    const inner = isList ? undefined : (value as Record<string, unknown> | undefined)?.[name];
    const isRequired = isList && (schema.items?.required ?? []).includes(name);
    const rows = rowsOf(`${path}${isList ? '[]' : ''}.${name}`, member, inner);
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
