import type { TSchema } from 'typebox';
import { cancelParams, getParams, subscribeParams } from '../schema/fields.ts';
import { sendParams } from '../schema/send-params-1.0.ts';
import { listParams } from './list-tasks.ts';
import { createPushParams, listPushParams, onePushParams } from './push.ts';

/** Schemas of the requests of A2A 1.0, by the names of their messages in a2a.proto, for documents that describe the API. */
export const REQUEST_SCHEMAS = {
  SendMessageRequest: sendParams,
  GetTaskRequest: getParams,
  ListTasksRequest: listParams,
  CancelTaskRequest: cancelParams,
  SubscribeToTaskRequest: subscribeParams,
  TaskPushNotificationConfig: createPushParams,
  GetTaskPushNotificationConfigRequest: onePushParams,
  ListTaskPushNotificationConfigsRequest: listPushParams,
  DeleteTaskPushNotificationConfigRequest: onePushParams,
} as const satisfies Record<string, TSchema>;
