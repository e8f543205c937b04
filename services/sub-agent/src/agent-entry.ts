import { isObject, type JsonObject } from '@hopline/a2a/json-value';
import { Type } from '@hopline/a2a/schema-type';
import { MODEL_STEPS_MAX, MODEL_TOOLS_MAX, RETRIES_MAX } from '@hopline/agent';
import { PACE_MAX } from '@hopline/agent/recording';
import { AGENT_SERVERS_MAX, MODEL_MS_MAX } from '@hopline/agent-model/limits';
import { AGENT_NAME_RULE, isAgentName } from '@hopline/events';
import { suggestion } from '@hopline/lifecycle';
import { unsendableHeader } from '@hopline/outbound-http';
import { Ajv, type ErrorObject } from 'ajv';
import type { Static, TProperties } from 'typebox';
import { a2aFields, checkA2A } from './a2a-entry.ts';
import { httpUrl, ms, strings, text, variable, variables } from './entry-fields.ts';

/** The schema of one entry of the agents file: common fields and those of each adapter. */

/** A skill may be only its name, as in `defineAgent`. */
const SKILL_FORM = 'must be a text, or {"id": …, "name": …, "description": …, "tags": […]}';

const skill = Type.Object(
  {
    id: text(128),
    name: text(128),
    description: text(1_024),
    tags: Type.Array(text(64), { maxItems: 32 }),
    examples: Type.Optional(Type.Array(text(256), { maxItems: 8 })),
  },
  { additionalProperties: false, reason: SKILL_FORM },
);

function entry<const A extends string, P extends TProperties>(adapter: A, properties: P) {
  const common = {
    name: Type.String(),
    adapter: Type.Literal(adapter),
    description: Type.Optional(text(1_024)),
    skills: Type.Optional(Type.Array(skill, { maxItems: 128 })),
    /** How often a call that failed as retryable is repeated. */
    retries: Type.Optional(Type.Integer({ minimum: 0, maximum: RETRIES_MAX })),
    /** Whether the agent receives messages that fit no skill of any agent. */
    default: Type.Optional(Type.Boolean()),
    /** If false, only the supervisor reads the agent's text, and clients do not see it (C-5). */
    forwardText: Type.Optional(Type.Boolean()),
  };
  return Type.Object({ ...common, ...properties }, { additionalProperties: false });
}

const a2a = entry('a2a', a2aFields);

const mcpServer = {
  command: Type.Optional(text(1_024)),
  args: Type.Optional(Type.Array(Type.String({ maxLength: 4_096 }), { maxItems: 128 })),
  env: Type.Optional(strings),
  url: Type.Optional(httpUrl),
  headers: Type.Optional(strings),
};

const mcp = entry('mcp', {
  ...mcpServer,
  tools: Type.Optional(Type.Array(text(128), { maxItems: 512 })),
  connectMsMax: ms,
  silenceMsMax: ms,
  totalMsMax: ms,
});

const agUi = entry('ag-ui', {
  url: httpUrl,
  headers: Type.Optional(strings),
  firstEventMsMax: ms,
  silenceMsMax: ms,
  totalMsMax: ms,
});

const recording = entry('recording', {
  path: text(4_096),
  pace: Type.Optional(
    Type.Union([Type.Enum(['recorded', 'burst', 'packets']), Type.Number({ exclusiveMinimum: 0, maximum: PACE_MAX })], {
      reason: `must be "recorded", "burst", "packets" or a number of tokens per second up to ${PACE_MAX}`,
    }),
  ),
});

const langgraph = entry('langgraph', {
  module: Type.Optional(text(4_096)),
  export: Type.Optional(text(128)),
  env: variables,
  checkpointer: Type.Optional(text(128)),
  loadMsMax: ms,
  url: Type.Optional(httpUrl),
  assistant: Type.Optional(text(128)),
  headers: Type.Optional(strings),
  silenceMsMax: ms,
  totalMsMax: ms,
});

const module = entry('module', {
  // Optional: the definition has a name.
  name: Type.Optional(Type.String()),
  path: text(4_096),
  export: Type.Optional(text(128)),
  env: variables,
  /** How long the module may take to load. */
  loadMsMax: ms,
});

const modelMs = Type.Optional(Type.Integer({ minimum: 1, maximum: MODEL_MS_MAX }));

