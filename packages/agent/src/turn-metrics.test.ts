import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ToolTiming } from '@hopline/events';
import type { Hop, HopMetrics } from '@hopline/telemetry';
import { SilentTurns } from './silent-turns.ts';
import { TurnMetrics } from './turn-metrics.ts';

const HOUR_MS = 3_600_000;
const STARTED_AT = Date.UTC(2026, 0, 1);

for (const [direction, stepMs] of [
  ['forward', HOUR_MS],
  ['back', -HOUR_MS],
] as const)
  test(`the time of a tool call is right even if the clock is set ${direction}`, t => {
    t.mock.timers.enable({ apis: ['Date'], now: STARTED_AT });
    const recorded: { ms: number; hop: string }[] = [];
    const ended: ToolTiming[] = [];
    const hop = { count: () => {}, max: () => {}, beforeSegmentEnd: () => {}, carrier: () => ({}) } as unknown as Hop;
    const hopDuration = { recordMs: (ms: number, { hop }: { hop: string }) => recorded.push({ ms, hop }) };
    const metrics = new TurnMetrics({
      hop,
      agent: 'argocd',
      metrics: { hopDuration } as unknown as Pick<HopMetrics, 'hopDuration'>,
      takenAt: STARTED_AT,
      isFirstAttempt: true,
      onToolEnd: call => ended.push(call),
    });
    metrics.count({ type: 'tool', phase: 'start', callId: '1', tool: 'sync' });
    t.mock.timers.setTime(STARTED_AT + stepMs);
    metrics.count({ type: 'tool', phase: 'end', callId: '1', tool: 'sync' });
    assert.equal(ended[0]?.at, STARTED_AT, 'when it began is a time that is stored');
    assert.deepEqual(
      recorded.map(({ hop }) => hop),
      ['tool'],
    );
    for (const ms of [ended[0].ms, recorded[0]!.ms]) assert.ok(ms >= 0 && ms < HOUR_MS / 2, `${ms} ms`);
    metrics.end();
    assert.equal(recorded.at(-1)?.hop, 'agent');
    assert.ok(Math.abs(recorded.at(-1)!.ms) < HOUR_MS / 2, 'from the item to the end of the turn');
  });

test('from the first token on, the time of an agent is in `talk`, `finish` and its tools', t => {
  let now = 0;
  t.mock.method(performance, 'now', () => now);
  t.mock.timers.enable({ apis: ['Date'], now: STARTED_AT });
  const recorded: [hop: string, ms: number][] = [];
  const hop = { count: () => {}, max: () => {}, beforeSegmentEnd: () => {}, carrier: () => ({}) } as unknown as Hop;
  const hopDuration = { recordMs: (ms: number, { hop }: { hop: string }) => recorded.push([hop, ms]) };
  const metrics = new TurnMetrics({
    hop,
    agent: 'argocd',
    takenAt: STARTED_AT,
    isFirstAttempt: true,
    onToolEnd: () => {},
    metrics: { hopDuration } as unknown as Pick<HopMetrics, 'hopDuration'>,
  });
  const after = (ms: number, event: Parameters<TurnMetrics['count']>[0]) => {
    now += ms;
    metrics.count(event);
  };
  const tool = (phase: 'start' | 'end', callId: string) => ({ type: 'tool', phase, callId, tool: 'sync' }) as const;
  const text = { type: 'text', text: 'a' } as const;
  after(10, tool('start', '1'));
  after(20, tool('end', '1'));
  after(30, text);
  after(100, text);
  after(5, tool('start', '2'));
  after(200, text);
  after(300, tool('end', '2'));
  after(50, tool('start', '3'));
  after(60, tool('end', '3'));
  now += 7;
  metrics.end();
  assert.deepEqual(recorded, [
    ['tool', 20],
    ['agent', 40],
    ['tool', 500],
    ['tool', 60],
    ['talk', 105],
    ['finish', 57],
  ]);
});

test('a turn is silent since its last event, except while it waits for its client', t => {
  let now = 0;
  t.mock.method(performance, 'now', () => now);
  t.mock.timers.enable({ apis: ['Date'], now: STARTED_AT });
  const hop = { count: () => {}, max: () => {}, beforeSegmentEnd: () => {}, carrier: () => ({}) } as unknown as Hop;
  const options = { hop, agent: 'argocd', metrics: undefined, takenAt: STARTED_AT, isFirstAttempt: true, onToolEnd: () => {} };
  const [hanging, asking] = [new TurnMetrics(options), new TurnMetrics(options)];
  const turns = new SilentTurns();
  const [leave] = [turns.add(hanging), turns.add(asking)];
  now = 60_000;
  assert.equal(turns.longestMs, 60_000, 'before the first event');
  hanging.count({ type: 'text', text: 'a' });
  asking.count({ type: 'auth-required', requests: [] } as never);
  now += HOUR_MS;
  assert.deepEqual([hanging.silentMs, asking.silentMs, turns.longestMs], [HOUR_MS, 0, HOUR_MS]);
  leave();
  assert.equal(turns.longestMs, 0);
  asking.count({ type: 'working' });
  asking.count({ type: 'tool', phase: 'start', callId: '1', tool: 'sync' });
  now += 5_000;
  assert.equal(turns.longestMs, 5_000, 'a tool that does not end is silent, too');
  asking.count({ type: 'tool', phase: 'start', callId: '2', tool: 'ask', waiting: true });
  now += 5_000;
  assert.equal(turns.longestMs, 0);
});
