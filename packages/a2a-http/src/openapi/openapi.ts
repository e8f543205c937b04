import { A2A_JSON_TYPE, type JsonObject, SSE_CONTENT_TYPE } from '@hopline/a2a';
import type { AgentCard } from '@hopline/agent-card';
import type { PublishedCard } from '@hopline/agent-card/signing';
import type { FastifyInstance } from 'fastify';
import { AGENTS_PATH } from '../agents-route.ts';
import type { Front } from '../front.ts';
import { REST_ROUTES } from '../rest/routes.ts';
import { EVENT_AUDIT_PATH, TASK_AUDIT_PATH } from '../task-audit-route.ts';
import { TASK_DELIVERIES_PATH } from '../task-deliveries-route.ts';
import { TASK_EXPORT_PATH } from '../task-export-route.ts';
import { inPathSchema, queryOf, SCHEMAS } from './openapi-schemas.ts';

const OPENAPI_PATH = '/openapi.json';

/** How long clients may cache the document, in seconds. Its server address may change with the card. */
const DOCUMENT_AGE_S = 300;

/**
 * The document covers only 1.0, because a path has one version: 0.3 is ProtoJSON of another definition, and its methods are better
 * described by name than by schemas.
 */
const OTHER_VERSION = 'This is A2A 1.0. Clients of A2A 0.3 use the paths below `/v1`, in the JSON of that version.';

const ref = (name: string): JsonObject => ({ $ref: `#/components/schemas/${name}` });

function json(schema: JsonObject): JsonObject {
  return { [A2A_JSON_TYPE]: { schema }, 'application/json': { schema } };
}

function answer(description: string, schema: string): JsonObject {
  return { '200': { description, content: json(ref(schema)) } };
}

/** `id` of an event of a stream. */
const CURSOR_PATTERN = '^[0-9]{1,15}\\.[0-9]{1,15}$';

const stream: JsonObject = {
  '200': {
    description:
      'Server-sent events: `data` is a StreamResponse, `id` the cursor after it. `error`, `gap` and `drain` are separate events.',
    // No schema: OpenAPI 3.1 cannot describe single events of a stream, and validators would apply the schema to the whole text.
    content: { [SSE_CONTENT_TYPE]: {} },
  },
};

const cursor: JsonObject = { type: 'string', pattern: CURSOR_PATTERN };
const cursors: JsonObject[] = [
  { name: 'Last-Event-ID', in: 'header', description: 'Continue exactly after this cursor.', schema: cursor },
  { name: 'cursor', in: 'query', description: 'The cursor, for clients that cannot set headers.', schema: cursor },
];

type Described = { summary: string; responses?: JsonObject; body?: string; parameters?: JsonObject[]; bodyRequired?: boolean };

/** Parts of an operation that the table of routes lacks, by operation name. Operations without `responses` only ever answer with an error. */
const OPERATIONS: Readonly<Record<string, Described>> = {
  SendMessage: {
    summary: 'Sends a message and waits until the task ends or requires input, unless `returnImmediately` is set.',
    body: 'SendMessageRequest',
    bodyRequired: true,
    responses: answer('The task.', 'SendMessageResponse'),
  },
  SendStreamingMessage: {
    summary: 'Sends a message and streams the events that follow, until the task ends or requires input.',
    body: 'SendMessageRequest',
    bodyRequired: true,
    responses: stream,
  },
  GetTask: {
    summary: 'Returns a task as it is now.',
    parameters: queryOf('GetTaskRequest', 'id'),
    responses: answer('The task.', 'Task'),
  },
  ListTasks: {
    summary: 'Lists tasks, newest status first, in pages.',
    parameters: queryOf('ListTasksRequest'),
    responses: answer('A page.', 'ListTasksResponse'),
  },
  CancelTask: { summary: 'Cancels a task.', body: 'CancelTaskRequest', responses: answer('The task.', 'Task') },
  SubscribeToTask: {
    summary: 'Streams a task: its current state and later events, or exactly the events after a cursor.',
    parameters: cursors,
    responses: {
      ...stream,
      '204': {
        description: 'For an EventSource that has every event of a task that has ended, so that it does not connect again.',
      },
    },
  },
  CreateTaskPushNotificationConfig: {
    summary:
      'Sets a webhook that receives the events of a task; one with the same id is replaced. Refused when the card declares no push notifications.',
    body: 'TaskPushNotificationConfig',
    bodyRequired: true,
    responses: answer('The configuration, without its secrets.', 'ShownPushNotificationConfig'),
  },
  GetTaskPushNotificationConfig: {
    summary: 'Returns a webhook of a task, without its secrets.',
    responses: answer('The configuration.', 'ShownPushNotificationConfig'),
  },
  ListTaskPushNotificationConfigs: {
    summary: 'Lists the webhooks of a task, ordered by id.',
    parameters: queryOf('ListTaskPushNotificationConfigsRequest', 'taskId'),
    responses: answer('A page.', 'ListTaskPushNotificationConfigsResponse'),
  },
  DeleteTaskPushNotificationConfig: {
    summary: 'Deletes a webhook. Idempotent.',
    responses: answer('The webhook is deleted.', 'Empty'),
  },
  GetExtendedAgentCard: {
    summary: 'Returns the extended card for authenticated callers. Refused when the public card declares none.',
    responses: answer('The card.', 'AgentCard'),
  },
};

