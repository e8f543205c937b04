import { readFileSync } from 'node:fs';
import type { Setting } from '../../packages/lifecycle/src/index.ts';
import { agentsSchemaDocument } from './agents-schema-document.ts';
import { SERVICES, type ServiceSettings } from './settings-document.ts';

type Schema = { [member: string]: unknown; properties?: Record<string, Schema>; items?: Schema; $defs?: Record<string, Schema> };

/** Paths of `settings` in the values of each chart, by the service that reads them; `all`: every service. */
const SETTINGS_OF: Record<string, Record<string, string>> = {
  hopline: {
    settings: 'all',
    'ingress.settings': 'ingress',
    'relay.settings': 'relay',
    'supervisor.settings': 'supervisor',
    'notifier.settings': 'notifier',
    'console.settings': 'console',
    'agents.settings': 'sub-agent',
  },
  'hopline-agent': { settings: 'sub-agent' },
};

const CHARACTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_';
const PREFIX = 'HOPLINE_';
/**
 * Matches variables that do not begin with PREFIX: each alternative deviates from it at one character. Helm's regular expressions have no
 * lookahead, and its messages about `propertyNames` point to a wrong place.
 */
const WITHOUT_PREFIX = `^(${[...PREFIX].map(differsAt).join('|')})$`;

function differsAt(character: string, index: number): string {
  const others = `[${(index === 0 ? CHARACTERS.slice(0, 26) : CHARACTERS).replace(character, '')}]`;
  const rest = `${others}[A-Z0-9_]*`;
  return index === 0 ? rest : `${PREFIX.slice(0, index)}(${rest})?`;
}

/** Paths in the values that hold an agent in the form of an agents file. */
const ENTRY_OF: Record<string, string> = { hopline: 'agents.entry', 'hopline-agent': 'entry' };

/**
 * The text of a chart's values.schema.json: the written file, with the schemas of `settings` and of agent entries generated from the
 * services' declarations.
 */
export async function chartSchemaDocument(chart: string): Promise<string> {
  const file = new URL(`../../infra/helm/${chart}/values.schema.json`, import.meta.url);
  const schema = JSON.parse(readFileSync(file, 'utf8')) as Schema;
  const definitions = new Map<string, Setting>();
  for (const [path, service] of Object.entries(SETTINGS_OF[chart]!)) {
    const settings: ServiceSettings = service === 'all' ? Object.assign({}, ...Object.values(SERVICES)) : SERVICES[service]!;
    for (const [name, setting] of Object.entries(settings)) definitions.set(name, setting);
    Object.assign(memberOf(schema, path), settingsSchema(Object.keys(settings)));
  }
  const sorted = [...definitions].sort(([one], [other]) => (one < other ? -1 : 1));
  Object.assign(memberOf(schema, ENTRY_OF[chart]!), await entrySchema());
  const { agent } = schema.$defs ?? {};
  schema.$defs = {
    ...(agent !== undefined && { podsOfRole: podsOfRole(schema.properties!.pods!), agent }),
    ...Object.fromEntries(sorted.map(([name, setting]) => [name, valueSchema(setting)])),
  };
  return `${JSON.stringify(schema, null, 2)}\n`;
}

/**
 * The members of `pods` that a role, an agent or NATS may set for itself; null removes a member that the chart does not need. `resources`
 * is next to the `pods` of a role.
 */
function podsOfRole({ properties: { resources: _resources, ...members } = {} }: Schema): Schema {
  const isRemovable = ({ type, pattern }: Schema) => type !== 'integer' && pattern === undefined;
  const nullable = Object.entries(members).map(([name, member]) => [
    name,
    isRemovable(member) ? { ...member, type: [...new Set([member.type, 'null'].flat())] } : member,
  ]);
  const description =
    'Laid over `pods`, as Helm lays one file of values over another: maps are merged, lists replaced, and null removes a member.';
  return { type: 'object', description, additionalProperties: false, properties: Object.fromEntries(nullable) };
}

/** Helm's regular expressions repeat at most 1,000 times: sub-agents check the length at start. */
function withoutLongRepeats(member: string, value: unknown): unknown {
  return member === 'pattern' && /\{\d*,?\d{4,}\}/.test(String(value)) ? undefined : value;
}

/** The form of an agents file, without the name. A condition for each adapter lets a message refer to the adapter that is named. */
async function entrySchema(): Promise<Schema> {
  const { properties } = JSON.parse(await agentsSchemaDocument(), withoutLongRepeats) as Schema;
  const forms = properties!.agents!.items!.oneOf as (Schema & { required: string[] })[];
  const adapters = forms.map(({ properties }) => properties!.adapter!.const);
  return {
    // An empty map is refused with an error sentence.
    properties: { adapter: { enum: adapters } },
    additionalProperties: true,
    allOf: forms.map(({ properties: { name: _name, ...own } = {}, required, ...form }) => ({
      if: { properties: { adapter: own.adapter }, required: ['adapter'] },
      // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
      then: { ...form, required: required.filter(member => member !== 'name'), properties: own },
    })),
  };
}

function memberOf(schema: Schema, path: string): Schema {
  const start = path.startsWith('agents.') ? { properties: { agents: schema.$defs!.agent! } } : schema;
  return path.split('.').reduce<Schema>((found, name) => found.properties![name]!, start);
}

/** Names that begin with HOPLINE_ are settings. Others are for Node, OpenTelemetry, proxies and agents. */
function settingsSchema(names: readonly string[]): Schema {
  const definitions = names.filter(name => name.startsWith(PREFIX)).sort();
  return {
    additionalProperties: false,
    patternProperties: { [WITHOUT_PREFIX]: { type: ['string', 'number', 'boolean'] } },
    properties: Object.fromEntries(definitions.map(name => [name, { $ref: `#/$defs/${name}` }])),
  };
}

/** Values that a service accepts. A value may be text, as in an environment; empty text counts as not set. */
function valueSchema(setting: Setting): Schema {
  switch (setting.type) {
    case 'boolean':
      return { enum: [true, false, 'true', 'false', 1, 0, '1', '0', ''] };
    case 'enum':
      return { enum: [...setting.values, ''] };
    case 'integer':
      return { type: ['integer', 'string'], pattern: '^([+-]?[0-9]+)?$', ...bounds(setting) };
    case 'number':
      return { type: ['number', 'string'], pattern: '^([+-]?[0-9.]+(e[+-]?[0-9]+)?)?$', ...bounds(setting) };
    case 'url':
      return { type: 'string', ...(setting.schemes && { pattern: `^((${setting.schemes.join('|')})://.*)?$` }) };
    case 'string':
      // A number or boolean of a values file becomes text.
      return { type: ['string', 'number', 'boolean'], ...(setting.max !== undefined && { maxLength: setting.max }) };
  }
}

function bounds({ min, max }: { readonly min?: number; readonly max?: number }): Schema {
  return { ...(min !== undefined && { minimum: min }), ...(max !== undefined && { maximum: max }) };
}
