import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MetricsText } from './metrics-text.ts';
import { type ReadProcess, snapshotOf, type TopReading } from './top-snapshot.ts';

const reading = (monotonicMs: number, processes?: ReadProcess[]): TopReading => {
  const agents = [{ name: 'argocd', description: '', skills: [], state: 'live' as const, default: false }];
  // Acts as if the wall clock were set back between any two readings.
  return { at: 9_000 - monotonicMs, monotonicMs, tasks: [], counts: { working: 0 }, agents, processes, missing: [] };
};
const relay = (pid: number, text: string): ReadProcess => ({
  service: 'relay',
  instance: 'relay-1',
  pid,
  url: 'http://h',
  restarts: 1,
  isReady: true,
  isStarting: false,
  fault: null,
  metrics: new MetricsText(text),
});
const counted = (tokens: number, cpu: number, first: [sum: number, count: number]) =>
  `hopline_tokens_total{agent="argocd"} ${tokens}\nprocess_cpu_time_seconds_total{mode="user"} ${cpu}\n` +
  `hopline_hop_duration_seconds_sum{hop="agent",agent="argocd"} ${first[0]}\n` +
  `hopline_hop_duration_seconds_count{hop="agent",agent="argocd"} ${first[1]}\n` +
  `hopline_hop_duration_seconds_sum{hop="tool",agent="argocd"} 99\nhopline_hop_duration_seconds_count{hop="tool",agent="argocd"} 1`;

test('hops are ranked by their share of critical paths, so a hold during which the agent still talked is never first', () => {
  const text = (agent: number, talk: number, hold: number) =>
    `hopline_path_time_seconds_total{hop="agent",agent="argocd"} ${agent}\n` +
    `hopline_path_time_seconds_total{hop="talk",agent="argocd"} ${talk}\n` +
    `hopline_path_time_seconds_total{hop="hold"} 0.1\n` +
    `hopline_hop_duration_seconds_sum{hop="hold",agent="argocd"} ${hold}`;
  const before = reading(0, [relay(1, text(1, 1, 50))]);
  const busy = snapshotOf('http://h/', before, reading(2_000, [relay(1, text(2, 4, 90))]));
  assert.deepEqual(busy.cluster?.hops, [
    { hop: 'talk', share: 0.75 },
    { hop: 'agent', share: 0.25 },
  ]);
  const idle = snapshotOf('http://h/', before, reading(2_000, [relay(1, text(1, 1, 50))]));
  assert.deepEqual(
    idle.cluster?.hops.map(({ hop, share }) => [hop, Math.round(share * 100)]),
    [
      ['agent', 48],
      ['talk', 48],
      ['hold', 5],
    ],
    'since the start',
  );
  const older = snapshotOf('http://h/', before, reading(2_000, [relay(1, counted(1, 1, [5, 5]))]));
  assert.deepEqual(older.cluster?.hops, [], 'a relay of an earlier version measures no path');
});

test('rates are growth between two readings; a replaced process counts from 0; unknown figures are absent', () => {
  const before = reading(0, [relay(1, counted(100, 1, [2, 2]))]);
  const same = snapshotOf('http://h/', before, reading(2_000, [relay(1, counted(300, 2, [5, 3]))]));
  assert.deepEqual([same.cluster?.rates.tokens, same.processes?.[0]?.cpu], [100, 0.5]);
  assert.deepEqual([same.agents[0]?.tokensPerS, same.agents[0]?.firstTokenS], [100, 3], 'the first token of this interval');
  const idle = snapshotOf('http://h/', before, reading(2_000, [relay(1, counted(100, 1, [2, 2]))]));
  assert.deepEqual([idle.agents[0]?.tokensPerS, idle.agents[0]?.firstTokenS], [0, 1], 'the mean since the start');
  const replaced = snapshotOf('http://h/', before, reading(2_000, [relay(2, counted(50, 1, [0, 0]))]));
  assert.deepEqual(
    [replaced.cluster?.rates.tokens, replaced.processes?.[0]?.cpu, replaced.agents[0]?.firstTokenS],
    [25, undefined, undefined],
  );
  const { metrics: _metrics, ...silent } = { ...relay(1, ''), isReady: false, fault: 'does not answer' };
  assert.deepEqual(snapshotOf('http://h/', before, reading(2_000, [silent])).missing, ['metrics of relay-1: it does not answer']);
  const alone = snapshotOf('http://h/', reading(0), reading(2_000));
  assert.deepEqual([alone.cluster, alone.processes, alone.agents], [undefined, undefined, [{ name: 'argocd', state: 'live' }]]);
});

test('a process that did not answer the earlier reading has no rates, instead of its total as the growth of two seconds', () => {
  const { metrics: _metrics, ...silent } = relay(1, '');
  const busy = relay(1, counted(100_000, 500, [20, 20]));
  for (const before of [reading(0, [silent]), reading(0)]) {
    const { cluster, agents } = snapshotOf('http://h/', before, reading(2_000, [busy]));
    assert.deepEqual([cluster?.rates.tokens, agents[0]?.tokensPerS, agents[0]?.firstTokenS], [0, 0, 1]);
  }
});
