import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import type { Answer, ClientLine } from '../load.ts';
import { FAULT_KINDS } from './fault-kinds.ts';
import { brokenPromises, countTasks, effectsOf, markdownOf, type Struck, type TrafficReport } from './report.ts';

const EXPECTED = 'one two three';
const HASH = createHash('sha256').update(EXPECTED).digest('hex');
const INGRESS: Struck = { fault: 'ingress', beganAt: 100_000, endedAt: 120_000, detail: 'pod', problems: [] };

function answer(at: number, of: Partial<Answer> = {}): Answer {
  const empty = { refused: 0, failed: [], drained: 0, broken: 0, gaps: 0, silencesMs: [] };
  const ending = { question: `q-${at}`, task: `t-${at}`, state: 'completed', hash: HASH, length: EXPECTED.length };
  return { at, beganAt: at - 8_000, ms: 8_000, ...empty, ...ending, ...of };
}

const effects = (lines: ClientLine[], struck = [INGRESS]) => effectsOf(lines, struck, { expected: EXPECTED, hash: HASH });
const rowOf = (lines: ClientLine[], name: string) => effects(lines).rows.find(row => row.name === name)!;

test('answers, refusals and silences count for the fault in whose time they are, and in the total', () => {
  const lines: ClientLine[] = [
    answer(50_000),
    answer(104_000),
    { at: 110_000, refused: 'q' },
    { at: 112_000, silenceMs: 2_500, question: 'q' },
    { at: 60_000, silenceMs: 900, question: 'q' },
    { at: 63_000, silenceMs: 5_001, question: 'late' },
    { at: 70_000, silenceMs: 5_000, question: 'q' },
  ];
  const killed = rowOf(lines, FAULT_KINDS.ingress.name);
  assert.deepEqual([killed.times, killed.answers, killed.refused, killed.longestSilenceMs], [1, 1, 1, 2_500]);
  const quiet = rowOf(lines, 'no fault');
  assert.deepEqual([quiet.answers, quiet.refused, quiet.longestSilenceMs], [1, 0, 5_001]);
  const { total, silences } = effects(lines);
  assert.deepEqual(silences, [{ at: 63_000, ms: 5_001, question: 'late', fault: undefined }]);
  assert.deepEqual([total.answers, total.lost, total.doubled, total.failed, total.refused], [2, 0, 0, 0, 1]);
});

test('lost and doubled characters are counted by comparing the text with the expected one', () => {
  const lines = [
    answer(50_000, { hash: 'other', wrong: ['one three'] }),
    answer(60_000, { hash: 'other', wrong: ['one two two three', 'one two three!'] }),
  ];
  assert.deepEqual([effects(lines).total.lost, effects(lines).total.doubled], [4, 5]);
});

test('an answer without one of its artifacts has lost its text', () => {
  assert.equal(effects([answer(50_000, { hash: 'other' })]).total.lost, EXPECTED.length);
});

test('a fault permits only the failures that it explains', () => {
  const failed = (at: number, reason: string): ClientLine => ({ at, failed: reason, question: 'q' });
  const lines = [
    failed(110_000, 'message/stream: ECONNREFUSED'),
    failed(111_000, 'status 500'),
    failed(60_000, 'message/stream: ECONNREFUSED'),
    answer(200_000, { state: 'failed: attempts exhausted' }),
    answer(210_000, { gaps: 1 }),
  ];
  const { total } = effects(lines);
  assert.equal(total.permitted, 1);
  assert.deepEqual(total.reasons, {
    'status 500': 1,
    'message/stream: ECONNREFUSED': 1,
    'answer failed: attempts exhausted': 1,
    gap: 1,
  });
});

test('each question has one task in the log, and each task has ended', () => {
  const listed = [
    { id: 'a', state: 'TASK_STATE_COMPLETED' },
    { id: 'b', state: 'TASK_STATE_WORKING' },
    { id: 'd', state: 'TASK_STATE_COMPLETED' },
  ];
  const counts = countTasks(listed, new Set(['a', 'b', 'c']));
  assert.deepEqual(counts, { listed: 3, surplus: ['d'], missing: ['c'], open: ['b'] });
});

function reportOf(of: Partial<TrafficReport> = {}): TrafficReport {
  const packages = {};
  return {
    date: '2026-11-30',
    minutes: 60,
    seed: 1,
    clients: 6,
    machine: { cpu: 'cpu', cores: 2, memoryGib: 8, system: 'linux', node: '26', natsServer: '2', packages, commit: 'abc' },
    versions: { Kubernetes: 'v1.34.4' },
    cpu: { median: 50, highest: 80 },
    questions: 1,
    unanswered: 0,
    tasks: { listed: 1, surplus: [], missing: [], open: [] },
    ...effects([answer(50_000)]),
    struck: [INGRESS],
    alertsMissing: undefined,
    alerts: [],
    notes: [],
    ...of,
  };
}

test('a run keeps its promises if nothing is lost, doubled, failed or without an end', () => {
  assert.deepEqual(brokenPromises(reportOf()), []);
  const tasks = { listed: 2, surplus: ['x'], missing: [], open: ['y'] };
  const lossy = effects([answer(50_000, { hash: 'other', wrong: ['one three'] })]);
  assert.deepEqual(brokenPromises(reportOf({ ...lossy, unanswered: 1, tasks })), [
    '4 characters were lost',
    '1 questions have no end',
    'tasks without a question: x',
    'tasks without an end: y',
  ]);
  assert.deepEqual(brokenPromises(reportOf({ tasks: 'the list of tasks could not be read' })), [
    'the list of tasks could not be read',
  ]);
});

test('the report names the fault that explains an alert, and an alert without one', () => {
  const firing = { severity: 'page', about: '', startMs: 110_000, endMs: 120_000 };
  const explanation = { fault: FAULT_KINDS.ingress.name, because: 'it was killed' };
  const alerts = [
    { ...firing, alert: 'HoplineProcessDown', explanation },
    { ...firing, alert: 'HoplineGaps', explanation: undefined },
  ];
  const text = markdownOf(reportOf({ alerts, struck: [{ ...INGRESS, problems: ['the rollout: timed out'] }] }));
  assert.match(text, /2 alerts fired, 1 of them because of a fault/);
  assert.match(
    text,
    /\| HoplineProcessDown \(page\) \| {2}\| 00:01:50 \| 00:02:00 \| yes \| an ingress is killed: it was killed \|/,
  );
  assert.match(text, /\| HoplineGaps \(page\) .* \| no \| no fault explains it \|/);
  assert.match(text, /the rollout: timed out/);
  assert.match(text, /No promise was broken/);
});
