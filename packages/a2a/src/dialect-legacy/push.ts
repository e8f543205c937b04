import Type from 'typebox';
import type { PushForm } from '../dialect.ts';
import { decodePush, push03, shownPush } from '../dialect-0.3/push.ts';
import type { JsonObject } from '../json-value.ts';
import { id, metadata } from '../schema/fields.ts';
import { authentication03, pushConfig } from '../schema/push-params.ts';
import { paramsCheck } from '../schema/validate.ts';
import { clientTaskId } from './task-id.ts';

/** Push configurations of April 2025: one per task, without an id of its own; `id` is the task's. */

const checkSet = paramsCheck(
  Type.Object({ id, pushNotificationConfig: Type.Object({ ...pushConfig, authentication: authentication03 }) }),
);
const checkGet = paramsCheck(Type.Object({ id, metadata }));

/** The configuration of a task. An id in it is ignored. */
export function decodeOnlyPush(value: unknown) {
  const { id: _id, ...config } = decodePush(value) ?? {};
  return 'url' in config ? config : undefined;
}

export const pushLegacy: PushForm = {
  ...push03,
  decodeCreate: params => {
    checkSet(params);
    const { id: taskId, pushNotificationConfig } = params as { id: string; pushNotificationConfig: JsonObject };
    return { taskId, config: decodeOnlyPush(pushNotificationConfig)! };
  },
  decodeGet: params => {
    checkGet(params);
    return { taskId: (params as { id: string }).id };
  },
  encode: config => {
    const { id: _id, ...shown } = shownPush(config);
    return { id: clientTaskId(config.taskId), pushNotificationConfig: shown };
  },
};
