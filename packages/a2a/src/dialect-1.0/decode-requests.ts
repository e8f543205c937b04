import { type JsonObject, present, text } from '../json-value.ts';
import type { CreatePushRequest, GetTaskRequest, ListPushRequest, NewPushConfig, SendRequest } from '../requests.ts';
import { decodeSend, number } from '../schema/decode-requests.ts';
import { generation, getParams, historyLength } from '../schema/fields.ts';
import { createPush10, listPush10, onePush10, pushConfigOf, requireInlineMember } from '../schema/push-params.ts';
import { sendParams } from '../schema/send-params-1.0.ts';
import { Type } from '../schema/type.ts';
import { paramsCheck } from '../schema/validate.ts';
import { decodeMessage, withJsonNames } from './decode.ts';

const sendNotation = {
  check: paramsCheck(sendParams),
  message: decodeMessage,
  blocking: (configuration: { returnImmediately?: unknown }) => configuration.returnImmediately !== true,
  push: (configuration: JsonObject) => {
    requireInlineMember(configuration, '1.0', 'taskPushNotificationConfig');
    return decodePush(configuration.taskPushNotificationConfig);
  },
};

export function decodeSend10(params: unknown): SendRequest {
  const named = withJsonNames(params);
  const request = decodeSend(named, sendNotation);
  const { ifGenerationMatch, timelineLength } = ((named as JsonObject).configuration ?? {}) as JsonObject;
  return {
    ...request,
    ...present({ ifGenerationMatch: generationOf(ifGenerationMatch), timelineLength: number(timelineLength) }),
  };
}

/** Params of GetTask, with the members of the draft 1.1. */
export const getParams10 = Type.Object({
  ...getParams.properties,
  currentGeneration: generation,
  timelineLength: historyLength,
});
const checkGet = paramsCheck(getParams10);

export function decodeGet10(params: unknown): GetTaskRequest {
  const named = withJsonNames(params);
  checkGet(named);
  const { id, historyLength: messages, timelineLength, currentGeneration } = named as JsonObject;
  return {
    taskId: id as string,
    ...present({
      historyLength: number(messages),
      timelineLength: number(timelineLength),
      currentGeneration: generationOf(currentGeneration),
    }),
  };
}

/** A validated int64: a number, a decimal string, or null for none. */
function generationOf(value: unknown): number | undefined {
  return value === undefined || value === null ? undefined : Number(value);
}

/** Decodes a validated configuration; undefined for none. Throws INVALID_PARAMS for credentials without a scheme. */
function decodePush(value: unknown): NewPushConfig | undefined {
  return pushConfigOf(value, ({ scheme }) => scheme);
}

const checkCreatePush = paramsCheck(createPush10);
const checkOnePush = paramsCheck(onePush10);
const checkListPush = paramsCheck(listPush10);

export function decodeCreatePush(params: unknown): CreatePushRequest {
  const named = withJsonNames(params);
  checkCreatePush(named);
  return { taskId: (named as JsonObject).taskId as string, config: decodePush(named)! };
}

/** The params of a get and of a delete. */
export function decodeOnePush(params: unknown): { taskId: string; id: string } {
  const named = withJsonNames(params);
  checkOnePush(named);
  const { taskId, id } = named as { taskId: string; id: string };
  return { taskId, id };
}

export function decodeListPush(params: unknown): ListPushRequest {
  const named = withJsonNames(params);
  checkListPush(named);
  const { taskId, pageSize, pageToken } = named as { taskId: string; pageSize?: number | null; pageToken?: unknown };
  return { taskId, ...present({ pageSize: pageSize || undefined, pageToken: text(pageToken) }) };
}
