import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Task, TaskState } from '@hopline/a2a';
import { recordedStreams, snapshotAfter } from '@hopline/task-view/test-kit';
import { ENDED_TURN_MS_MAX, TurnEncoder, turnToResume } from './turn-encoder.ts';
import type { UiChunk } from './ui-chunk.ts';

const EVENTS = recordedStreams().get('question-and-second-turn')!;
const textOf = (chunks: readonly UiChunk[]) => chunks.map(chunk => (chunk.type === 'text-delta' ? chunk.delta : '')).join('');

/** The time of the newest status after each number of events. */
function statusAfter(count: number): string | undefined {
  const times = EVENTS.slice(0, count).map(({ event }) =>
    'task' in event ? event.task.status.timestamp : 'statusUpdate' in event ? event.statusUpdate.status.timestamp : undefined,
  );
  return times.findLast(time => time !== undefined);
}

test('a stream from the beginning shows only the newest turn, wherever in the task it is requested', () => {
  const asked = EVENTS.findIndex(({ event }) => 'statusUpdate' in event && /INPUT_REQ/.test(event.statusUpdate.status.state));
  for (let count = 1; count <= EVENTS.length; count += 1) {
    const turn = new TurnEncoder({ messageId: 'm', statusAt: statusAfter(count) });
    const chunks = EVENTS.flatMap(item => turn.add(item));
    // Requested in the first turn, the message ends with its question.
    const expected = count <= asked + 1 ? /^r1\.0 .*Which one\?$/ : /^r2\.0 [^W]*r2\.9 $/;
    assert.match(textOf(chunks), expected, `after ${count} events`);
    assert.equal(chunks.filter(({ type }) => type === 'start').length, 1);
    assert.equal(chunks.at(-1)?.type === 'finish' || count <= asked + 1, true);
    assert.equal(turn.ended, true);
  }
});

test('the task after a gap is shown at once', () => {
  const turn = new TurnEncoder({ messageId: 'm', statusAt: 'later' });
  assert.deepEqual(turn.add({ gap: 'unknown' }), []);
  assert.match(textOf(turn.add(snapshotAfter(EVENTS))), /r2\.9/);
});

test('a page resumes the running task, else one that has just ended and was not canceled', () => {
  const now = Date.parse('2030-01-01T00:00:00.000Z');
  const task = (id: string, state: TaskState, agoMs: number): Task => ({
    id,
    contextId: 'c',
    status: { state, timestamp: new Date(now - agoMs).toISOString() },
    history: [
      { messageId: 'u1', role: 'ROLE_USER', parts: [] },
      { messageId: 'a', role: 'ROLE_AGENT', parts: [] },
    ],
  });
  const resumed = (...tasks: Task[]) => turnToResume(tasks, now)?.task.id;
  assert.equal(resumed(task('ended', 'TASK_STATE_COMPLETED', 0), task('running', 'TASK_STATE_WORKING', 9e9)), 'running');
  assert.equal(resumed(task('ended', 'TASK_STATE_COMPLETED', ENDED_TURN_MS_MAX)), 'ended');
  assert.equal(resumed(task('ended', 'TASK_STATE_COMPLETED', ENDED_TURN_MS_MAX + 1)), undefined);
  assert.equal(resumed(task('asking', 'TASK_STATE_INPUT_REQUIRED', 1)), 'asking');
  assert.equal(resumed(task('canceled', 'TASK_STATE_CANCELED', 1), task('ended', 'TASK_STATE_COMPLETED', 2)), undefined);
  assert.equal(resumed(), undefined);
  const [first] = [turnToResume([task('ended', 'TASK_STATE_COMPLETED', 0)], now)];
  assert.deepEqual(first?.turn, { messageId: 'answer-u1', statusAt: '2030-01-01T00:00:00.000Z' });
});