const ERRORS: Readonly<Record<string, string>> = {
  '400': 'The request is invalid, or the task does not allow it; see `details[].reason`.',
  '401': 'Credentials are missing, expired or invalid; `WWW-Authenticate` names what to send.',
  '403': 'The caller is not allowed to do this.',
  '404': 'The task does not exist.',
  '413': 'The body is too large.',
  '415': 'The body is not JSON or is compressed, or a POST without a body has no header that names its type or version.',
  '421': 'The Host header does not name this server, which requires no credentials.',
  '429': 'A limit of the caller or its tenant is reached; retry after `Retry-After`.',
  '500': 'Server fault. The same request may succeed later.',
  '503': 'Temporarily unavailable; retry after `Retry-After`.',
};

function errorResponses(): JsonObject {
  const errors = Object.entries(ERRORS).map(([status, description]) => [status, { description, content: json(ref('Error')) }]);
  return Object.fromEntries(errors);
}

function inPathOf(path: string): JsonObject[] {
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name!);
  return names.map(name => ({ name, in: 'path', required: true, schema: inPathSchema(path, name) }));
}

function operationAt(path: string, method: string, name: string): JsonObject {
  const { summary, responses = {}, body, parameters = [], bodyRequired = false } = OPERATIONS[name]!;
  return {
    // An operation id must be unique, so an operation with two methods needs two ids.
    operationId: name === 'SubscribeToTask' && method === 'POST' ? `${name}ByPost` : name,
    summary,
    parameters: [{ $ref: '#/components/parameters/Version' }, ...inPathOf(path), ...parameters],
    ...(body !== undefined && { requestBody: { required: bodyRequired, content: json(ref(body)) } }),
    responses: { ...responses, ...errorResponses() },
  };
}

/** An extension of Hopline, in no version of A2A. */
function listAgents(): JsonObject {
  const agents = { description: 'The agents.', content: { 'application/json': { schema: ref('ListAgentsResponse') } } };
  const summary = 'Lists the agents behind the server. Not part of A2A.';
  return { operationId: 'ListAgents', summary, parameters: [], responses: { '200': agents, ...errorResponses() } };
}

/** This is also an extension of Hopline, and in no version of A2A. */
function auditTask(): JsonObject {
  const audit = {
    description: 'The time line of the task, and its inputs by outcome.',
    content: { 'application/json': { schema: ref('TaskAudit') } },
  };
  const summary =
    'Reports where a task spent its time and whether any input was lost: numbers and names, never text. Not part of A2A.';
  const parameters = [{ name: 'taskId', in: 'path', required: true, schema: inPathSchema('/tasks/{id}', 'id') }];
  return { operationId: 'AuditTask', summary, parameters, responses: { '200': audit, ...errorResponses() } };
}

/** This is also an extension of Hopline, and in no version of A2A. */
function listDeliveries(): JsonObject {
  const deliveries = {
    description: 'The webhooks of the task, without their secrets.',
    content: { 'application/json': { schema: ref('ListDeliveriesResponse') } },
  };
  const parameters = [{ name: 'taskId', in: 'path', required: true, schema: inPathSchema('/tasks/{id}', 'id') }];
  const summary = 'Reports up to which event each webhook of a task has received, and its failures. Not part of A2A.';
  return { operationId: 'ListDeliveries', summary, parameters, responses: { '200': deliveries, ...errorResponses() } };
}

/** This is also an extension of Hopline, and in no version of A2A. */
function exportTask(): JsonObject {
  const file = { description: 'One JSON object a line: a task file.', content: { 'application/jsonl': {} } };
  const records = { type: 'string', pattern: '^(inputs|facts)(,(inputs|facts))?$' };
  const parameters = [
    { name: 'taskId', in: 'path', required: true, schema: inPathSchema('/tasks/{id}', 'id') },
    { name: 'records', in: 'query', description: 'Records in the file. Default: both.', schema: records },
    {
      name: 'after',
      in: 'query',
      description: 'Position at which to continue an interrupted export.',
      schema: { type: 'string' },
    },
  ];
  const summary = 'Streams the records of a task as a file, without data that only services read. Not part of A2A.';
  return { operationId: 'ExportTask', summary, parameters, responses: { '200': file, ...errorResponses() } };
}

