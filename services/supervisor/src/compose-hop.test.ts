import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Fact, TaskAggregate } from '@hopline/events';
import type { HopMetrics } from '@hopline/telemetry';
import { ComposeHop } from './compose-hop.ts';

const trace = { traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01' };
const ended = (at: number) => ({ kind: 'call.ended', at }) as Fact;
const at = (state: TaskAggregate['state'], time: number) => ({ state, at: time });

function started() {
  const recorded: unknown[][] = [];
  const metrics = { hopDuration: { recordMs: (...all: unknown[]) => recorded.push(all) } } as unknown as Pick<
    HopMetrics,
    'hopDuration'
  >;
  return { recorded, hop: new ComposeHop(metrics, trace) };
}

test('compose lasts from the end of the last call to the end of the turn', () => {
  const { recorded, hop } = started();
  hop.apply([ended(1_000), ended(1_500)]);
  hop.apply([ended(2_000)]);
  hop.end(at('TASK_STATE_COMPLETED', 2_040));
  assert.deepEqual(recorded, [[40, { hop: 'compose', agent: 'supervisor' }, trace]]);
});

test('a turn without calls, or one that waits for its client, is not composed', () => {
  const { recorded, hop } = started();
  hop.end(at('TASK_STATE_COMPLETED', 10));
  hop.apply([ended(1_000)]);
  hop.end(at('TASK_STATE_INPUT_REQUIRED', 2_000));
  assert.deepEqual(recorded, []);
});
