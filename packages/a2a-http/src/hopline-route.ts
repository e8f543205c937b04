import { A2AError } from '@hopline/a2a';
import { type A2AServer, type RequestOutsideA2A, report } from '@hopline/a2a-server';
import type { Owner } from '@hopline/events';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { sendRestError } from './rest/rest-binding.ts';
import { bareJson, encodeJson } from './rest/rest-request.ts';

/**
 * Route for GET of a path outside A2A. Callers need the same rights as for A2A, and errors are those of HTTP+JSON. `path` is as in OpenAPI;
 * `answer` rejects with an A2AError; `method` names the request in spans and log lines.
 */
export function registerHoplineRoute(
  scope: FastifyInstance,
  server: A2AServer,
  { path, method }: { path: string } & Pick<RequestOutsideA2A, 'method'>,
  answer: (caller: Owner, params: Record<string, string>) => Promise<unknown>,
): void {
  scope.get<{ Params: Record<string, string> }>(path.replace(/\{(\w+)\}/g, ':$1'), async (request, reply) => {
    try {
      const caller = await callerWithRoom(server, request);
      const json = encodeJson(await answer(caller, request.params));
      server.quotas.countSent(caller, json.length);
      return bareJson(reply, 'application/json', json);
    } catch (thrown) {
      const error = A2AError.from(thrown);
      const { taskId } = request.params;
      report(server, error, { method, headers: request.headers, ...(taskId !== undefined && { taskId }) });
      return sendRestError(request, reply, error);
    }
  });
}

/** The caller of a request outside A2A. Throws QUOTA_EXCEEDED when the caller has used up its budget of sent bytes. */
export async function callerWithRoom(server: A2AServer, { headers }: Pick<FastifyRequest, 'headers'>): Promise<Owner> {
  const caller = await server.authenticate({ headers, tenant: undefined });
  server.quotas.requireSentRoom(caller);
  return caller;
}
