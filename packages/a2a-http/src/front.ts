import type { JsonObject } from '@hopline/a2a';
import type { A2AServer } from '@hopline/a2a-server';
import type { FastifyInstance } from 'fastify';

/**
 * Another protocol on an HTTP server of A2A: its routes, registered on a scope that reads bodies as bytes and has the callers, pages of other
 * origins, limits and drain of the server.
 */
export type Front = ((scope: FastifyInstance, server: A2AServer) => void) & {
  /** Its operations in `/openapi.json`, by path and method. Parameters in the path and errors of the server are added. */
  readonly openApi?: Readonly<Record<string, Readonly<Record<string, JsonObject>>>>;
};

export type { Tail } from '@hopline/a2a-server';
export type { StreamReader } from './answer-sink.ts';
export { AGENT_HEADER } from './cors.ts';
export type { FrameEncoder } from './encoded-sink.ts';
export { setErrorHeaders } from './error-headers.ts';
export { faultOf, refusedStatus } from './framework-fault.ts';
export {
  answerOf,
  answerQuestion,
  BEGINNING,
  type FrontCall,
  type FrontRequest,
  findQuestion,
  type QuestionRef,
  questionAnswered,
  readStream,
  sendParams,
  streamOf,
  tenantOf,
} from './front-operation.ts';
export type { SinkItem } from './item-sink.ts';
export { uncountedBytes } from './request-guard.ts';
export { headerOf, jsonOf, queryOf } from './request-values.ts';
export { sendRestError } from './rest/rest-binding.ts';
export { bareJson, encodeJson } from './rest/rest-request.ts';
