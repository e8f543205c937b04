import { A2A_JSON_TYPE, type JsonObject, SSE_CONTENT_TYPE } from '@hopline/a2a';
import type { AgentCard } from '@hopline/agent-card';
import type { PublishedCard } from '@hopline/agent-card/signing';
import type { FastifyInstance } from 'fastify';
import { inPathSchema, queryOf, SCHEMAS } from './openapi-schemas.ts';
import { REST_ROUTES } from './routes.ts';

const OPENAPI_PATH = '/openapi.json';

/** How long a reader may keep the document; seconds. Its address may change with the card. */
const DOCUMENT_AGE_S = 300;

/** The document has one version, because a path has: the other one is ProtoJSON of another definition, which names, not schemas, describe. */
const OTHER_VERSION =
  'This is A2A 1.0. Below `/v1` clients of A2A 0.3 find the paths that its specification names, as that version writes them.';

const ref = (name: string): JsonObject => ({ $ref: `#/components/schemas/${name}` });

function json(schema: JsonObject): JsonObject {
  return { [A2A_JSON_TYPE]: { schema }, 'application/json': { schema } };
}

function answer(description: string, schema: string): JsonObject {
  return { '200': { description, content: json(ref(schema)) } };
}

/** `id` of an event of a stream, as a client gets it. */
const CURSOR_PATTERN = '^[0-9]{1,15}\\.[0-9]{1,15}$';

const stream: JsonObject = {
  '200': {
    description:
      'Server-sent events; `data` of each is a StreamResponse, `id` the cursor after it. `error`, `gap` and `drain` are events of their own.',
    // Without a schema: OpenAPI 3.1 has none for the events of a stream, and a reader that checks events takes one of the whole text for one of each.
    content: { [SSE_CONTENT_TYPE]: {} },
  },
};

const cursor: JsonObject = { type: 'string', pattern: CURSOR_PATTERN };
const cursors: JsonObject[] = [
  { name: 'Last-Event-ID', in: 'header', description: 'Continue exactly after this cursor.', schema: cursor },
  { name: 'cursor', in: 'query', description: 'The same, where a header cannot be set.', schema: cursor },
];

type Described = { summary: string; responses?: JsonObject; body?: string; parameters?: JsonObject[]; bodyRequired?: boolean };

/** Of every operation, by its name: what the table of routes does not say. Without `responses` it is never anything but refused. */
const OPERATIONS: Readonly<Record<string, Described>> = {
  SendMessage: {
    summary: 'Sends a message and waits until the task ends or asks, unless `returnImmediately` is set.',
    body: 'SendMessageRequest',
    bodyRequired: true,
    responses: answer('The task.', 'SendMessageResponse'),
  },
  SendStreamingMessage: {
    summary: 'Sends a message and streams what follows, until the task ends or asks.',
    body: 'SendMessageRequest',
    bodyRequired: true,
    responses: stream,
  },
  GetTask: {
    summary: 'A task as it is now.',
    parameters: queryOf('GetTaskRequest', 'id'),
    responses: answer('The task.', 'Task'),
  },
  ListTasks: {
    summary: 'Tasks, the newest status first, page by page.',
    parameters: queryOf('ListTasksRequest'),
    responses: answer('A page.', 'ListTasksResponse'),
  },
  CancelTask: { summary: 'Ends a task.', body: 'CancelTaskRequest', responses: answer('The task.', 'Task') },
  SubscribeToTask: {
    summary: 'Streams a task: as it is now and what follows, or exactly what follows a cursor.',
    parameters: cursors,
    responses: stream,
  },
  CreateTaskPushNotificationConfig: {
    summary:
      'Names a webhook that is told about a task; one of the same id is replaced. Refused where the card offers no push notifications.',
    body: 'TaskPushNotificationConfig',
    bodyRequired: true,
    responses: answer('The configuration, without its secrets.', 'ShownPushNotificationConfig'),
  },
  GetTaskPushNotificationConfig: {
    summary: 'A webhook of a task, without its secrets.',
    responses: answer('The configuration.', 'ShownPushNotificationConfig'),
  },
  ListTaskPushNotificationConfigs: {
    summary: 'The webhooks of a task, in the order of their ids.',
    parameters: queryOf('ListTaskPushNotificationConfigsRequest', 'taskId'),
    responses: answer('A page.', 'ListTaskPushNotificationConfigsResponse'),
  },
  DeleteTaskPushNotificationConfig: {
    summary: 'A webhook is told nothing more. Deleting what is not there is no error.',
    responses: answer('It is gone.', 'Empty'),
  },
  GetExtendedAgentCard: {
    summary: 'What authenticated callers are told beyond the public card. Refused where that does not offer it.',
    responses: answer('The card.', 'AgentCard'),
  },
};

const ERRORS: Readonly<Record<string, string>> = {
  '400': 'The request does not fit, or the task does not allow it; `details[].reason` says which.',
  '401': 'Credentials are missing, have expired or are not valid; `WWW-Authenticate` says what to send.',
  '403': 'The credentials do not allow it.',
  '404': 'There is no such task.',
  '413': 'The body is too large.',
  '500': 'A fault of the server. The same request may succeed later.',
  '503': 'Not now; come back after `Retry-After`.',
};

function operationAt(path: string, method: string, name: string): JsonObject {
  const { summary, responses = {}, body, parameters = [], bodyRequired = false } = OPERATIONS[name]!;
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, parameter]) => ({
    name: parameter,
    in: 'path',
    required: true,
    schema: inPathSchema(path, parameter!),
  }));
  const errors = Object.entries(ERRORS).map(([status, description]) => [status, { description, content: json(ref('Error')) }]);
  return {
    // One operation under two methods needs two ids.
    operationId: name === 'SubscribeToTask' && method === 'POST' ? `${name}ByPost` : name,
    summary,
    parameters: [{ $ref: '#/components/parameters/Version' }, ...inPath, ...parameters],
    ...(body !== undefined && { requestBody: { required: bodyRequired, content: json(ref(body)) } }),
    responses: { ...responses, ...Object.fromEntries(errors) },
  };
}

/** The schemes of the card are those of OpenAPI, beside members of A2A 1.0 that it does not know. */
function openApiSchemes({ securitySchemes }: AgentCard): JsonObject | undefined {
  if (securitySchemes === undefined) return undefined;
  const known = (scheme: JsonObject) =>
    Object.fromEntries(Object.entries(scheme).filter(([key]) => !key.endsWith('SecurityScheme')));
  return Object.fromEntries(Object.entries(securitySchemes).map(([name, scheme]) => [name, known(scheme)]));
}

/** The HTTP+JSON binding in OpenAPI 3.1. Made of the table of routes and of the schemas that requests are checked with, so that it cannot say anything else. */
function openApiDocument(card: AgentCard): JsonObject {
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
    paths: Object.fromEntries(paths),
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
export function registerOpenApi(scope: FastifyInstance, card: PublishedCard): void {
  scope.get(OPENAPI_PATH, async (_request, reply) =>
    reply
      .header('cache-control', `public, max-age=${DOCUMENT_AGE_S}`)
      .type('application/json; charset=utf-8')
      .send(JSON.stringify(openApiDocument((await card.current()).card))),
  );
}
