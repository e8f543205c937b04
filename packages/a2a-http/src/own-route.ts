import { A2AError } from '@hopline/a2a';
import { type A2AServer, type RequestBesideA2A, report } from '@hopline/a2a-server';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { sendRestError } from './rest/rest-binding.ts';
import { bareJson } from './rest/rest-request.ts';

/**
 * GET of a path that no version of A2A has, with the errors of HTTP+JSON. `path` is as in OpenAPI; `answer` rejects with an A2AError; `method`
 * names the request in spans and log lines.
 */
export function registerOwnRoute(
  scope: FastifyInstance,
  server: A2AServer,
  { path, method }: { path: string } & Pick<RequestBesideA2A, 'method'>,
  answer: (request: FastifyRequest<{ Params: Record<string, string> }>) => Promise<unknown>,
): void {
  scope.get<{ Params: Record<string, string> }>(path.replace(/\{(\w+)\}/g, ':$1'), async (request, reply) => {
    try {
      return bareJson(reply, 'application/json', await answer(request));
    } catch (thrown) {
      const error = A2AError.from(thrown);
      const { taskId } = request.params;
      report(server, error, { method, headers: request.headers, ...(taskId !== undefined && { taskId }) });
      return sendRestError(request, reply, error);
    }
  });
}
