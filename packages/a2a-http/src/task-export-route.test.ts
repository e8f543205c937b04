import assert from 'node:assert/strict';
import { test } from 'node:test';
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

async function rigWith(t: Parameters<typeof openRig>[0]) {
  const opened: Lines[] = [];
  const rig = await openRig(t, {
    exportTask: async () => {
      const lines = new Lines();
      opened.push(lines);
      return lines.readable;
    },
  });
  rig.relay.onClient = taskId => rig.relay.publish(taskId, { kind: 'status', state: 'TASK_STATE_WORKING' });
  const { result } = await call(rig, 'send', sendParams(userMessage('x'), '1.0', { blocking: false }));
  return { rig, taskId: result.task.id as string, opened };
}

const exported = (rig: Rig, taskId: string, signal?: AbortSignal) =>
  fetch(`${rig.url}/tasks/${taskId}/export`, { headers: { 'a2a-version': '1.0' }, ...(signal && { signal }) });

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise(resolve => setTimeout(resolve, 5));
}

test('exports beyond the limit get 503 with Retry-After, until one has ended', { timeout: 30_000 }, async t => {
  const { rig, taskId, opened } = await rigWith(t);
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

test('a client that leaves, also before the first line, frees its place, and nothing more is read', {
  timeout: 30_000,
}, async t => {
  const { rig, taskId, opened } = await rigWith(t);
  for (let left = 1; left <= 2 * EXPORTS_AT_ONCE_MAX; left += 1) {
    const leave = new AbortController();
    const response = exported(rig, taskId, leave.signal);
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
