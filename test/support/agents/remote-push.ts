import type { Json } from './remote-shapes.ts';
import type { RemoteTask } from './remote-task.ts';

/**
 * Webhook deliveries of a remote agent, written from the specifications without code under test: for each event, only for the last event,
 * or never; or the agent rejects the configuration.
 */
export type Pushes = 'each' | 'last' | 'never' | 'refused';

const configurationOf = (params: Json): Json => (params.configuration ?? {}) as Json;

/** The webhook that a 1.0 or 0.3 message configures. */
export function webhookOf(params: Json): string | undefined {
  const { taskPushNotificationConfig, pushNotificationConfig } = configurationOf(params);
  const config = (taskPushNotificationConfig ?? pushNotificationConfig) as { url: string } | undefined;
  return config?.url;
}

export function answersAtOnce(params: Json): boolean {
  const { returnImmediately, blocking } = configurationOf(params);
  return returnImmediately === true || blocking === false;
}

type Pushing = { from: number; webhook: string; pushes: Pushes; statuses: number[] };

/** Delivers in sequence and ignores failures. */
export async function pushFrames(task: RemoteTask, { from, webhook, pushes, statuses }: Pushing): Promise<void> {
  const call = async (body: unknown) => {
    const request = { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) };
    const response = await fetch(webhook, request).catch(() => undefined);
    if (response !== undefined) statuses.push(response.status);
  };
  if (pushes === 'never') return;
  let last: unknown;
  for await (const frame of task.follow(from)) {
    if (frame.kind !== 'result') continue;
    last = frame.result;
    if (pushes === 'each') await call(last);
  }
  if (pushes === 'last') await call(last);
}