const model = entry('model', {
  model: text(256),
  baseUrl: Type.Optional(httpUrl),
  apiKeyEnv: Type.Optional(variable),
  headers: Type.Optional(strings),
  system: Type.Optional(text(32_768)),
  temperature: Type.Optional(Type.Number({ minimum: 0, maximum: 2 })),
  mcp: Type.Optional(Type.Array(Type.Object(mcpServer, { additionalProperties: false }), { maxItems: AGENT_SERVERS_MAX })),
  /** Names of tools whose calls a person must approve; true: all. */
  approve: Type.Optional(
    Type.Union([Type.Literal(true), Type.Array(text(128), { maxItems: MODEL_TOOLS_MAX })], {
      reason: `must be true or a list of up to ${MODEL_TOOLS_MAX} names of tools`,
    }),
  ),
  reasoning: Type.Optional(Type.Boolean()),
  /** Media types of files that the model reads; absent: all types that a request can contain. */
  media: Type.Optional(Type.Array(text(128), { maxItems: 32 })),
  stepsMax: Type.Optional(Type.Integer({ minimum: 1, maximum: MODEL_STEPS_MAX })),
  toolResultCharsMax: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_048_576 })),
  firstTokenMsMax: modelMs,
  silenceMsMax: modelMs,
  totalMsMax: ms,
});

type McpServerEntry = Static<ReturnType<typeof Type.Object<typeof mcpServer>>>;
export type A2AEntry = Static<typeof a2a>;
export type AgUiEntry = Static<typeof agUi>;
export type McpEntry = Static<typeof mcp>;
export type LangGraphEntry = Static<typeof langgraph>;
export type ModelEntry = Static<typeof model>;
export type AgentEntry =
  | A2AEntry
  | AgUiEntry
  | LangGraphEntry
  | McpEntry
  | ModelEntry
  | Static<typeof module>
  | Static<typeof recording>;

// A test validates the schemas themselves.
const ajv = new Ajv({ strict: false, verbose: true, allErrors: true, validateSchema: false });
/** Maximum number of faults of one entry in an error. Further ones are only counted. */
export const FAULTS_MAX = 10;
/** Schemas of entries, by adapter. docs/reference/agents.schema.json is generated from them. */
export const SCHEMAS = { a2a, 'ag-ui': agUi, langgraph, mcp, model, module, recording } as const;
const ADAPTERS: ReadonlyMap<unknown, EntrySchema> = new Map(Object.entries(SCHEMAS));

/** Parses an entry. Throws an Error of one sentence that names agent and field, never a value, which may be a credential. */
export function parseAgentEntry(json: string): AgentEntry {
  const value = parseObject(json);
  const name = typeof value.name === 'string' ? value.name.slice(0, 32) : '';
  const label = name === '' ? 'the agent' : `agent "${name}"`;
  const schema = ADAPTERS.get(value.adapter);
  if (schema === undefined) throw new Error(`${label}: adapter must be one of ${Object.keys(SCHEMAS).join(', ')}`);
  if (Array.isArray(value.skills)) value.skills = value.skills.map(skillOf);
  const check = ajv.compile<AgentEntry>(partFor(value, schema));
  if (!check(value)) throw new Error(`${label}: ${faultsIn(faultsOf(value, schema))}`);
  const entry: AgentEntry = value;
  // The name is a token of NATS subjects.
  if (entry.name !== undefined && !isAgentName(entry.name)) throw new Error(`${label}: name must be ${AGENT_NAME_RULE}`);
  if (entry.adapter === 'a2a' || entry.adapter === 'ag-ui' || entry.adapter === 'langgraph' || entry.adapter === 'model')
    checkHeaders(label, entry.headers);
  if (entry.adapter === 'a2a') checkA2A(label, entry);
  if (entry.adapter === 'mcp') checkMcp(label, entry);
  if (entry.adapter === 'langgraph') checkLangGraph(label, entry);
  if (entry.adapter === 'model')
    for (const [index, server] of (entry.mcp ?? []).entries()) checkMcp(`${label}, mcp.${index}`, server);
  return entry;
}

type EntrySchema = (typeof SCHEMAS)[keyof typeof SCHEMAS];

/** The schema without the fields that the value lacks. Compiling a whole schema took 70 ms of CPU, an eighth of each start. */
function partFor(value: object, schema: EntrySchema): object {
  const properties = Object.entries(schema.properties).filter(([field]) => Object.hasOwn(value, field));
  return { ...schema, properties: Object.fromEntries(properties) };
}

