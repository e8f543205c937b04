import type { DescMessage } from '@bufbuild/protobuf';
import { DIALECTS, type Dialect, type JsonObject } from '@hopline/a2a';
import { protoPushConfig, protoPushConfigs, protoResult, protoTask, sendParams } from '@hopline/a2a/dialect-0.3-proto';
import { protoCard } from './dialect-0.3/agent-card.ts';
import { createPushParams, getParams, listPushParams, pushParams, taskParams } from './dialect-0.3/requests.ts';
import { serviceType } from './messages.ts';
import { readMessage, writeMessage } from './proto-json.ts';

/** One procedure: its JSON-RPC method, and the mapping of its messages to the params and the result of that method. */
export type Procedure = {
  /** In the form on the wire: `/lf.a2a.v1.A2AService/GetTask`. */
  path: string;
  dialect: Dialect;
  method: string;
  /** True for the procedure that returns the agent card. It returns the public card when there is no extended one. */
  isCard: boolean;
  streams: boolean;
  /** The message of a response. */
  output: DescMessage;
  /** Throws INVALID_PARAMS. */
  params(request: Uint8Array): JsonObject;
  /** Throws INVALID_AGENT_RESPONSE for a value that protobuf cannot hold. */
  response(result: unknown): Uint8Array;
};

type Mapping = {
  method: string;
  params: (request: JsonObject) => JsonObject;
  result: (result: JsonObject) => JsonObject;
};

const none = (): JsonObject => ({});

/** Procedures of `a2a.v1.A2AService` by name. */
const PROCEDURES_03: Readonly<Record<string, Mapping>> = {
  SendMessage: { method: 'message/send', params: sendParams, result: protoResult },
  SendStreamingMessage: { method: 'message/stream', params: sendParams, result: protoResult },
  GetTask: { method: 'tasks/get', params: getParams, result: protoTask },
  CancelTask: { method: 'tasks/cancel', params: taskParams, result: protoTask },
  TaskSubscription: { method: 'tasks/resubscribe', params: taskParams, result: protoResult },
  CreateTaskPushNotificationConfig: {
    method: 'tasks/pushNotificationConfig/set',
    params: createPushParams,
    result: protoPushConfig,
  },
  GetTaskPushNotificationConfig: { method: 'tasks/pushNotificationConfig/get', params: pushParams, result: protoPushConfig },
  ListTaskPushNotificationConfig: {
    method: 'tasks/pushNotificationConfig/list',
    params: listPushParams,
    result: configs => protoPushConfigs(configs as unknown as JsonObject[]),
  },
  DeleteTaskPushNotificationConfig: { method: 'tasks/pushNotificationConfig/delete', params: pushParams, result: none },
  GetAgentCard: { method: 'agent/getAuthenticatedExtendedCard', params: none, result: protoCard },
};

/** 1.0 uses one method name in every binding, and its JSON is the ProtoJSON of its messages. */
const same = (name: string): Mapping => ({ method: name, params: request => request, result: result => result });

function procedures(service: string, dialect: Dialect, mappingOf: (name: string) => Mapping | undefined): Procedure[] {
  return serviceType(service).methods.map(({ name, input, output, methodKind }) => {
    const mapping = mappingOf(name);
    if (mapping === undefined) throw new Error(`${service} has a procedure ${name} that is not mapped`);
    return {
      path: `/${service}/${name}`,
      dialect,
      method: mapping.method,
      isCard: name === 'GetAgentCard',
      streams: methodKind === 'server_streaming',
      output,
      params: request => mapping.params(readMessage(input, request)),
      response: result => writeMessage(output, mapping.result((result ?? {}) as JsonObject)),
    };
  });
}

export const SERVICE_1_0 = 'lf.a2a.v1.A2AService';
export const SERVICE_0_3 = 'a2a.v1.A2AService';

/** Both services, in the order of their definitions. */
export const PROCEDURES: readonly Procedure[] = [
  ...procedures(SERVICE_1_0, DIALECTS['1.0'], same),
  ...procedures(SERVICE_0_3, DIALECTS['0.3'], name => PROCEDURES_03[name]),
];
