import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ArtifactUpdated, Fact, LaneState, TaskAggregate } from '@hopline/events';
import { onlyContinuesText } from './only-continues-text.ts';

const OPEN: LaneState = { producer: 'call-1', attempt: 2, phase: 'open', n: 3 };

const taskWith = (lane: LaneState | undefined) => ({ lanes: lane ? { answer: lane } : {} }) as unknown as TaskAggregate;

function chunk({ append = true, lastChunk = false, attempt = 2, lane = 'answer' } = {}): ArtifactUpdated {
  const artifact = { artifactId: 'a', parts: [{ text: 'word' }] };
  const artifactUpdate = { taskId: 't', contextId: 'c', artifact, append, lastChunk };
  return {
    kind: 'artifact.updated',
    at: 1,
    generation: 4,
    producer: 'call-1',
    attempt,
    lane,
    event: { artifactUpdate },
  } as ArtifactUpdated;
}

const ENDED = { kind: 'call.ended', at: 1, call: 'call-1', agent: 'a', state: 'TASK_STATE_COMPLETED' } as Fact;

test('a record of chunks that are appended to open lanes only continues text', () => {
  assert.equal(onlyContinuesText(taskWith(OPEN), [chunk(), chunk()]), true);
});

test('a record from which a worker decides something does not only continue text', () => {
  const cases: [string, LaneState | undefined, Fact[]][] = [
    ['no fact', OPEN, []],
    ['the first chunk of a lane', { ...OPEN, phase: 'declared' }, [chunk({ append: false })]],
    ['a chunk of an unknown lane', undefined, [chunk()]],
    ['text that replaces that of an earlier attempt', { ...OPEN, phase: 'replacing' }, [chunk({ append: false })]],
    ['a chunk of a newer attempt', { ...OPEN, attempt: 1 }, [chunk()]],
    ['the last chunk', OPEN, [chunk({ lastChunk: true })]],
    ['the end of a call beside text', OPEN, [chunk(), ENDED]],
  ];
  for (const [what, lane, facts] of cases) assert.equal(onlyContinuesText(taskWith(lane), facts), false, what);
  assert.equal(onlyContinuesText(undefined, [chunk()]), false, 'the first record of a task');
});
