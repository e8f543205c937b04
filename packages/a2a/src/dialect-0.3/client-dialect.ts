import type { ClientDialect } from '../dialect.ts';
import { decodeEvent } from './decode.ts';
import { encodeSend } from './encode.ts';

/** The part of A2A 0.3 that a client needs, without the schemas of a server. */
export const clientDialect03: ClientDialect = {
  name: '0.3',
  methods: {
    send: 'message/send',
    stream: 'message/stream',
    get: 'tasks/get',
    cancel: 'tasks/cancel',
    subscribe: 'tasks/resubscribe',
    createPush: 'tasks/pushNotificationConfig/set',
    getPush: 'tasks/pushNotificationConfig/get',
    listPush: 'tasks/pushNotificationConfig/list',
    deletePush: 'tasks/pushNotificationConfig/delete',
    extendedCard: 'agent/getAuthenticatedExtendedCard',
  },
  encodeSend,
  decodeEvent,
};
