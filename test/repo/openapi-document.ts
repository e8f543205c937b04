import assert from 'node:assert/strict';
import type { JsonObject } from '@hopline/a2a';
import type { AgentCard } from '@hopline/agent-card';
import { openApiDocument } from '../../packages/a2a-http/src/openapi/openapi.ts';
import { durableStreamsFront } from '../../packages/durable-streams-http/src/durable-streams-front.ts';
import { markdownTable } from './markdown-table.ts';

const INTRO = `# HTTP+JSON, from its OpenAPI document

Generated from \`packages/a2a-http/src/openapi\` by \`node test/repo/write-reference.ts\`. Do not edit by hand.

The document that every ingress and sub-agent serves at \`/openapi.json\` (OpenAPI 3.1, for A2A 1.0), as a page: each operation with its parameters, body and answers, then the
schemas. Clients of A2A 0.3 use the same operations below \`/v1\`, in the JSON of that version; [clients and resume](../guides/clients-and-resume.md) has all bindings.
`;

type Schema = JsonObject & {
  $ref?: string;
  type?: string | string[];
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  additionalProperties?: Schema | boolean;
  enum?: unknown[];
  const?: unknown;
  oneOf?: Schema[];
  anyOf?: Schema[];
  allOf?: Schema[];
};
type Parameter = { $ref?: string; name: string; in: string; required?: boolean; description?: string; schema: Schema };
type Answer = { description: string; content?: Record<string, { schema?: Schema }> };
type Operation = {
  operationId: string;
  summary: string;
  parameters: Parameter[];
  requestBody?: { required: boolean; content: Record<string, { schema: Schema }> };
  responses: Record<string, Answer>;
};
type Document = {
  paths: Record<string, Record<string, Operation>>;
  components: { parameters: Record<string, Parameter>; schemas: Record<string, Schema> };
};

/** The text of docs/reference/openapi.md. */
export function openApiPage(): string {
  const card = { name: '', version: '', description: '', supportedInterfaces: [] } as unknown as AgentCard;
  const everything = {
    listsAgents: true,
    auditsTasks: true,
    exportsTasks: true,
    listsDeliveries: true,
    fronts: [durableStreamsFront],
  };
  const document = openApiDocument(card, everything) as unknown as Document;
  const operations = Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => operationSection(`${method.toUpperCase()} ${path}`, operation, document)),
  );
  assert.ok(operations.length > 15);
  const schemas = Object.entries(document.components.schemas).map(([name, schema]) => schemaSection(name, schema));
  return [INTRO, '## Operations\n', ...operations, '## Errors\n', errorTable(document), '## Schemas\n', ...schemas].join('\n');
}

function operationSection(
  title: string,
  { operationId, summary, parameters, requestBody, responses }: Operation,
  all: Document,
): string {
  const lines = [`### ${operationId}\n`, `\`${title}\`\n`, `${summary}\n`];
  const known = parameters.map(one => (one.$ref === undefined ? one : all.components.parameters[nameOf(one.$ref)]!));
  if (known.length > 0) {
    const rows = known.map(({ name, in: place, required = false, description = '', schema }) => [
      `\`${name}\`${required ? ' (required)' : ''}`,
      place,
      typeOf(schema),
      description,
    ]);
    lines.push(markdownTable([['parameter', 'in', 'type', 'meaning'], ...rows]));
  }
  if (requestBody !== undefined) {
    const [media] = Object.values(requestBody.content);
    lines.push(`Body${requestBody.required ? '' : ' (optional)'}: ${typeOf(media!.schema)}\n`);
  }
  const ok = responses['200'];
  if (ok !== undefined) {
    const [[type, media] = ['', {}]] = Object.entries(ok.content ?? {});
    const what = media.schema === undefined ? `\`${type}\`` : typeOf(media.schema);
    lines.push(`Answer: ${what}. ${ok.description}\n`);
  }
  return lines.join('\n');
}

/** The statuses of failures, which are the same for every operation. */
function errorTable({ paths }: Document): string {
  const [first] = Object.values(paths).flatMap(item => Object.values(item));
  const rows = Object.entries(first!.responses)
    .filter(([status]) => status !== '200')
    .map(([status, { description }]) => [status, description]);
  return `Every operation may answer with these. The body is an [Error](#error); [ERRORS.md](../../packages/a2a/ERRORS.md) lists the reasons.\n\n${markdownTable([['status', 'when'], ...rows])}`;
}

function schemaSection(name: string, schema: Schema): string {
  const { properties, required = [] } = schema;
  if (properties === undefined || Object.keys(properties).length === 0) return `### ${name}\n\n${typeOf(schema)}\n`;
  const rows = Object.entries(properties).map(([member, type]) => [
    `\`${member}\`${required.includes(member) ? ' (required)' : ''}`,
    typeOf(type),
  ]);
  const others = choicesOf(schema);
  const choice = others === '' ? '' : `\n${others}\n`;
  return `### ${name}\n\n${markdownTable([['member', 'type'], ...rows])}${choice}`;
}

/** Members of which one is required, where a schema has alternatives. */
function choicesOf({ oneOf = [], anyOf = [], allOf = [] }: Schema): string {
  const required = [...oneOf, ...anyOf, ...allOf.flatMap(one => [...(one.oneOf ?? []), ...(one.anyOf ?? [])])];
  const names = required.flatMap(one => (one.required?.length === 1 ? [`\`${one.required[0]}\``] : []));
  return names.length < 2 ? '' : `${oneOf.length > 0 ? 'Exactly' : 'At least'} one of ${names.join(', ')} is required.`;
}

function typeOf(schema: Schema): string {
  if (schema.$ref !== undefined) return `[${nameOf(schema.$ref)}](#${nameOf(schema.$ref).toLowerCase()})`;
  if (schema.const !== undefined) return `\`${JSON.stringify(schema.const)}\``;
  if (schema.enum !== undefined) return schema.enum.map(one => `\`${JSON.stringify(one)}\``).join(', ');
  const choices = schema.anyOf ?? schema.oneOf;
  if (schema.type === undefined && choices !== undefined) return [...new Set(choices.map(typeOf))].join(' or ');
  if (schema.items !== undefined) return `list of ${typeOf(schema.items)}`;
  const name = [schema.type ?? 'any JSON value'].flat().join(' or ');
  if (name === 'object' && typeof schema.additionalProperties === 'object')
    return `object of ${typeOf(schema.additionalProperties)}`;
  const limits = ['format', 'minimum', 'maximum', 'minLength', 'maxLength', 'pattern'].flatMap(limit =>
    schema[limit] === undefined ? [] : [`${limit} \`${String(schema[limit]).replaceAll('|', '\\|')}\``],
  );
  return [name, ...limits].join(', ');
}

const nameOf = (reference: string): string => reference.slice(reference.lastIndexOf('/') + 1);
