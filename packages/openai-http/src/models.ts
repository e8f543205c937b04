import type { ListedAgent } from '@hopline/a2a-http';
import { ANY_AGENT, OpenAIError } from '@hopline/openai-api';
import type { FastifyReply } from 'fastify';
import { type OpenAIRequest, sendJson, takeRequest } from './openai-request.ts';

type Model = { id: string; object: 'model'; created: number; owned_by: string; description?: string };

/** GET `/v1/models`: the agents, and `hopline`, for which the supervisor chooses the agent. */
export async function listModels(request: OpenAIRequest): Promise<FastifyReply> {
  takeRequest(request);
  return sendJson(request, { object: 'list', data: modelsOf(request.agents()) });
}

/** GET `/v1/models/{model}`. */
export async function retrieveModel(request: OpenAIRequest): Promise<FastifyReply> {
  takeRequest(request);
  const { '*': id = '' } = request.http.params as Record<string, string>;
  const model = modelsOf(request.agents()).find(one => one.id === id);
  if (model !== undefined) return sendJson(request, model);
  throw new OpenAIError(`The model '${id}' does not exist`, { status: 404, param: 'model', code: 'model_not_found' });
}

function modelsOf(agents: readonly ListedAgent[]): Model[] {
  const any: Model = { id: ANY_AGENT, object: 'model', created: 0, owned_by: 'hopline', description: 'Chooses the agent' };
  const named = agents.map(
    ({ name, description }): Model => ({ id: name, object: 'model', created: 0, owned_by: 'hopline', description }),
  );
  return named.some(({ id }) => id === ANY_AGENT) ? named : [any, ...named];
}