function explainEvent(): JsonObject {
  const explanation = {
    description: 'The inputs of the event, its hops, and the relay that stored it.',
    content: { 'application/json': { schema: ref('EventExplanation') } },
  };
  const summary = 'Reports where one event of a task comes from: numbers and names, never text. Not part of A2A.';
  const parameters = [
    { name: 'taskId', in: 'path', required: true, schema: inPathSchema('/tasks/{id}', 'id') },
    { name: 'cursor', in: 'path', required: true, schema: { type: 'string', pattern: '^\\d{1,15}\\.\\d{1,15}$' } },
  ];
  return { operationId: 'ExplainEvent', summary, parameters, responses: { '200': explanation, ...errorResponses() } };
}

/** The operations of other protocols on the server. */
function operationsOf(fronts: readonly Front[]): JsonObject {
  const paths = fronts.flatMap(({ openApi = {} }) => Object.entries(openApi));
  const whole = (path: string, { parameters, responses, ...operation }: JsonObject): JsonObject => ({
    ...operation,
    parameters: [...inPathOf(path), ...((parameters as JsonObject[] | undefined) ?? [])],
    responses: { ...errorResponses(), ...(responses as JsonObject) },
  });
  return Object.fromEntries(
    paths.map(([path, methods]) => [
      path,
      Object.fromEntries(Object.entries(methods).map(([method, operation]) => [method, whole(path, operation)])),
    ]),
  );
}

/** The security schemes of the card in OpenAPI, without the members of A2A 1.0. */
function openApiSchemes({ securitySchemes }: AgentCard): JsonObject | undefined {
  if (securitySchemes === undefined) return undefined;
  const known = (scheme: JsonObject) =>
    Object.fromEntries(Object.entries(scheme).filter(([key]) => !key.endsWith('SecurityScheme')));
  return Object.fromEntries(Object.entries(securitySchemes).map(([name, scheme]) => [name, known(scheme)]));
}

/**
 * Whether the server has GET `/agents`, GET `/tasks/{taskId}/audit` (with the audits of events), and GET `/tasks/{taskId}/export` and
 * `/deliveries`.
 */
type OpenApiOptions = {
  listsAgents: boolean;
  auditsTasks: boolean;
  exportsTasks: boolean;
  listsDeliveries: boolean;
  fronts: readonly Front[];
};

/**
 * The HTTP+JSON binding in OpenAPI 3.1, generated from the table of routes and the schemas that validate requests, so that it
 * cannot diverge.
 */
export function openApiDocument(card: AgentCard, options: OpenApiOptions): JsonObject {
  const { listsAgents, auditsTasks, exportsTasks, listsDeliveries, fronts } = options;
  const paths = Object.entries(REST_ROUTES).map(([path, route]) => {
    const methods = Object.entries(route).map(([method, name]) => [method.toLowerCase(), operationAt(path, method, name)]);
    return [path, Object.fromEntries(methods)];
  });
  const { name, version, description, supportedInterfaces, security } = card;
  const securitySchemes = openApiSchemes(card);
  const url = supportedInterfaces.find(one => one.protocolBinding === 'HTTP+JSON')?.url;
  return {
    openapi: '3.1.0',
    info: { title: name, version, description: `${description}\n\n${OTHER_VERSION}` },
    servers: [{ url: url || '/' }],
    paths: {
      ...Object.fromEntries(paths),
      ...(listsAgents && { [AGENTS_PATH]: { get: listAgents() } }),
      ...(auditsTasks && { [TASK_AUDIT_PATH]: { get: auditTask() }, [EVENT_AUDIT_PATH]: { get: explainEvent() } }),
      ...(listsDeliveries && { [TASK_DELIVERIES_PATH]: { get: listDeliveries() } }),
      ...(exportsTasks && { [TASK_EXPORT_PATH]: { get: exportTask() } }),
      ...operationsOf(fronts),
    },
    components: {
      parameters: {
        Version: { name: 'A2A-Version', in: 'header', required: true, schema: { type: 'string', enum: ['1.0'] } },
      },
      schemas: SCHEMAS,
      ...(securitySchemes && { securitySchemes }),
    },
    ...(security && { security }),
  };
}

/** GET `/openapi.json`. */
export function registerOpenApi(scope: FastifyInstance, card: PublishedCard, options: OpenApiOptions): void {
  scope.get(OPENAPI_PATH, async (_request, reply) =>
    reply
      .header('cache-control', `public, max-age=${DOCUMENT_AGE_S}`)
      .type('application/json; charset=utf-8')
      .send(JSON.stringify(openApiDocument((await card.current()).card, options))),
  );
}
