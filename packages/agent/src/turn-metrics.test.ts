import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ToolCall } from '@hopline/events';
import type { Hop, HopMetrics } from '@hopline/telemetry';
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
    const ended: ToolCall[] = [];
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
