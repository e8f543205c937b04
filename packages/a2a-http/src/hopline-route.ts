import { A2AError } from '@hopline/a2a';
import { type A2AServer, type RequestBesideA2A, report } from '@hopline/a2a-server';
import type { Owner } from '@hopline/events';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { sendRestError } from './rest/rest-binding.ts';
import { bareJson, encodeJson } from './rest/rest-request.ts';

/**
 * GET of a path that no version of A2A has, with the errors of HTTP+JSON, for callers that may use an operation of A2A. `path` is as in OpenAPI;
 * `answer` rejects with an A2AError; `method` names the request in spans and log lines.
 */
export function registerHoplineRoute(
  scope: FastifyInstance,
  server: A2AServer,
  { path, method }: { path: string } & Pick<RequestBesideA2A, 'method'>,
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

/** The caller of a request beside A2A. Throws QUOTA_EXCEEDED while it is beyond its budget of sent bytes. */
export async function callerWithRoom(server: A2AServer, { headers }: Pick<FastifyRequest, 'headers'>): Promise<Owner> {
  const caller = await server.authenticate({ headers, tenant: undefined });
  server.quotas.requireSentRoom(caller);
  return caller;
}
