import type { Operation } from '@hopline/a2a';

export const HTTP_METHODS = ['GET', 'POST', 'DELETE'] as const;
export type HttpMethod = (typeof HTTP_METHODS)[number];

/** The operations of a path, by method. */
type RestRoute<T> = { readonly [method in HttpMethod]?: T };
export type RestRoutes<T> = Readonly<Record<string, RestRoute<T>>>;

/**
 * HTTP+JSON of 1.0 as data ([A2A 1.0] 5.3 and 11.3, annotations in a2a.proto, which also names the parameters), by JSON-RPC
 * method. Each path also exists under `/{tenant}`. The binding and its OpenAPI document are generated from it.
 */
export const REST_ROUTES: RestRoutes<string> = {
  '/message:send': { POST: 'SendMessage' },
  '/message:stream': { POST: 'SendStreamingMessage' },
  '/tasks': { GET: 'ListTasks' },
  '/tasks/{id}': { GET: 'GetTask' },
  '/tasks/{id}:cancel': { POST: 'CancelTask' },
  // The specification's text has POST and its a2a.proto has GET; clients use both.
  '/tasks/{id}:subscribe': { GET: 'SubscribeToTask', POST: 'SubscribeToTask' },
  '/tasks/{taskId}/pushNotificationConfigs': {
    GET: 'ListTaskPushNotificationConfigs',
    POST: 'CreateTaskPushNotificationConfig',
  },
  '/tasks/{taskId}/pushNotificationConfigs/{id}': {
    GET: 'GetTaskPushNotificationConfig',
    DELETE: 'DeleteTaskPushNotificationConfig',
  },
  '/extendedAgentCard': { GET: 'GetExtendedAgentCard' },
};

/** HTTP+JSON of 0.3 ([A2A 0.3] 3.5.6 and 7), by operation instead of method, because a list has no JSON-RPC method. */
export const REST_ROUTES_03: RestRoutes<Operation> = {
  '/v1/message:send': { POST: 'send' },
  '/v1/message:stream': { POST: 'stream' },
  '/v1/tasks': { GET: 'list' },
  '/v1/tasks/{id}': { GET: 'get' },
  '/v1/tasks/{id}:cancel': { POST: 'cancel' },
  // The JavaScript SDK uses POST, as in the specification's text; the Python SDK uses GET, as in the proto.
  '/v1/tasks/{id}:subscribe': { GET: 'subscribe', POST: 'subscribe' },
  '/v1/tasks/{taskId}/pushNotificationConfigs': { GET: 'listPush', POST: 'createPush' },
  '/v1/tasks/{taskId}/pushNotificationConfigs/{id}': { GET: 'getPush', DELETE: 'deletePush' },
  '/v1/card': { GET: 'extendedCard' },
  // 0.2 has this address instead of a method ([A2A 0.2.6] 7.10).
  '/agent/authenticatedExtendedCard': { GET: 'extendedCard' },
};

/** A task id contains no colon, so the text after one is the verb. The router cannot separate the two, because `:` starts a parameter. */
const VERB = /\/\{id\}:\w+$/;

/** Paths in the syntax of the router. Paths of a task that differ only in the verb share one entry. */
export function routerPaths(routes: RestRoutes<unknown>): string[] {
  return [...new Set(Object.keys(routes).map(routerPath))];
}

function routerPath(path: string): string {
  return path
    .replace(VERB, '/{id}')
    .replaceAll(':', '::')
    .replaceAll(/\{(\w+)\}/g, ':$1');
}

/** The route of a request that the router matched to `routed`, and its path parameters; undefined for an unknown verb. */
export function routeOf<T>(
  routes: RestRoutes<T>,
  routed: string,
  params: Readonly<Record<string, string>>,
): { route: RestRoute<T>; params: Record<string, string> } | undefined {
  const [path, verb] = Object.keys(routes).filter(one => routerPath(one) === routed);
  if (path === undefined) return undefined;
  const { id = '', ...others } = params;
  const colon = id.indexOf(':');
  if (verb === undefined || colon < 0) return { route: routes[path]!, params: { ...params } };
  const withVerb = path + id.slice(colon);
  return Object.hasOwn(routes, withVerb)
    ? { route: routes[withVerb]!, params: { ...others, id: id.slice(0, colon) } }
    : undefined;
}
