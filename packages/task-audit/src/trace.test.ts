import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AgentInput, ArtifactInput } from '@hopline/events';
import { createMemoryLog } from '@hopline/log/memory';
import { ROOT_AGENT } from '@hopline/task';
import { agent, StoredScenario } from '@hopline/task/test-kit';
import { percentilesOf, traceTask } from './trace.ts';

const NOTICE = '🔧 Supervisor: Calling Agent Argocd...\n';

test('a trace counts the output of each producer in code points, and holds the times of each chunk [S2-30 S2-38]', async () => {
  const log = createMemoryLog({ shards: 1 });
  const message = { messageId: 'm', role: 'ROLE_USER' as const, parts: [{ text: 'hi' }] };
  const question = { kind: 'message', message, contextId: 'c', role: 'agent.argocd', profile: 'transparent' } as const;
  const trace = { traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01` };
  await log.inputs.append('t', { v: 1, at: 1_000, from: 'client', input: question }, { id: '1', trace });
  const from = agent(ROOT_AGENT);
  const notice: ArtifactInput = {
    kind: 'artifact',
    lane: 'n',
    artifact: { name: 'notice' },
    parts: [{ text: NOTICE }],
    append: false,
    last: true,
  };
  const open = { kind: 'open', lane: 'a', artifact: { name: 'answer' } } as const;
  const inputs: AgentInput[] = [notice, open, { kind: 'text', lane: 'a', tokens: ['👍', ' ', 'é\n'], dt: [0, 5, 305] }];
  await log.inputs.append('t', { v: 1, at: 1_100, from, n: 1, inputs }, { id: '2', trace });
  const chunk = { firstSeq: 2, lastSeq: 2, count: 3, n: 5, reason: 'silence', heldMs: 12, firstAt: 1_100, lastAt: 1_405 };
  await new StoredScenario(log.facts, 't', () => 1_420)
    .when({ kind: 'client', taskId: 't', input: question })
    .input(from, notice)
    .input(from, open)
    .when({ kind: 'run', from, lane: 'a', text: '👍 é\n', last: false, n: 5, chunk })
    .store();

  const result = (await traceTask(log, 't'))!;
  assert.deepEqual([result.traces, result.state, result.contextId], [['a'.repeat(32)], 'submitted', 'c']);
  const [producer] = result.producers;
  assert.deepEqual(
    [producer?.tokens, producer?.characters, producer?.otherEvents, producer?.firstMs, producer?.lastMs, producer?.gapMsMax],
    [3, 4, 2, 100, 405, 300],
  );
  const [, noticeEvent, answer] = result.events;
  // The notice has 39 UTF-16 units; its emoji is two of them.
  assert.deepEqual([noticeEvent?.name, noticeEvent?.characters, NOTICE.length], ['notice', 38, 39]);
  assert.deepEqual(answer?.chunk, { tokens: 3, reason: 'silence', heldMs: 12, ageMs: 320 });
  assert.equal(JSON.stringify(result).includes('👍'), false, 'a trace holds no text');
  assert.equal(await traceTask(log, 'other'), undefined);
});

test('percentiles are measured values', () => {
  assert.deepEqual(percentilesOf([3, 1, 2]), { count: 3, p50: 2, p99: 3, max: 3 });
  assert.deepEqual(percentilesOf([]), { count: 0, p50: 0, p99: 0, max: 0 });
});
