import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AgentInput, ArtifactInput, Fact, Producer } from '@hopline/events';
import { createMemoryLog } from '@hopline/log/memory';
import { type Command, decide, evolve } from '@hopline/task';
import { percentilesOf } from './percentiles.ts';
import { traceTask } from './trace.ts';

const NOTICE = '🔧 Supervisor: Calling Agent Argocd...\n';

test('what each producer said is counted in code points, and each chunk says where its time went [S2-30 S2-38]', async () => {
  const log = createMemoryLog({ shards: 1 });
  const message = { messageId: 'm', role: 'ROLE_USER' as const, parts: [{ text: 'hi' }] };
  const asked = { kind: 'message', message, contextId: 'c', role: 'agent.echo', profile: 'transparent' } as const;
  const trace = { traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01` };
  await log.inputs.append('t', { v: 1, at: 1_000, from: 'client', input: asked }, { id: '1', trace });
  const from: Producer = { id: 'agent', agent: 'echo', turn: 1, attempt: 1 };
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
  const items: Command[] = [
    { kind: 'client', taskId: 't', input: asked },
    { kind: 'agent', from, input: notice },
    { kind: 'agent', from, input: open },
    { kind: 'run', from, lane: 'a', text: '👍 é\n', last: false, n: 5, chunk },
  ];
  let aggregate: ReturnType<typeof evolve> | undefined;
  const facts: Fact[] = [];
  for (const item of items) {
    for (const fact of decide(aggregate, item, 1_420).facts) {
      facts.push(fact);
      aggregate = evolve(aggregate, fact);
    }
  }
  await log.facts.append({ v: 1, facts, aggregate: aggregate!, startSeq: 0 }, { expected: 0, id: 'x' });

  const told = (await traceTask(log, 't'))!;
  assert.deepEqual([told.traces, told.state, told.contextId], [['a'.repeat(32)], 'submitted', 'c']);
  const [said] = told.producers;
  assert.deepEqual(
    [said?.tokens, said?.characters, said?.otherEvents, said?.firstMs, said?.lastMs, said?.gapMsMax],
    [3, 4, 2, 100, 405, 300],
  );
  const [, seen, answer] = told.events;
  // The notice has 39 UTF-16 units: its glyph is two of them.
  assert.deepEqual([seen?.name, seen?.characters, NOTICE.length], ['notice', 38, 39]);
  assert.deepEqual(answer?.chunk, { tokens: 3, why: 'silence', heldMs: 12, ageMs: 320 });
  assert.equal(JSON.stringify(told).includes('👍'), false, 'no text of the agent in a trace');
  assert.equal(await traceTask(log, 'other'), undefined);
});

test('percentiles are values that were measured', () => {
  assert.deepEqual(percentilesOf([3, 1, 2]), { count: 3, p50: 2, p99: 3, max: 3 });
  assert.deepEqual(percentilesOf([]), { count: 0, p50: 0, p99: 0, max: 0 });
});
