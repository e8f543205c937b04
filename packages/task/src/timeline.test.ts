import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Task } from '@hopline/a2a';
import type { Fact, TaskAggregate } from '@hopline/events';
import { Scenario, supervisor } from './scenario.test-kit.ts';
import { TaskTimeline } from './timeline.ts';

function recordOf(facts: Fact[], aggregate: TaskAggregate) {
  return { v: 1, facts, aggregate, startSeq: 0, startStoredAt: 0 } as const;
}

function story(): Scenario {
  return new Scenario()
    .message('hello')
    .input(supervisor(), { kind: 'status', state: 'TASK_STATE_WORKING' })
    .open(supervisor(), 'a')
    .text(supervisor(), 'a', 'x')
    .text(supervisor(), 'a', 'y', true)
    .input(supervisor(), { kind: 'status', state: 'TASK_STATE_INPUT_REQUIRED' })
    .message('answer', 'm2')
    .open(supervisor(1, 2), 'b')
    .text(supervisor(1, 2), 'b', 'z');
}

const entriesOf = ({ timeline = [] }: Task) =>
  timeline.map(({ message, status, generation }) => [message?.messageId ?? status?.state, generation]);

test('the timeline has each status and each message of the client, in order, with the generation after it [S4-28]', () => {
  const { facts, aggregate, view } = story();
  const timeline = new TaskTimeline();
  timeline.add(recordOf(facts, aggregate!));
  const task = timeline.addTo(view!.task, 100);
  assert.deepEqual(entriesOf(task), [
    ['m1', '1'],
    ['TASK_STATE_SUBMITTED', '1'],
    ['TASK_STATE_WORKING', '2'],
    ['TASK_STATE_INPUT_REQUIRED', '5'],
    ['m2', '5'],
    ['TASK_STATE_WORKING', '6'],
  ]);
  assert.deepEqual(
    task.artifacts?.map(({ startGeneration, endGeneration }) => [startGeneration, endGeneration]),
    [
      ['3', '4'],
      ['7', undefined],
    ],
  );
  assert.deepEqual(entriesOf(timeline.addTo(view!.task, 2)), entriesOf(task).slice(-2));
  assert.equal('timeline' in timeline.addTo(view!.task, 0), false);
});

test('a timeline whose beginning has expired begins with the oldest record', () => {
  const whole = story();
  for (const [from, entries] of [
    [4, [['TASK_STATE_WORKING', '3']]],
    [5, [['TASK_STATE_INPUT_REQUIRED', '5']]],
    [6, [['TASK_STATE_INPUT_REQUIRED', '5']]],
  ] as const) {
    const until = new Scenario().given(...whole.facts.slice(0, from + 1));
    const timeline = new TaskTimeline();
    timeline.add(recordOf(whole.facts.slice(from, from + 1), until.aggregate!));
    timeline.add(recordOf(whole.facts.slice(from + 1), whole.aggregate!));
    const shown = entriesOf(timeline.addTo(whole.view!.task, 100));
    assert.deepEqual(
      shown.slice(0, entries.length),
      entries.map(entry => [...entry]),
      String(from),
    );
    assert.equal(shown.at(-1)?.[1], '6');
  }
});
