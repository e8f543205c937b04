import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ProducerActivity, TaskReport } from '@hopline/task-audit';
import { failureOf, firstTokenOf, hopDetails, producerDetails, rateOf, rateText, rowFailureOf } from './bar-details.ts';

const none = { count: 0, p50: 0, p99: 0, max: 0 };
const activity = (more: Partial<ProducerActivity> = {}): ProducerActivity => ({
  id: 'call-1-1',
  agent: 'argocd',
  turn: 1,
  attempt: 1,
  queuedMs: 10,
  takenMs: 50,
  firstMs: 60,
  lastMs: 2_200,
  endMs: 2_250,
  firstTokenMs: 200,
  lastTokenMs: 2_200,
  tokens: 101,
  characters: 400,
  otherEvents: 1,
  gapMsMax: 20,
  appendMs: none,
  tools: [{ name: 'look_up', fromMs: 60, ms: 40 }],
  state: 'completed',
  ...more,
});

test('first token and rate of an agent follow from its own times', () => {
  assert.deepEqual([firstTokenOf(activity()), rateOf(activity())], [150, 50]);
  const silent = activity({ tokens: 0 });
  delete silent.firstTokenMs;
  assert.deepEqual([firstTokenOf(silent), rateOf(silent), rateOf(activity({ tokens: 1 }))], [undefined, undefined, undefined]);
  assert.deepEqual([rateText(3.21), rateText(1_234.5)], ['3.2 tokens/s', '1,235 tokens/s']);
});

test('the details of a producer are sentences, and begin with its failure', () => {
  assert.deepEqual(producerDetails(activity(), [], 'k').sentences, [
    'It is the producer call-1-1.',
    'Its work waited 40 ms for a free worker.',
    'From 50 ms to 2.25 s after the question: 2.20 s.',
    'Its first token came after 150 ms.',
    'It wrote 101 tokens with 400 characters, 50 tokens/s.',
    'The tool look_up ran for 40 ms from 60 ms on.',
  ]);
  const failed = activity({ state: 'failed', reason: 'the server answered 503' });
  assert.equal(producerDetails(failed, [failed], 'k').sentences[0], 'It failed: the server answered 503.');
});

test('an attempt that was replaced counts as failed; an attempt that was returned does not', () => {
  const first = activity();
  delete first.state;
  const next = (cause: 'redelivery' | 'requeue') => activity({ attempt: 2, cause });
  assert.match(failureOf(first, [first, next('redelivery')])!, /worker failed or died/);
  assert.equal(failureOf(first, [first, next('requeue')]), undefined);
  assert.equal(failureOf(activity(), []), undefined);
});

test('the details of a hop have its meaning, its time and its share of the critical path', () => {
  const costs = [{ hop: 'agent_queue', agent: 'argocd', ms: 60, share: 0.25 }];
  const report = { costs, producers: [] } as unknown as TaskReport;
  const row = { kind: 'hop', turn: 1, label: 'agent_queue argocd', fromMs: 20, toMs: 80, note: '60 ms' } as const;
  assert.deepEqual(hopDetails(row, report, 'hop-1'), {
    key: 'hop-1',
    title: 'agent queue argocd',
    fromMs: 20,
    atMs: 80,
    sentences: [
      'The work waited for a free worker of the agent.',
      'From 20 ms to 80 ms after the question: 60 ms.',
      'Nothing else delayed the end of the turn for 60 ms of it, 25 % of the time of the turns.',
    ],
  });
});

test('the text and the work of a failed agent show its reason; other hops and other agents show none', () => {
  const failed = activity({ state: 'failed', reason: 'no credit' });
  const report = { costs: [], producers: [failed, activity({ agent: 'other' })] } as unknown as TaskReport;
  const row = { turn: 1, fromMs: 200, toMs: 2_000, note: '' };
  const reasons = [
    { ...row, kind: 'text', label: 'text argocd' },
    { ...row, kind: 'hop', label: 'agent argocd' },
    { ...row, kind: 'hop', label: 'agent_queue argocd' },
    { ...row, kind: 'text', label: 'text other' },
    { ...row, kind: 'text', label: 'text argocd', turn: 2 },
  ] as const;
  assert.deepEqual(
    reasons.map(one => rowFailureOf(one, report)),
    ['It failed: no credit.', 'It failed: no credit.', undefined, undefined, undefined],
  );
});

test('the steps of an attempt are sentences: what ran, what was taken from the log, what may have run', () => {
  const steps = [
    { name: 'charge', n: 1, outcome: 'reused' as const, of: 1, fromMs: 60, toMs: 60 },
    { name: 'mail', n: 1, outcome: 'ran' as const, fromMs: 70, toMs: 90 },
    { name: 'mail', n: 2, outcome: 'failed' as const, fromMs: 90, toMs: 95 },
    { name: 'close', n: 1, outcome: 'open' as const, fromMs: 100, toMs: 100 },
  ];
  const { sentences } = producerDetails(activity({ steps }), [], 'key');
  assert.deepEqual(sentences.slice(-4), [
    'The step charge did not run again: its result was taken from attempt 1.',
    'The step mail ran within 20 ms, and its result was stored.',
    'The step mail (2) failed within 5 ms, and its error was stored.',
    'The step close began, and no result of it is stored: it may have run.',
  ]);
});
