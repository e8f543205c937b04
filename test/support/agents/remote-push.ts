import type { Json } from './remote-shapes.ts';
import type { ForeignTask } from './remote-task.ts';

/** A foreign agent's webhooks, by hand from the documents: it calls for each event of the task, for the last one alone, not at all, or takes none. */
export type Pushes = 'each' | 'last' | 'never' | 'refused';

const configurationOf = (params: Json): Json => (params.configuration ?? {}) as Json;

/** Where a message asks for calls: in the form of 1.0 or of 0.3. */
export function webhookOf(params: Json): string | undefined {
  const { taskPushNotificationConfig, pushNotificationConfig } = configurationOf(params);
  const config = (taskPushNotificationConfig ?? pushNotificationConfig) as { url: string } | undefined;
  return config?.url;
}

export function answersAtOnce(params: Json): boolean {
  const { returnImmediately, blocking } = configurationOf(params);
  return returnImmediately === true || blocking === false;
}

type Pushing = { from: number; webhook: string; pushes: Pushes; pushed: number[] };

/** Calls one after the other, and does not mind what comes of it. */
export async function pushFrames(task: ForeignTask, { from, webhook, pushes, pushed }: Pushing): Promise<void> {
  const call = async (body: unknown) => {
    const request = { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) };
    const response = await fetch(webhook, request).catch(() => undefined);
    if (response !== undefined) pushed.push(response.status);
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
