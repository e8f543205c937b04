import {
  type Artifact,
  type JsonObject,
  type Message,
  type Metadata,
  type Part,
  REQUEST_SCHEMAS,
  type Role,
  type StreamResponse,
  TASK_STATES,
  type Task,
  type TaskArtifactUpdateEvent,
  type TaskState,
  type TaskStatus,
  type TaskStatusUpdateEvent,
  type TimelineEntry,
} from '@hopline/a2a';
import { TASK_ID_CHARS_MAX } from '@hopline/events';

/**
 * JSON Schemas of the OpenAPI document: for requests the schemas that validate them, for responses the canonical types
 * (packages/a2a, `types.ts`).
 *
 * The compiler compares each member of a canonical type with its schema, so that they cannot drift. This needs no code at run
 * time; types derived from schemas would lose their comments and read worse, and they are read more often than the document.
 */

declare const described: unique symbol;
/** A schema of exactly the type T: as both parameter and result, T can be neither wider nor narrower. */
type SchemaOf<T> = JsonObject & { readonly [described]?: (value: T) => T };

type OptionalNames<T> = { [K in keyof T]-?: object extends Pick<T, K> ? K : never }[keyof T];
type RequiredSchemas<T> = { [K in Exclude<keyof T, OptionalNames<T>>]: SchemaOf<T[K]> };
type OptionalSchemas<T> = { [K in OptionalNames<T>]-?: SchemaOf<Exclude<T[K], undefined>> };

type Canonical = {
  Part: Part;
  Message: Message;
  Artifact: Artifact;
  TaskStatus: TaskStatus;
  TimelineEntry: TimelineEntry;
  Task: Task;
  TaskStatusUpdateEvent: TaskStatusUpdateEvent;
  TaskArtifactUpdateEvent: TaskArtifactUpdateEvent;
};

const ref = <N extends string>(name: N): SchemaOf<N extends keyof Canonical ? Canonical[N] : unknown> => ({
  $ref: `#/components/schemas/${name}`,
});
const text: SchemaOf<string> = { type: 'string' };
const number: SchemaOf<number> = { type: 'number' };
const flag: SchemaOf<boolean> = { type: 'boolean' };
const listOf = <T>(items: SchemaOf<T>, more: JsonObject = {}): SchemaOf<T[]> => ({ type: 'array', items, ...more });
const metadata: SchemaOf<Metadata> = { type: 'object' };
const int64: SchemaOf<string> = { type: 'string', pattern: '^[1-9][0-9]*$' };
const time: SchemaOf<string> = { type: 'string', format: 'date-time' };

function object(required: Record<string, JsonObject>, optional: Record<string, JsonObject> = {}): JsonObject {
  return { type: 'object', required: Object.keys(required), properties: { ...required, ...optional } };
}

/** An object with exactly one of several members. */
function oneOf(members: Record<string, JsonObject>, more: JsonObject = {}): JsonObject {
  const oneOf = Object.keys(members).map(member => ({ required: [member] }));
  return { type: 'object', properties: { ...members, ...more }, oneOf };
}

/** The schema of a canonical type. */
const canonical = <T>(required: RequiredSchemas<T>, optional: OptionalSchemas<T>): JsonObject => object(required, optional);

const ids = { taskId: text, contextId: text };
const role: SchemaOf<Role> = { enum: Object.keys({ ROLE_USER: true, ROLE_AGENT: true } satisfies Record<Role, true>) };
const state: SchemaOf<TaskState> = { enum: [...TASK_STATES] };

type PartContent = Pick<Part, 'text' | 'raw' | 'url' | 'data'>;
const partContent: OptionalSchemas<PartContent> = {
  text,
  raw: { type: 'string', contentEncoding: 'base64' },
  url: text,
  data: {},
};
const partMore: OptionalSchemas<Omit<Part, keyof PartContent>> = { metadata, filename: text, mediaType: text };

const timelineContent: OptionalSchemas<Omit<TimelineEntry, 'generation'>> = {
  message: ref('Message'),
  status: ref('TaskStatus'),
};

