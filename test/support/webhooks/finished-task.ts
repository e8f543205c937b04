import { randomUUID } from 'node:crypto';
import type { Log, PushConfigEntry } from '@hopline/log';

/** The key of a configuration. PROTOCOL.md section 7. */
const configKey = (taskId: string, id: string): string => `${taskId}.${Buffer.from(id).toString('base64url')}`;

export type Told = { taskId: string; key: string };

/** Asks for notifications of a task, as a door does. */
export async function tell(log: Log, config: Partial<PushConfigEntry> & { taskId: string; url: string }): Promise<Told> {
  const entry: PushConfigEntry = { id: 'cfg', dialect: '1.0', after: 0, ...config };
  const key = configKey(entry.taskId, entry.id);
  await log.pushConfigs.put(key, entry);
  return { taskId: entry.taskId, key };
}

/** A task with an id of ours, so that its webhook can be there before it: only clients of April 2025 can do that (S3-23). Resolves when it was accepted. */
export async function beginTask(url: string, taskId: string = randomUUID()): Promise<string> {
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
  // The task goes on without its client (promise 2); what happens is learned by webhook alone.
  cut.abort();
  return taskId;
}

/** Resolves with the state of a task when it is over. */
export async function endOf(log: Log, taskId: string): Promise<string> {
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

export async function overOf(log: Log, { key }: Told): Promise<string> {
  const end = performance.now() + 30_000;
  for (;;) {
    const over = (await log.pushProgress.get(key))?.value.over;
    if (over !== undefined) return over;
    if (performance.now() > end) throw new Error('the webhook is not over');
    await new Promise(resolve => setTimeout(resolve, 20));
  }
}