/** Faults according to the whole schema, because they name every known field. */
function faultsOf(value: object, schema: EntrySchema): readonly ErrorObject[] {
  const check = ajv.compile(schema);
  check(value);
  return check.errors ?? [];
}

/** Turns a bare name into a skill; any other value is unchanged. */
function skillOf(skill: unknown): unknown {
  if (typeof skill !== 'string') return skill;
  return {
    id: skill
      .toLowerCase()
      .replaceAll(/[^a-z0-9]+/g, '-')
      .slice(0, 128),
    name: skill,
    description: skill,
    tags: [],
  };
}

function checkHeaders(label: string, headers: Readonly<Record<string, string>> = {}): void {
  const header = unsendableHeader(headers);
  if (header !== undefined) throw new Error(`${label}: headers.${header} contains characters that a header cannot have`);
}

function checkMcp(label: string, { command, url, args, env, headers }: McpServerEntry): void {
  if ((command === undefined) === (url === undefined)) throw new Error(`${label}: give either a command or a url`);
  if (url !== undefined && (args !== undefined || env !== undefined))
    throw new Error(`${label}: args and env require a command, not a url`);
  if (command !== undefined && headers !== undefined) throw new Error(`${label}: headers require a url, not a command`);
  checkHeaders(label, headers);
}

function checkLangGraph(
  label: string,
  { module, export: exported, checkpointer, loadMsMax, url, assistant, headers, env }: LangGraphEntry,
): void {
  if ((module === undefined) === (url === undefined)) throw new Error(`${label}: give either a module or the url of a server`);
  if (module !== undefined && (assistant !== undefined || headers !== undefined))
    throw new Error(`${label}: assistant and headers require a url, not a module`);
  if (url === undefined) return;
  if (assistant === undefined) throw new Error(`${label}: assistant is missing: name a graph of the server`);
  if (exported !== undefined || checkpointer !== undefined || loadMsMax !== undefined || env !== undefined)
    throw new Error(`${label}: export, checkpointer, loadMsMax and env require a module, not a url`);
}

function parseObject(json: string): JsonObject {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    throw new Error('HOPLINE_AGENT is not JSON');
  }
  if (!isObject(value)) throw new Error('HOPLINE_AGENT is not an object');
  return value;
}

function unknownField(field: string, known: readonly string[]): string {
  const similar = suggestion(field.split('.').at(-1) ?? '', known);
  return `unknown field ${field}${similar === '' ? '; ' : `${similar} `}known fields: ${known.join(', ')}`;
}

/** All faults of an entry. Unknown fields come first, because a misspelt field also counts as missing. */
function faultsIn(errors: readonly ErrorObject[]): string {
  // The error of an outer rule replaces the errors below it, and has the `reason` for the whole field.
  const outer = errors.filter(({ keyword }) => keyword === 'anyOf' || keyword === 'oneOf');
  const isBelow = (error: ErrorObject) => outer.some(one => one !== error && isWithin(error.instancePath, one.instancePath));
  const shown = errors.filter(error => !isBelow(error));
  const isUnknown = ({ keyword }: ErrorObject) => keyword === 'additionalProperties';
  const faults = [...new Set([...shown.filter(isUnknown), ...shown.filter(one => !isUnknown(one))].map(faultOf))];
  const more = faults.length - FAULTS_MAX;
  return [...faults.slice(0, FAULTS_MAX), ...(more > 0 ? [`and ${more} more`] : [])].join('; ');
}

const isWithin = (path: string, outer: string) => path === outer || path.startsWith(`${outer}/`);

function faultOf(error: ErrorObject): string {
  const path = error.instancePath.slice(1).replaceAll('/', '.');
  const { additionalProperty, missingProperty } = error.params as { additionalProperty?: string; missingProperty?: string };
  const at = (field: string) => (path === '' ? field : `${path}.${field}`);
  const { properties = {}, reason } = (error.parentSchema ?? {}) as { properties?: object; reason?: string };
  if (additionalProperty !== undefined) return unknownField(at(additionalProperty), Object.keys(properties));
  if (missingProperty !== undefined) return `${at(missingProperty)} is missing`;
  return `${path} ${reason ?? error.message ?? 'is invalid'}`;
}
