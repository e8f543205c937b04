import { type JsonObject, list, present, text } from '../json-value.ts';
import type { CreatePushRequest, DeletePushRequest, GetPushRequest, ListPushRequest, NewPushConfig } from '../requests.ts';
import { createPush03, deletePush03, getPush03, listPush03, pushConfigOf, requireInlineMember } from '../schema/push-params.ts';
import { sendParams } from '../schema/send-params-0.3.ts';
import { paramsCheck } from '../schema/validate.ts';
import { decodeMessage } from './decode.ts';

export const sendNotation = {
  check: paramsCheck(sendParams),
  message: decodeMessage,
  // The 0.3 specification leaves the default open; both official SDKs block unless configured otherwise.
  blocking: (configuration: { blocking?: unknown }) => configuration.blocking !== false,
  push: (configuration: JsonObject) => {
    requireInlineMember(configuration, '0.3', 'pushNotificationConfig');
    return decodePush(configuration.pushNotificationConfig);
  },
};

/**
 * Decodes a validated configuration; undefined for none. If it has several schemes, the first one with a name is used, as in both official
 * SDKs, because a request has only one `Authorization`. Throws INVALID_PARAMS for credentials without a scheme.
 */
export function decodePush(value: unknown): NewPushConfig | undefined {
  return pushConfigOf(value, ({ schemes }) => list(schemes).find(name => text(name) !== undefined));
}

const checkCreatePush = paramsCheck(createPush03);
const checkGetPush = paramsCheck(getPush03);
const checkListPush = paramsCheck(listPush03);
const checkDeletePush = paramsCheck(deletePush03);

export function decodeCreatePush(params: unknown): CreatePushRequest {
  checkCreatePush(params);
  const { taskId, pushNotificationConfig } = params as { taskId: string; pushNotificationConfig: JsonObject };
  return { taskId, config: decodePush(pushNotificationConfig)! };
}

export function decodeGetPush(params: unknown): GetPushRequest {
  checkGetPush(params);
  const { id: taskId, pushNotificationConfigId } = params as { id: string; pushNotificationConfigId?: unknown };
  return { taskId, ...present({ id: text(pushNotificationConfigId) }) };
}

export function decodeListPush(params: unknown): ListPushRequest {
  checkListPush(params);
  return { taskId: (params as { id: string }).id };
}

export function decodeDeletePush(params: unknown): DeletePushRequest {
  checkDeletePush(params);
  const { id: taskId, pushNotificationConfigId } = params as { id: string; pushNotificationConfigId: string };
  return { taskId, id: pushNotificationConfigId };
}
