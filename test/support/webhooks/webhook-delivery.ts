import { randomUUID } from 'node:crypto';
import type { Log, PushConfigEntry } from '@hopline/log';
import { until } from '../../kit/until.ts';

/** Key of a configuration (PROTOCOL.md, section 7). */
const configKey = (taskId: string, id: string): string => `${taskId}.${Buffer.from(id).toString('base64url')}`;

export type StoredConfig = { taskId: string; key: string };

/** Stores a webhook configuration of a task, as the ingress does. */
export async function putWebhookConfig(
  log: Log,
  config: Partial<PushConfigEntry> & { taskId: string; url: string },
): Promise<StoredConfig> {
  const entry: PushConfigEntry = { id: 'cfg', dialect: '1.0', after: 0, ...config };
  const key = configKey(entry.taskId, entry.id);
  await log.pushConfigs.put(key, entry);
  return { taskId: entry.taskId, key };
}

/**
 * Starts a task with an id of the test's choice, so that its webhook can be configured before the task exists. Only the April 2025 dialect
 * allows that (S3-23). Resolves when the task was accepted.
 */
export async function startTask(url: string, taskId: string = randomUUID()): Promise<string> {
  const message = { role: 'user', parts: [{ type: 'text', text: 'count' }] };
  const cut = new AbortController();
  const params = { id: taskId, sessionId: randomUUID(), message };
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tasks/sendSubscribe', params }),
    signal: cut.signal,
  });
  if (!response.headers.get('content-type')?.startsWith('text/event-stream'))
    throw new Error(`no stream: ${await response.text()}`);
  const reader = response.body!.getReader();
  await reader.read();
  // The task continues without its client; only the webhook reports its events.
  cut.abort();
  return taskId;
}

/** Waits for the terminal state of a task. */
export async function finalStateOf(log: Log, taskId: string): Promise<string> {
  const stop = new AbortController();
  for await (const { record } of await log.facts.follow(taskId, 0, stop.signal)) {
    const { state } = record.aggregate;
    if (/COMPLETED|FAILED|CANCELED|REJECTED/.test(state)) {
      stop.abort();
      return state;
    }
  }
  throw new Error('the log ended');
}

export async function deliveryOutcomeOf(log: Log, { key }: StoredConfig): Promise<string> {
  return until(async () => (await log.pushProgress.get(key))?.value.over, 'an outcome of the webhook');
}
