import { SCHEMAS } from '../../services/sub-agent/src/agent-entry.ts';

/** The same limits as in infra/local/launcher/agents-file.ts. */
const AGENTS_MAX = 64;
const NAME = '^[a-z0-9][a-z0-9-]{0,31}$';

type Schema = { [name: string]: unknown; properties?: Record<string, object>; required?: readonly string[] };

/** The text of docs/reference/agents.schema.json: the agents file of the launcher, for editors. */
export function agentsSchemaDocument(): string {
  const entries = Object.values(SCHEMAS).map(schema => entryOf(JSON.parse(JSON.stringify(schema, withoutReason))));
  const schema = {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: 'Agents of a Hopline cluster',
    description: 'The file of `npm start -- --agents FILE`: one sub-agent process for each entry.',
    type: 'object',
    required: ['agents'],
    properties: {
      $schema: { type: 'string' },
      agents: { type: 'array', minItems: 1, maxItems: AGENTS_MAX, items: { oneOf: entries } },
    },
    additionalProperties: false,
  };
  return `${JSON.stringify(schema, null, 2)}\n`;
}

/** The launcher needs a name for every entry, and checks its form. A skill may be its name; the sub-agent completes it. */
function entryOf(schema: Schema): Schema {
  const required = [...new Set(['name', ...(schema.required ?? [])])];
  const { skills, ...properties } = schema.properties as { skills: { items: object } } & Record<string, object>;
  const name = { type: 'string', minLength: 1, maxLength: 128 };
  const either = { ...skills, items: { anyOf: [name, skills.items] } };
  return { ...schema, properties: { ...properties, name: { type: 'string', pattern: NAME }, skills: either }, required };
}

/** `reason` is our own error sentence, not a keyword of JSON Schema. */
function withoutReason(name: string, value: unknown): unknown {
  return name === 'reason' && typeof value === 'string' ? undefined : value;
}
