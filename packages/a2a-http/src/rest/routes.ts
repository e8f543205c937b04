export const HTTP_METHODS = ['GET', 'POST', 'DELETE'] as const;
export type HttpMethod = (typeof HTTP_METHODS)[number];

/** What the methods of a path do, by the name that JSON-RPC has for the same. */
export type RestRoute = { readonly [method in HttpMethod]?: string };

/**
 * The HTTP+JSON binding as data ([A2A 1.0] 5.3 and 11.3, annotations in a2a.proto, whose names the parameters have). Each of them also exists under `/{tenant}`. The door and its OpenAPI document are made of it.
 */
export const REST_ROUTES: Readonly<Record<string, RestRoute>> = {
  '/message:send': { POST: 'SendMessage' },
  '/message:stream': { POST: 'SendStreamingMessage' },
  '/tasks': { GET: 'ListTasks' },
  '/tasks/{id}': { GET: 'GetTask' },
  '/tasks/{id}:cancel': { POST: 'CancelTask' },
  // The text of the specification says POST, its a2a.proto GET; clients of both kinds exist.
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

/** A task id has no colon, so what follows one is the verb. The router cannot split them: to it `:` begins a parameter. */
const TASK_PATH = '/tasks/{id}';

/** Paths as the router knows them: those that differ by their verb alone are one. */
export const ROUTER_PATHS: readonly string[] = [...new Set(Object.keys(REST_ROUTES).map(routerPath))];

function routerPath(path: string): string {
  const plain = path.startsWith(`${TASK_PATH}:`) ? TASK_PATH : path;
  return plain.replaceAll(':', '::').replaceAll(/\{(\w+)\}/g, ':$1');
}

/** The route of a request, and its parameters in the path; undefined for a verb that is none. */
export function routeOf(
  routed: string,
  params: Readonly<Record<string, string>>,
): { route: RestRoute; params: Record<string, string> } | undefined {
  const { id, ...others } = params;
  if (routed !== routerPath(TASK_PATH) || id === undefined) return { route: routeAt(routed)!, params: { ...params } };
  const colon = id.indexOf(':');
  if (colon < 0) return { route: REST_ROUTES[TASK_PATH]!, params: { ...params } };
  const path = TASK_PATH + id.slice(colon);
  if (!Object.hasOwn(REST_ROUTES, path)) return undefined;
  return { route: REST_ROUTES[path]!, params: { ...others, id: id.slice(0, colon) } };
}

function routeAt(routed: string): RestRoute | undefined {
  const path = Object.keys(REST_ROUTES).find(one => routerPath(one) === routed);
  return path === undefined ? undefined : REST_ROUTES[path];
}
