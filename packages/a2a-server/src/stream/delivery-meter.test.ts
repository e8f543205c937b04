import assert from 'node:assert/strict';
import { test } from 'node:test';
import { agent, Scenario, supervisor } from '@hopline/task/test-kit';
import { COUNT, type Hop, type HopMetrics } from '@hopline/telemetry';
import type { A2AServer } from '../a2a-server.ts';
import type { TaskFeed } from '../feed/task-feed.ts';
import { VisibleEntry } from '../feed/visible-entry.ts';
import { DeliveryMeter } from './delivery-meter.ts';

/** Measurements of a message's stream: the maximum values of its span, and the labels of every first token. */
function measured({ facts, aggregate }: Scenario) {
  const maxima: number[] = [];
  const firstTokens: object[] = [];
  const chunks: { agent: string }[] = [];
  const hop = { count: () => {}, set: () => {}, max: (key: number) => maxima.push(key), carrier: () => ({}) } as unknown as Hop;
  const metrics = {
    timeToFirstToken: { recordMs: (_ms: number, labels: object) => firstTokens.push(labels) },
    chunkDuration: { recordMs: (_ms: number, labels: { agent: string }) => chunks.push(labels) },
    hopDuration: { recordMs: () => {} },
  } as unknown as HopMetrics;
  const meter = new DeliveryMeter({ metrics } as A2AServer, { hop, receivedAt: 0 }, true);
  const live = { storedAt: 1, readAt: 1 };
  for (const fact of facts)
    if (fact.kind === 'artifact.updated') meter.add(new VisibleEntry(fact, 1, live), { aggregate } as TaskFeed);
  meter.written();
  return { maxima, firstTokens, chunks };
}

const planned = () =>
  new Scenario()
    .message('go')
    .open(supervisor(), 'plan', { name: 'execution_plan_streaming' })
    .text(supervisor(), 'plan', '1. Argocd');

test("the first token of a turn is an agent's text, not the supervisor's plan, both in the metric and in the span", () => {
  const other = { ...agent('call-1-2'), agent: 'github' };
  const { maxima, firstTokens, chunks } = measured(
    planned()
      .input(supervisor(), { kind: 'call', call: 'call-1-1', agent: 'argocd' })
      .open(agent(), 'a')
      .text(agent(), 'a', 'v3')
      .input(supervisor(), { kind: 'call', call: 'call-1-2', agent: 'github' })
      .open(other, 'b')
      .text(other, 'b', 'v4'),
  );
  assert.deepEqual(firstTokens, [{ agent: 'argocd' }]);
  assert.deepEqual(maxima, [COUNT.firstTokenMs]);
  assert.deepEqual(
    chunks.map(({ agent: name }) => name),
    ['supervisor', 'argocd', 'github'],
    'a late plan is measured late',
  );
});

test('a task whose agents sent no text has no first token', () => {
  const { maxima, firstTokens } = measured(planned());
  assert.deepEqual([maxima, firstTokens], [[], []]);
});
