import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AgentInput, AgentStepInput, FactRecord, TaskAggregate, TextInput } from '@hopline/events';
import { createMemoryLog } from '@hopline/log/memory';
import { ROOT_AGENT } from '@hopline/task';
import { agent, StoredScenario } from '@hopline/task/test-kit';
import { explainEvent } from './explain.ts';
import { reportTask } from './task-report.ts';
import { stepText, TracedSteps } from './traced-steps.ts';
import { type WaterfallRow, waterfallOf } from './waterfall.ts';
import { whyLines } from './why-lines.ts';

const step = (name: string, phase: AgentStepInput['phase'], more: Partial<AgentStepInput> = {}): AgentStepInput => ({
  kind: 'agent-step',
  step: name,
  n: 1,
  phase,
  ...more,
});
const value = (text: string) => ({ outcome: { value: text } });

/** A task whose first attempt dies in its third step, and whose second attempt takes two results from the log. */
async function taskWithSteps() {
  const log = createMemoryLog({ shards: 1 });
  let now = 1_000;
  const scenario = new StoredScenario(log.facts, 't', () => now);
  const message = { messageId: 'm', role: 'ROLE_USER' as const, parts: [{ text: 'hi' }] };
  const question = { kind: 'message', message, contextId: 'c', role: 'agent.argocd', profile: 'transparent' } as const;
  await log.inputs.append('t', { v: 1, at: now, from: 'client', input: question }, { id: 'message' });
  scenario.when({ kind: 'client', taskId: 't', input: question });
  const attempt = async (number: number, inputs: readonly Exclude<AgentInput, TextInput>[]) => {
    const from = agent(ROOT_AGENT, number);
    for (const [index, input] of inputs.entries()) {
      now += 10;
      await log.inputs.append('t', { v: 1, at: now, from, n: index + 1, inputs: [input] }, { id: `${number}/${index}` });
      scenario.input(from, input);
    }
  };
  const { error } = { error: { name: 'Error', message: 'SECRET' } };
  await attempt(1, [
    step('charge', 'reached'),
    step('charge', 'stored', value('SECRET')),
    step('charge', 'reached', { n: 2 }),
    step('charge', 'stored', { n: 2, outcome: { error } }),
    step('send', 'reached'),
  ]);
  await attempt(2, [
    step('charge', 'reached'),
    step('charge', 'reused', { of: 1 }),
    step('charge', 'reused', { n: 2, of: 1 }),
    { kind: 'artifact', lane: 'a', artifact: { name: 'receipt' }, parts: [{ text: 'paid' }], append: false, last: true },
    step('send', 'reached'),
    step('send', 'stored', value('SECRET')),
    { kind: 'status', state: 'TASK_STATE_COMPLETED' },
  ]);
  await scenario.store();
  return log;
}

test('a trace shows which steps of each attempt ran, and which were taken from the log', async () => {
  const report = (await reportTask(await taskWithSteps(), 't'))!;
  assert.deepEqual(
    report.producers.map(({ attempt, steps }) => [attempt, steps?.map(({ name, n, outcome, of }) => [name, n, outcome, of])]),
    [
      [
        1,
        [
          ['charge', 1, 'ran', undefined],
          ['charge', 2, 'failed', undefined],
          ['send', 1, 'open', undefined],
        ],
      ],
      [
        2,
        [
          ['charge', 1, 'reused', 1],
          ['charge', 2, 'reused', 1],
          ['send', 1, 'ran', undefined],
        ],
      ],
    ],
  );
  const rows = waterfallOf(report).filter(({ kind }) => kind === 'step');
  const shown = ({ label, note }: WaterfallRow) => `${label}: ${note}`;
  assert.deepEqual(rows.map(shown), [
    'step argocd charge: 10 ms, ran',
    'step argocd charge (2): 10 ms, failed, which is stored',
    'step argocd send: no outcome is stored: it may have run',
    'step argocd charge: taken from attempt 1',
    'step argocd charge (2): taken from attempt 1',
    'step argocd send: 10 ms, ran',
  ]);
  assert.doesNotMatch(JSON.stringify(report), /SECRET/);
});

test('an explanation lists the steps that the attempt had reached before the event', async () => {
  const log = await taskWithSteps();
  const report = (await reportTask(log, 't'))!;
  const { generation } = report.events.find(({ name }) => name === 'receipt')!;
  const explanation = (await explainEvent(log, 't', { generation }))!;
  const lines = whyLines(explanation, String);
  const first = lines.indexOf('  after 2 steps of its attempt:');
  assert.ok(first > 0, lines.join('\n'));
  assert.deepEqual(lines.slice(first + 1, first + 3), [
    '    charge: taken from attempt 1',
    '    charge (2): taken from attempt 1',
  ]);
});

test('the rows of many steps end with one for the rest', async () => {
  const report = (await reportTask(await taskWithSteps(), 't'))!;
  const many = Array.from({ length: 60 }, (_, n) => ({
    name: 'page',
    n: n + 1,
    outcome: n < 55 ? ('reused' as const) : ('ran' as const),
    fromMs: n,
    toMs: n + 1,
  }));
  const producers = [{ ...report.producers[0]!, steps: many }];
  const rows = waterfallOf({ ...report, producers }).filter(({ kind }) => kind === 'step');
  assert.equal(rows.length, 51);
  assert.deepEqual([rows.at(-1)?.label, rows.at(-1)?.note], ['10 more steps argocd', '5 taken from earlier attempts']);
});

test('a failed step of a call that is repeated runs again in the next attempt, and the trace shows it', () => {
  const at = { at: 1_000, producer: 'p', attempt: 1, kind: 'agent-step.recorded' } as const;
  const facts = (['reached', 'stored', 'reached'] as const).map(phase => {
    const { kind: _kind, ...fact } = step(
      'fetch',
      phase,
      phase === 'stored' ? { outcome: { error: { name: 'Error', message: 'm' } } } : {},
    );
    return { ...fact, ...at };
  });
  const aggregate = { turn: 1, calls: {} } as unknown as TaskAggregate;
  const [traced] = new TracedSteps(0).add({ facts, aggregate } as unknown as FactRecord).of({ id: 'p', turn: 1, attempt: 1 });
  assert.equal(stepText(traced!), 'failed; the next attempt runs it again');
});
