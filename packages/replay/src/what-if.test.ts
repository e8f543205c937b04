import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AgentInput, Producer } from '@hopline/events';
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

test('the settings of the recording relay reproduce the recorded frames', () => {
  const whatIf = new WhatIf({ settings: [{ eventCostMs: 40, holdMsMax: 100 }] });
  whatIf.add(plainAnswer().stored({ eventCostMs: 40, holdMsMax: 100 }));
  const [recorded, replayed] = whatIf.rows;
  const { cost: _cost, ...compared } = replayed!;
  assert.deepEqual({ ...compared, coalesce: undefined }, recorded);
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

test('the cost of a setting is at least the optimum of its arrivals, and equal to it if each token is sent at once', () => {
  const gaps = [5, 5, 40, 5, 120, 5, 5, 5, 300, 20, 20, 20];
  const task = new TaskBuilder().message().send(supervisor(), call).send(agent(), open());
  for (const gap of gaps) task.after(gap).send(agent(), text('a', 'word '));
  task.send(agent(), close(), ended).send(supervisor(), status('TASK_STATE_COMPLETED'));
  const costs = [0, 20, 110, 1_000];
  const whatIf = new WhatIf({ settings: costs.map(eventCostMs => ({ eventCostMs })) });
  whatIf.add(task.stored());
  const [recorded, each, ...rows] = whatIf.rows;
  assert.deepEqual([recorded!.cost, each!.cost], [undefined, { ms: 0, optimumMs: 0 }]);
  for (const [index, { cost, chunks }] of rows.entries()) {
    assert.ok(cost!.optimumMs > 0 && cost!.ms >= cost!.optimumMs, JSON.stringify(cost));
    assert.ok(cost!.ms >= chunks * costs[index + 1]!, JSON.stringify({ cost, chunks }));
  }
});

test('tokens of a replaced attempt, and repeated tokens, do not count', () => {
  const task = () => new TaskBuilder().message().send(supervisor(), call).send(agent(), open()).after(50);
  const end = (builder: TaskBuilder) => builder.send(agent(), close(), ended).send(supervisor(), status('TASK_STATE_COMPLETED'));
  const costOf = (builder: TaskBuilder) => {
    const whatIf = new WhatIf({ settings: [{ eventCostMs: 100 }] });
    whatIf.add(builder.stored());
    return whatIf.rows[1]!.cost!;
  };
  const once = task().send(agent(), text('a', 'one', ' two'));
  const twice = task().send(agent(), text('a', 'one', ' two'));
  twice.inputs.push({ ...twice.inputs.at(-1)!, seq: twice.inputs.at(-1)!.seq + 1 });
  assert.deepEqual(costOf(end(twice)), costOf(end(once)));
});

test('text that its producer held costs what it would have cost if the relay had held it', () => {
  const begin = () => new TaskBuilder().message().send(supervisor(), call).send(agent(), open(), text('a', 'first '));
  const end = (builder: TaskBuilder) => builder.send(agent(), close(), ended).send(supervisor(), status('TASK_STATE_COMPLETED'));
  const [apart, held] = [begin(), begin()];
  for (let record = 0; record < 8; record += 1) {
    for (let token = 0; token < 3; token += 1) apart.after(50).send(agent(), text('a', `word ${token} `));
    held.after(150).held(agent(), { lane: 'a', tokens: ['word 0 ', 'word 1 ', 'word 2 '], everyMs: 50, heldMs: 100 });
  }
  const rowsOf = (task: TaskBuilder) => {
    const whatIf = new WhatIf({
      settings: [{ eventCostMs: 0 }, { eventCostMs: 20 }, { eventCostMs: 110 }, { eventCostMs: 2_000 }],
    });
    whatIf.add(end(task).stored());
    return whatIf.rows.slice(1);
  };
  assert.deepEqual(rowsOf(held), rowsOf(apart));
});

test('text that two producers held at the same time costs what it would have cost if the relay had held it', () => {
  const other: Producer = { id: 'call-2', agent: 'reader', turn: 1, item: 3, attempt: 1 };
  const begin = () => {
    const task = new TaskBuilder().message().send(supervisor(), call, { ...call, call: 'call-2', agent: 'reader' } as AgentInput);
    return task.send(agent(), open(), text('a', 'first ')).send(other, open('c'), text('c', 'first '));
  };
  const end = (builder: TaskBuilder) =>
    builder.after(1).send(agent(), close()).send(other, close('c')).send(supervisor(), status('TASK_STATE_COMPLETED'));
  const [apart, held] = [begin(), begin()];
  for (let record = 0; record < 8; record += 1) {
    for (let token = 0; token < 3; token += 1) {
      apart.after(25).send(other, text('c', `word ${token} `));
      apart.after(25).send(agent(), text('a', `word ${token} `));
    }
    const tokens = ['word 0 ', 'word 1 ', 'word 2 '];
    held.after(125).held(other, { lane: 'c', tokens, everyMs: 50, heldMs: 100 });
    held.after(25).held(agent(), { lane: 'a', tokens, everyMs: 50, heldMs: 100 });
  }
  const rowsOf = (task: TaskBuilder) => {
    const whatIf = new WhatIf({ settings: [{ eventCostMs: 0 }, { eventCostMs: 20 }, { eventCostMs: 110 }] });
    whatIf.add(end(task).stored());
    return whatIf.rows.slice(1);
  };
  assert.deepEqual(rowsOf(held), rowsOf(apart));
});
