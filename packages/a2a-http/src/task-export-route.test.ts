import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { A2AServerOptions } from '@hopline/a2a-server';
import { call, openRig, type Rig, sendParams, userMessage } from './http-server.test-kit.ts';
import { EXPORTS_AT_ONCE_MAX } from './task-export-route.ts';

/** The lines of an export, which come when the test sends them. */
class Lines {
  readonly #lines = new TransformStream<string>();
  readonly #writer = this.#lines.writable.getWriter();
  /** Resolves when the server reads no further. */
  readonly closed = this.#writer.closed.catch(() => {});
  readonly readable = this.#lines.readable;

  write(line: string): void {
    this.#writer.write(line).catch(() => {});
  }

  async end(): Promise<void> {
    await this.#writer.close();
  }
}

type Headers = Record<string, string>;

async function rigWith(t: Parameters<typeof openRig>[0], options: Partial<A2AServerOptions> = {}) {
  const opened: Lines[] = [];
  const rig = await openRig(t, {
    ...options,
    exportTask: async () => {
      const lines = new Lines();
      opened.push(lines);
      return lines.readable;
    },
  });
  rig.relay.onClient = taskId => rig.relay.publish(taskId, { kind: 'status', state: 'TASK_STATE_WORKING' });
  const taskOf = async (headers: Headers = {}): Promise<string> => {
    const { result } = await call(rig, 'send', sendParams(userMessage('x'), '1.0', { blocking: false }), { headers });
    return result.task.id;
  };
  return { rig, taskOf, opened };
}

const exported = (rig: Rig, taskId: string, { signal, headers }: { signal?: AbortSignal; headers?: Headers } = {}) =>
  fetch(`${rig.url}/tasks/${taskId}/export`, { headers: { 'a2a-version': '1.0', ...headers }, ...(signal && { signal }) });

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise(resolve => setTimeout(resolve, 5));
}

test('exports beyond the limit get 503 with Retry-After, until one has ended', { timeout: 30_000 }, async t => {
  const { rig, taskOf, opened } = await rigWith(t);
  const taskId = await taskOf();
  const running = Array.from({ length: EXPORTS_AT_ONCE_MAX }, () => exported(rig, taskId));
  await until(() => opened.length === EXPORTS_AT_ONCE_MAX);
  const refused = await exported(rig, taskId);
  assert.deepEqual([refused.status, refused.headers.has('retry-after')], [503, true]);
  for (const lines of opened) {
    lines.write('line\n');
    await lines.end();
  }
  for (const response of await Promise.all(running)) assert.equal(await response.text(), 'line\n');
  const next = exported(rig, taskId);
  await until(() => opened.length === EXPORTS_AT_ONCE_MAX + 1);
  await opened.at(-1)!.end();
  assert.equal((await next).status, 200);
});

test('a tenant has one export at a time and gets 429 with Retry-After for the next; another tenant has a place', {
  timeout: 30_000,
}, async t => {
  const authenticate: A2AServerOptions['authenticate'] = async ({ headers }) => ({
    tenant: String(headers['x-tenant']),
    subject: String(headers['x-subject']),
  });
  const { rig, taskOf, opened } = await rigWith(t, { authenticate });
  const [anna, bert, carl] = [
    { 'x-tenant': 'a', 'x-subject': 'anna' },
    { 'x-tenant': 'a', 'x-subject': 'bert' },
    { 'x-tenant': 'b', 'x-subject': 'carl' },
  ];
  const [annas, berts, carls] = [await taskOf(anna), await taskOf(bert), await taskOf(carl)];
  const slow = exported(rig, annas, { headers: anna });
  await until(() => opened.length === 1);
  const refused = await exported(rig, berts, { headers: bert });
  assert.deepEqual([refused.status, refused.headers.has('retry-after'), opened.length], [429, true, 1]);
  const other = exported(rig, carls, { headers: carl });
  await until(() => opened.length === 2);
  for (const lines of opened) await lines.end();
  for (const response of await Promise.all([slow, other])) assert.equal(await response.text(), '');
  const next = exported(rig, berts, { headers: bert });
  await until(() => opened.length === 3);
  await opened.at(-1)!.end();
  assert.equal((await next).status, 200);
});

test('a client that leaves, also before the first line, frees its place, and nothing more is read', {
  timeout: 30_000,
}, async t => {
  const { rig, taskOf, opened } = await rigWith(t);
  const taskId = await taskOf();
  for (let left = 1; left <= 2 * EXPORTS_AT_ONCE_MAX; left += 1) {
    const leave = new AbortController();
    const response = exported(rig, taskId, { signal: leave.signal });
    await until(() => opened.length === left);
    const lines = opened.at(-1)!;
    if (left % 2 === 0) {
      lines.write('line\n');
      await response;
    }
    leave.abort();
    await response.catch(() => {});
    // A connection that was opened later is served after the server has seen the end of this one.
    await fetch(`${rig.url}/.well-known/agent-card.json`);
    lines.write('line\n');
    await lines.closed;
  }
});
