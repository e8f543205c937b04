import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AgentInput, ClientInput } from '@hopline/events';
import type { StoredInput } from '@hopline/log';
import { taskOfArtifacts } from '@hopline/task/test-kit';
import { blocksRun, bytesAllocated } from '../../../test/support/counted-work.ts';
import { auditOf } from './audit.ts';

test('the audit of a task does not copy it for each of its artifacts', async () => {
  const { facts, aggregate } = taskOfArtifacts(5_000);
  const record = { v: 1 as const, facts, aggregate, startSeq: 1, startStoredAt: 1 };
  const records = { taskId: 't1', aggregate, facts: [{ seq: 1, record }], inputs: [] };
  const bytes = await bytesAllocated(() => auditOf(records));
  // Copying the list for each fact would allocate 100 MB.
  assert.ok(bytes < 30_000_000, `${bytes} bytes`);
});

/** The audit of a task with inputs for `count` artifacts. The log has a fact for every second one. */
function audited(count: number): () => void {
  const { facts, aggregate } = taskOfArtifacts(count);
  const kept = facts.filter((_fact, index) => index % 2 === 0);
  const message: ClientInput = {
    kind: 'message',
    message: { messageId: 'm1', role: 'ROLE_USER', parts: [{ text: 'go' }] },
    contextId: 'c1',
    role: 'supervisor',
    profile: 'caipe',
  };
  const artifact = (index: number): AgentInput => ({
    kind: 'artifact',
    lane: `${index}`,
    artifact: { name: 'a' },
    parts: [{ data: index }],
    append: false,
    last: true,
  });
  const stored = { taskId: 't1', bytes: 1, storedAt: 1 };
  const from = { id: 'supervisor', agent: 'supervisor', turn: 1, attempt: 1 };
  const inputs: StoredInput[] = [
    { ...stored, seq: 1, writer: 'client', record: { v: 1, at: 1, from: 'client', input: message } },
    {
      ...stored,
      seq: 2,
      writer: 'supervisor',
      record: { v: 1, at: 1, from, n: 1, inputs: Array.from({ length: count }, (_, i) => artifact(i)) },
    },
  ];
  const record = { v: 1 as const, facts: kept, aggregate: { ...aggregate, foldedSeq: 2 }, startSeq: 1, startStoredAt: 1 };
  const records = { taskId: 't1', aggregate, facts: [{ seq: 1, record }], inputs };
  return () => assert.ok(auditOf(records).differing.length >= count);
}

test('the audit of an artifact costs the same, however many the task has', async () => {
  const few = await blocksRun(new URL('.', import.meta.url), audited(200));
  const many = await blocksRun(new URL('.', import.meta.url), audited(2_000));
  assert.ok(few >= 200, 'blocks were counted');
  assert.ok(many <= 11 * few, `${many} blocks against ${few}`);
});
