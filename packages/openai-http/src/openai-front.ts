import { A2AError } from '@hopline/a2a';
import type { ListedAgent } from '@hopline/a2a-http';
import { type Front, faultOf, refusedStatus } from '@hopline/a2a-http/front';
import { type A2AServer, report } from '@hopline/a2a-server';
import { bodyOfError } from '@hopline/openai-api';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { createChatCompletion } from './chat-completions.ts';
import { listModels, retrieveModel } from './models.ts';
import { BINDING, callerOf, failureOf, type OpenAIRequest, sendFailure } from './openai-request.ts';
import { cancelResponse, createResponse, refuseDelete, retrieveResponse } from './responses.ts';

type OpenAIFrontOptions = {
  /** The agents that a request may name as its model. */
  agents: () => readonly ListedAgent[];
};

type Handler = (request: OpenAIRequest) => Promise<FastifyReply | undefined>;

const PREFIXES = ['', '/:tenant'];

/** OpenAI's API: chat completions, responses and models, for the same callers as A2A. Models are agents, and responses are turns of tasks. */
export function openAIFront({ agents }: OpenAIFrontOptions): Front {
  return (scope, server) => {
    scope.register(async own => {
      own.setErrorHandler<{ statusCode?: number }>((thrown, request, reply) => {
        const error = faultOf(server, thrown);
        report(server, error, { binding: BINDING, headers: request.headers });
        return sendFailure(
          reply,
          error,
          refusedStatus(thrown) ?? (error.code === 'CONTENT_TYPE_NOT_SUPPORTED' ? 415 : undefined),
        );
      });
      for (const prefix of PREFIXES) registerRoutes(own, server, `${prefix}/v1`, agents);
    });
  };
}

function registerRoutes(scope: FastifyInstance, server: A2AServer, base: string, agents: OpenAIFrontOptions['agents']): void {
  const answer = (handler: Handler) => async (http: FastifyRequest, reply: FastifyReply) => {
    server.metrics?.received.add(Number(http.headers['content-length'] ?? 0));
    try {
      const caller = await callerOf(server, http);
      return await handler({ server, http, reply, agents, caller, binding: BINDING, failure: bodyOfError });
    } catch (thrown) {
      const failure = failureOf(thrown);
      if (failure instanceof A2AError) report(server, failure, { binding: BINDING, headers: http.headers });
      return reply.sent ? undefined : sendFailure(reply, failure);
    }
  };
  const get = { exposeHeadRoute: false };
  scope.post(`${base}/chat/completions`, answer(createChatCompletion));
  scope.get(`${base}/models`, get, answer(listModels));
  scope.get(`${base}/models/*`, get, answer(retrieveModel));
  scope.post(`${base}/responses`, answer(createResponse));
  scope.get(`${base}/responses/:id`, get, answer(retrieveResponse));
  scope.post(`${base}/responses/:id/cancel`, answer(cancelResponse));
  scope.delete(`${base}/responses/:id`, answer(refuseDelete));
}
