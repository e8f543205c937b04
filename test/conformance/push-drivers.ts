import { TaskPushNotificationConfig } from '@a2a-js/sdk';
import type { Client } from '@a2a-js/sdk/client';
import type { NewPushConfig, PushConfig } from '@hopline/a2a';
import type { A2AClient as Client025 } from 'a2a-sdk-0.2.5/client';
import type { A2AClient as Client034 } from 'a2a-sdk-0.3.4/client';
import type { Client as Client0314 } from 'a2a-sdk-0.3.14/client';

/** Operations on push configurations, with results of the client's own parser in canonical form. */
export type DrivenPush = {
  set(taskId: string, config: NewPushConfig): Promise<PushConfig>;
  get(taskId: string, id: string): Promise<PushConfig>;
  /** Absent in 0.2.5. */
  list?(taskId: string): Promise<PushConfig[]>;
  delete?(taskId: string, id: string): Promise<void>;
};

export function pushOfSdk(client: Client): DrivenPush {
  const canonical = (config: TaskPushNotificationConfig) => withoutEmpty(TaskPushNotificationConfig.toJSON(config) as PushConfig);
  return {
    set: async (taskId, config) =>
      canonical(await client.createTaskPushNotificationConfig(TaskPushNotificationConfig.fromJSON({ ...config, taskId }))),
    get: async (taskId, id) => canonical(await client.getTaskPushNotificationConfig({ tenant: '', taskId, id })),
    list: async taskId => {
      const request = { tenant: '', taskId, pageSize: 0, pageToken: '' };
      return (await client.listTaskPushNotificationConfig(request)).configs.map(canonical);
    },
    delete: (taskId, id) => client.deleteTaskPushNotificationConfig({ tenant: '', taskId, id }),
  };
}

type Shown03 = {
  taskId: string;
  pushNotificationConfig: {
    id?: string;
    url: string;
    token?: string;
    authentication?: { schemes: string[]; credentials?: string };
  };
};

function params03(taskId: string, { authentication, ...config }: NewPushConfig): Shown03 {
  const { scheme, credentials } = authentication ?? {};
  const named = scheme === undefined ? {} : { authentication: { schemes: [scheme], ...(credentials && { credentials }) } };
  return { taskId, pushNotificationConfig: { ...config, ...named } };
}

function shown03({ taskId, pushNotificationConfig }: Shown03): PushConfig {
  const { id = '', url, token, authentication } = pushNotificationConfig;
  const [scheme] = authentication?.schemes ?? [];
  const { credentials } = authentication ?? {};
  return withoutEmpty({
    id,
    taskId,
    url,
    ...(token && { token }),
    ...(scheme !== undefined && { authentication: { scheme, ...(credentials && { credentials }) } }),
  });
}

/** Removes empty strings, because a client generated from Protocol Buffers does not distinguish them from absent ones. */
function withoutEmpty(config: PushConfig): PushConfig {
  return JSON.parse(JSON.stringify(config), (_name, value) => (value === '' ? undefined : value)) as PushConfig;
}

/** The types of these clients lack the configuration id, but they send all members. */
function oneOf(id: string, pushNotificationConfigId: string): { id: string } {
  const params = { id, pushNotificationConfigId };
  return params;
}

export function pushOf0314(client: Client0314): DrivenPush {
  return {
    set: async (taskId, config) => shown03(await client.setTaskPushNotificationConfig(params03(taskId, config))),
    get: async (id, pushNotificationConfigId) =>
      shown03(await client.getTaskPushNotificationConfig(oneOf(id, pushNotificationConfigId))),
    list: async id => (await client.listTaskPushNotificationConfig({ id })).map(shown03),
    delete: (id, pushNotificationConfigId) => client.deleteTaskPushNotificationConfig({ id, pushNotificationConfigId }),
  };
}

/** Clients of 0.2 and early 0.3 return JSON-RPC responses. */
export function pushOfOlder(client: Client025 | Client034): DrivenPush {
  const set = async (taskId: string, config: NewPushConfig) =>
    shown03(resultOf(await client.setTaskPushNotificationConfig(params03(taskId, config))));
  if (!('listTaskPushNotificationConfig' in client)) {
    return { set, get: async id => shown03(resultOf(await client.getTaskPushNotificationConfig({ id }))) };
  }
  return {
    set,
    get: async (id, pushNotificationConfigId) =>
      shown03(resultOf(await client.getTaskPushNotificationConfig(oneOf(id, pushNotificationConfigId)))),
    list: async id => resultOf<Shown03[]>(await client.listTaskPushNotificationConfig({ id })).map(shown03),
    delete: async (id, pushNotificationConfigId) => {
      resultOf(await client.deleteTaskPushNotificationConfig({ id, pushNotificationConfigId }));
    },
  };
}

const NAMES: Readonly<Record<number, string>> = { [-32001]: 'TaskNotFound' };

function resultOf<T = Shown03>(response: object): T {
  const { result, error } = response as { result?: T; error?: { code: number; message: string } };
  if (error === undefined) return result as T;
  throw Object.assign(new Error(error.message), { name: NAMES[error.code] ?? `${error.code}` });
}