type MemberName<U> = U extends U ? keyof U : never;
type MemberOf<U, K extends PropertyKey> = U extends Record<K, infer T> ? T : never;
const streamed: { [K in MemberName<StreamResponse>]: SchemaOf<MemberOf<StreamResponse, K>> } = {
  task: ref('Task'),
  message: ref('Message'),
  statusUpdate: ref('TaskStatusUpdateEvent'),
  artifactUpdate: ref('TaskArtifactUpdateEvent'),
};

const CANONICAL: { [N in keyof Canonical]: JsonObject } = {
  Part: oneOf(partContent, partMore),
  Message: canonical<Message>(
    { messageId: text, role, parts: listOf(ref('Part'), { minItems: 1 }) },
    { ...ids, metadata, extensions: listOf(text), referenceTaskIds: listOf(text) },
  ),
  Artifact: canonical<Artifact>(
    { artifactId: text, parts: listOf(ref('Part')) },
    { name: text, description: text, metadata, extensions: listOf(text), startGeneration: int64, endGeneration: int64 },
  ),
  TaskStatus: canonical<TaskStatus>({ state }, { message: ref('Message'), timestamp: time }),
  TimelineEntry: oneOf(timelineContent, { generation: int64 }),
  Task: canonical<Task>(
    { id: text, contextId: text, status: ref('TaskStatus') },
    {
      artifacts: listOf(ref('Artifact')),
      history: listOf(ref('Message')),
      metadata,
      generation: int64,
      timeline: listOf(ref('TimelineEntry')),
    },
  ),
  TaskStatusUpdateEvent: canonical<TaskStatusUpdateEvent>({ ...ids, status: ref('TaskStatus') }, { metadata, generation: int64 }),
  TaskArtifactUpdateEvent: canonical<TaskArtifactUpdateEvent>(
    { ...ids, artifact: ref('Artifact') },
    { append: flag, lastChunk: flag, metadata, generation: int64 },
  ),
};

const RESPONSES: Record<string, JsonObject> = {
  ...CANONICAL,
  SendMessageResponse: oneOf({ task: ref('Task'), message: ref('Message') }),
  StreamResponse: oneOf(streamed),
  ListTasksResponse: object(
    { tasks: listOf(ref('Task')), nextPageToken: text, pageSize: { type: 'integer' } },
    // Absent if a filter leaves it unknown.
    { totalSize: { type: 'integer' } },
  ),
  ShownPushNotificationConfig: object({ id: text, taskId: text, url: text }, { authentication: object({ scheme: text }) }),
  ListTaskPushNotificationConfigsResponse: object({
    configs: listOf(ref('ShownPushNotificationConfig')),
    nextPageToken: text,
  }),
  ListAgentsResponse: object({
    agents: listOf(
      object(
        {
          name: text,
          description: text,
          skills: listOf(object({ id: text, name: text })),
          state: { enum: ['live', 'silent'] },
          default: flag,
          lastSeenAt: time,
        },
        { fault: text, failing: text, card: ref('CardReport') },
      ),
    ),
  }),
  CardReport: object({
    name: text,
    version: text,
    provider: text,
    interfaces: listOf(text),
    capabilities: listOf(text),
    extensions: listOf(text),
    inputModes: listOf(text),
    outputModes: listOf(text),
    findings: listOf(text),
  }),
  ListDeliveriesResponse: object({
    webhooks: listOf(
      object(
        {
          id: text,
          url: text,
          dialect: text,
          state: { enum: ['delivering', 'failing', 'delivered', 'abandoned'] },
          generation: { type: 'integer' },
          failures: { type: 'integer' },
        },
        { failingSince: time, retryAt: time },
      ),
    ),
  }),
  TaskAudit: object({
    taskId: text,
    contextId: text,
    state: text,
    startedAt: number,
    traces: listOf(text),
    turns: listOf(metadata),
    costs: listOf(metadata),
    chunkHops: listOf(metadata),
    notRecorded: listOf(text),
    hops: listOf(metadata),
    relays: listOf(metadata),
    gaps: listOf(metadata),
    producers: listOf(metadata),
    events: listOf(metadata),
    heldMs: metadata,
    ageMs: metadata,
    audit: metadata,
  }),
  EventExplanation: object(
    {
      taskId: text,
      cursor: text,
      startedAt: number,
      generation: number,
      seq: number,
      kind: text,
      name: text,
      atMs: number,
      inputs: listOf(metadata),
      inputCount: number,
    },
    { storedMs: number, relay: text, takeover: metadata, producer: metadata, chunk: metadata, path: listOf(metadata) },
  ),
  Empty: object({}),
  AgentCard: object({
    name: text,
    description: text,
    version: text,
    capabilities: metadata,
    skills: listOf(metadata, { minItems: 1 }),
  }),
  Error: object({
    error: object({ code: { type: 'integer' }, status: text, message: text, details: listOf(object({ '@type': text })) }),
  }),
};

