import { hash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { StreamResponse, Task } from '@hopline/a2a';
import { collect, rpc } from '../support/cluster/a2a-stream.ts';

/** The callers and the agent of a recorded cluster (`record-cluster.ts`). Both versions use them, so this file imports what both have. */

export const CALLERS = {
  anna: { subject: 'anna', tenant: 'acme' },
  bert: { subject: 'bert', tenant: 'acme' },
  otherAnna: { subject: 'anna', tenant: 'umbrella' },
} as const;
export type CallerName = keyof typeof CALLERS;

const keyOf = (name: CallerName): string => `recorded-api-key-of-${name}`;
const headersOf = (name: CallerName): Record<string, string> => ({ 'x-api-key': keyOf(name) });

export function writeKeys(file: string): void {
  const keys = Object.entries(CALLERS).map(([name, caller]) => ({
    key_sha256: hash('sha256', keyOf(name as CallerName)),
    ...caller,
  }));
  writeFileSync(file, JSON.stringify(keys));
}

export const AGENT = {
  name: 'counter',
  adapter: 'module',
  path: fileURLToPath(new URL('recorded-agent.ts', import.meta.url)),
} as const;

/** The events of a task that a caller saw, with their cursors, from the beginning. */
export type SeenTask = {
  id: string;
  caller: CallerName;
  state: string;
  frames: { id: string; event: StreamResponse }[];
  task: Task;
};
export type SeenCluster = {
  commit: string;
  tasks: SeenTask[];
  lists: Record<CallerName, Task[]>;
  /** Webhooks of the task that waits for its client. Absent in recordings before 2026-11-30. */
  webhooks?: object[];
};

/** Settings of a cluster whose webhooks are on this machine. */
export const PUSH_ENV = { HOPLINE_PUSH: 'true', HOPLINE_WEBHOOK_ALLOW: '127.0.0.1', HOPLINE_WEBHOOK_HTTP: 'true' };

export async function call<R>(url: string, caller: CallerName, method: string, params: Record<string, unknown>): Promise<R> {
  const response = await rpc(url, { dialect: '1.0', method, params, headers: headersOf(caller) });
  const { result, error } = (await response.json()) as { result: R; error?: { code: number; message: string } };
  if (error !== undefined) throw new Error(`${method}: ${error.message}`);
  return result;
}

/** Asks a question, and resolves with the id of its task after the turn. */
export async function ask(url: string, caller: CallerName, text: string, more: Record<string, unknown> = {}): Promise<string> {
  const message = { messageId: crypto.randomUUID(), role: 'ROLE_USER', parts: [{ text }], ...more };
  const params = { message };
  const [first] = await collect(url, { dialect: '1.0', method: 'SendStreamingMessage', params, headers: headersOf(caller) });
  return first !== undefined && 'task' in first.event ? first.event.task.id : String(more.taskId);
}

/** The events of an ended task after a cursor. */
export async function replay(url: string, caller: CallerName, id: string, cursor: string): Promise<SeenTask['frames']> {
  const request = {
    dialect: '1.0',
    method: 'SubscribeToTask',
    params: { id },
    headers: headersOf(caller),
    lastEventId: cursor,
  } as const;
  return (await collect(url, request)).map(frame => ({ id: frame.id, event: frame.event }));
}

/** All tasks of a caller with their whole histories and artifacts, newest first. */
export async function listAll(url: string, caller: CallerName, params: Record<string, unknown> = {}): Promise<Task[]> {
  const tasks: Task[] = [];
  let pageToken = '';
  do {
    const page = await call<{ tasks: Task[]; nextPageToken: string }>(url, caller, 'ListTasks', { pageToken, ...params });
    tasks.push(...page.tasks);
    pageToken = page.nextPageToken;
  } while (pageToken !== '');
  return tasks;
}

export async function listWebhooks(url: string, caller: CallerName, taskId: string): Promise<object[]> {
  return (await call<{ configs: object[] }>(url, caller, 'ListTaskPushNotificationConfigs', { taskId })).configs;
}
