import { randomUUID } from 'node:crypto';
import type { StreamResponse, Task } from '@hopline/a2a';
import { frames, rpc } from '../../support/cluster/a2a-stream.ts';

export type Page = { tasks: Task[]; nextPageToken: string; totalSize?: number };

/** A caller of the cluster with its API key. */
export class Caller {
  readonly #headers: Record<string, string>;

  constructor(key: string) {
    this.#headers = { 'x-api-key': key };
  }

  async call<R>(url: string, method: string, params: Record<string, unknown>): Promise<R> {
    const response = await rpc(url, { dialect: '1.0', method, params, headers: this.#headers });
    const { result, error } = (await response.json()) as { result: R; error?: { message: string } };
    if (error !== undefined) throw new Error(`${method}: ${error.message}`);
    return result;
  }

  list(url: string, params: Record<string, unknown> = {}): Promise<Page> {
    return this.call<Page>(url, 'ListTasks', params);
  }

  /** Asks for one token, and resolves with the times of the first text and of the end. */
  async ask(url: string, { contextId, webhook }: { contextId?: string; webhook?: string } = {}): Promise<Asked> {
    const askedAtMs = performance.now();
    const message = { role: 'ROLE_USER', messageId: randomUUID(), parts: [{ text: '1 0' }], ...(contextId && { contextId }) };
    const configuration = webhook && { taskPushNotificationConfig: { url: webhook } };
    const params = { message, ...(configuration && { configuration }) };
    const asked: Asked = { taskId: '', contextId: '', firstTextMs: 0, endMs: 0, endedAtMs: 0 };
    for await (const { event } of frames(url, this.#request('SendStreamingMessage', params))) {
      const atMs = performance.now();
      if ('task' in event) [asked.taskId, asked.contextId] = [event.task.id, event.task.contextId];
      if (hasText(event)) asked.firstTextMs ||= atMs - askedAtMs;
      [asked.endMs, asked.endedAtMs] = [atMs - askedAtMs, atMs];
    }
    if (asked.firstTextMs === 0) throw new Error('the answer has no text');
    return asked;
  }

  /** Milliseconds until the rest of an ended task after this cursor has arrived, and its events. */
  async resume(url: string, taskId: string, cursor: string): Promise<{ ms: number; events: number }> {
    const fromMs = performance.now();
    let events = 0;
    const request = { ...this.#request('SubscribeToTask', { id: taskId }), lastEventId: cursor };
    for await (const _frame of frames(url, request)) events += 1;
    return { ms: performance.now() - fromMs, events };
  }

  #request(method: string, params: Record<string, unknown>) {
    return { dialect: '1.0' as const, method, params, headers: this.#headers };
  }
}

export type Asked = { taskId: string; contextId: string; firstTextMs: number; endMs: number; endedAtMs: number };

/** Text of the agent, which comes after the notices of the supervisor. */
function hasText(event: StreamResponse): boolean {
  return 'artifactUpdate' in event && event.artifactUpdate.artifact.parts.some(({ text }) => text !== undefined && text !== '');
}