/** Every URL in a request is a webhook; the server accepts no other scheme. */
const WEBHOOK = '^https?://[^\\u0000-\\u0020\\u007f]+$';

/**
 * Converts a request's schema to JSON Schema 2020-12, the dialect of OpenAPI 3.1: `reason` is a keyword of ours, and `nullable`
 * one of OpenAPI 3.0.
 */
function plain(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(plain);
  if (typeof schema !== 'object' || schema === null) return schema;
  const { reason: _reason, nullable, ...rest } = schema as JsonObject;
  const converted = Object.fromEntries(Object.entries(rest).map(([name, value]) => [name, plain(value)]));
  if (converted.format === 'uri') {
    // URLs are parsed as in browsers, which accept more than RFC 3986.
    delete converted.format;
    converted.pattern = WEBHOOK;
  }
  return nullable === true ? { ...converted, type: [converted.type, 'null'].flat() } : converted;
}

/** The schemas as plain JSON, without the symbols that their library adds. */
const requests = JSON.parse(JSON.stringify(REQUEST_SCHEMAS)) as Record<
  keyof typeof REQUEST_SCHEMAS,
  { properties: Record<string, JsonObject> }
>;

type Query = 'GetTaskRequest' | 'ListTasksRequest' | 'ListTaskPushNotificationConfigsRequest';

/** Query parameters of a request: its members except the one in the path. A query cannot express null. */
export function queryOf(name: Query, inPath?: string): JsonObject[] {
  const members = Object.entries(requests[name].properties).filter(([member]) => member !== inPath);
  return members.map(([member, { nullable: _nullable, ...schema }]) => {
    const values = Array.isArray(schema.enum) ? { enum: schema.enum.filter(value => value !== null) } : {};
    const ofMember = plain({ ...schema, ...values });
    return { name: member, in: 'query', schema: member === 'statusTimestampAfter' ? { anyOf: [time, { const: '' }] } : ofMember };
  });
}

/** A path parameter. The pattern excludes text that cannot be a task id; `:` would start a verb. */
export function inPathSchema(path: string, name: string): JsonObject {
  if (name === 'id' && path.includes('{taskId}'))
    return plain(requests.GetTaskPushNotificationConfigRequest.properties.id) as JsonObject;
  return { type: 'string', minLength: 1, maxLength: TASK_ID_CHARS_MAX, pattern: '^[A-Za-z0-9_-]+$' };
}

/** Path parameters are not members of the body. */
function without(inPath: string, schema: unknown): unknown {
  const { properties, required = [], ...rest } = schema as { properties: JsonObject; required?: string[] };
  const { [inPath]: _inPath, ...others } = properties;
  return { ...rest, properties: others, required: required.filter(member => member !== inPath) };
}

export const SCHEMAS: JsonObject = {
  ...RESPONSES,
  SendMessageRequest: plain(requests.SendMessageRequest),
  CancelTaskRequest: without('id', plain(requests.CancelTaskRequest)),
  TaskPushNotificationConfig: without('taskId', plain(requests.TaskPushNotificationConfig)),
};
