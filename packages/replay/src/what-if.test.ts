import assert from 'node:assert/strict';
import { test } from 'node:test';
import { agent, call, close, ended, open, plainAnswer, status, supervisor, TaskBuilder, text } from './stored-task.test-kit.ts';
import { WhatIf } from './what-if.ts';

test('a cheaper event gives more frames and less delay, and no text is lost', () => {
  const whatIf = new WhatIf({ settings: [{ eventCostMs: 0 }, { eventCostMs: 110 }, { eventCostMs: 2_000 }] });
  whatIf.add(plainAnswer().stored());
  whatIf.add(plainAnswer().stored());
  const [recorded, each, normal, costly] = whatIf.rows;
  assert.deepEqual([recorded!.tokens, each!.tokens, normal!.tokens, costly!.tokens], [18, 18, 18, 18]);
  assert.deepEqual([each!.chunks, each!.heldMs.max, whatIf.tasks], [18, 0, 2]);
  assert.ok(each!.frames > normal!.frames && normal!.frames > costly!.frames, JSON.stringify(whatIf.rows));
  assert.ok(costly!.heldMs.p99 > normal!.heldMs.p99);
});

test('the settings of the relay that recorded a task give the recorded frames', () => {
  const whatIf = new WhatIf({ settings: [{ eventCostMs: 40, holdMsMax: 100 }] });
  whatIf.add(plainAnswer().stored({ eventCostMs: 40, holdMsMax: 100 }));
  const [recorded, replayed] = whatIf.rows;
  assert.deepEqual({ ...replayed, coalesce: undefined }, recorded);
  assert.deepEqual(replayed?.coalesce, { eventCostMs: 40, holdMsMax: 100 });
});

test('a profile that forwards sends nothing of the supervisor itself', () => {
  const task = new TaskBuilder().message().send(supervisor(), open('plan'), text('plan', 'first', ' this'), close('plan'), call);
  task.send(agent(), open(), text('a', 'x'), close(), ended).send(supervisor(), status('TASK_STATE_COMPLETED'));
  const stored = task.stored();
  const frames = (forwards: boolean) => {
    const whatIf = new WhatIf({ settings: [{}], forwards });
    whatIf.add(stored);
    return whatIf.rows[1]!;
  };
  assert.deepEqual([frames(false).frames - frames(true).frames, frames(true).tokens], [1, 1]);
});

test('settings out of bounds are refused', () => {
  assert.throws(() => new WhatIf({ settings: [{ holdMsMax: 0 }] }), RangeError);
});
