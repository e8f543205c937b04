import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { StreamResponse, Task } from '@hopline/a2a';
import type { PushConfigEntry } from '@hopline/log';
import type { PendingDelivery } from './pending-delivery.ts';
import { bodyOf, headersOf } from './webhook-body.ts';

const ids = { taskId: 't', contextId: 'c' };
const completed: StreamResponse = {
  statusUpdate: { ...ids, status: { state: 'TASK_STATE_COMPLETED', timestamp: '2026-01-01T00:00:00.000Z' } },
};
const artifact = { artifactId: 'a', name: 'response', parts: [{ text: 'hi' }] };
const update: StreamResponse = { artifactUpdate: { ...ids, artifact, append: false, lastChunk: true } };
const task: Task = { id: 't', contextId: 'c', status: { state: 'TASK_STATE_COMPLETED' }, artifacts: [artifact] };

const pending = (event: StreamResponse, more: Partial<PendingDelivery> = {}): PendingDelivery => ({
  event,
  generation: 3,
  seq: 30,
  count: 1,
  at: 0,
  bytes: 0,
  terminal: false,
  ...more,
});

test('1.0: the body is a StreamResponse', () => {
  assert.deepEqual(JSON.parse(bodyOf('1.0', pending(completed))), completed);
  assert.deepEqual(JSON.parse(bodyOf('1.0', pending(update))), update);
});

test('0.3: the body is the task after the event', () => {
  const body = JSON.parse(bodyOf('0.3', pending(update, { task })));
  assert.deepEqual(
    [body.kind, body.id, body.status.state, body.artifacts[0].parts],
    ['task', 't', 'completed', [{ kind: 'text', text: 'hi' }]],
  );
});

test('April 2025: a status is a TaskStatusUpdateEvent, and an artifact has its index and flags [S3-24 S4-24]', () => {
  const status = JSON.parse(bodyOf('legacy', pending(completed)));
  assert.deepEqual(
    [status.type, status.taskId, status.id, status.status.state, status.final],
    ['taskStatusUpdate', 't', 't', 'completed', true],
  );
  const artifactUpdate = JSON.parse(bodyOf('legacy', pending(update, { artifactIndex: 2 })));
  assert.equal(artifactUpdate.type, 'taskArtifactUpdate');
  assert.deepEqual(
    [artifactUpdate.artifact.index, artifactUpdate.artifact.append, artifactUpdate.artifact.lastChunk],
    [2, false, true],
  );
});

test('token and credentials have separate headers; only April 2025 reads credentials from the token', () => {
  const config = (more: Partial<PushConfigEntry>): PushConfigEntry => ({
    taskId: 't',
    id: 'x',
    url: 'https://h.example',
    dialect: '1.0',
    after: 0,
    ...more,
  });
  const plain = headersOf(config({}));
  assert.equal(plain['content-type'], 'application/a2a+json');
  assert.ok(!('authorization' in plain) && !('x-a2a-notification-token' in plain));
  const both = headersOf(config({ token: 'tok', authentication: { scheme: 'Bearer', credentials: 'cred' } }));
  assert.deepEqual([both.authorization, both['x-a2a-notification-token']], ['Bearer cred', 'tok']);
  assert.ok(!('authorization' in headersOf(config({ token: 'tok', authentication: { scheme: 'Bearer' } }))));
  assert.equal(
    headersOf(config({ dialect: 'legacy', token: 'tok', authentication: { scheme: 'bearer' } })).authorization,
    'bearer tok',
  );
  assert.ok(!('authorization' in headersOf(config({ dialect: 'legacy', token: 'tok', authentication: { scheme: 'basic' } }))));
});
