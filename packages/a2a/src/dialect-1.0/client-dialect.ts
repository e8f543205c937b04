import type { ClientDialect } from '../dialect.ts';
import { present } from '../json-value.ts';
import { decodeEvent } from './decode.ts';

/** The part of A2A 1.0 that a client needs, without the schemas of a server. */
export const clientDialect10: ClientDialect = {
  name: '1.0',
  methods: {
    send: 'SendMessage',
    stream: 'SendStreamingMessage',
    get: 'GetTask',
    list: 'ListTasks',
    cancel: 'CancelTask',
    subscribe: 'SubscribeToTask',
    createPush: 'CreateTaskPushNotificationConfig',
    getPush: 'GetTaskPushNotificationConfig',
    listPush: 'ListTaskPushNotificationConfigs',
    deletePush: 'DeleteTaskPushNotificationConfig',
    extendedCard: 'GetExtendedAgentCard',
  },
  encodeSend: request => ({
    message: request.message,
    configuration: present({
      returnImmediately: request.blocking ? undefined : true,
      historyLength: request.historyLength,
      acceptedOutputModes: request.acceptedOutputModes,
      taskPushNotificationConfig: request.push,
      ifGenerationMatch: request.ifGenerationMatch,
      timelineLength: request.timelineLength,
    }),
    ...present({ metadata: request.metadata }),
  }),
  decodeEvent,
};
