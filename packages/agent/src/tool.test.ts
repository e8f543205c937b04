import assert from 'node:assert/strict';
import { test } from 'node:test';
import { defineAgent } from './define-agent.ts';
import { notice } from './event-constructors.ts';
import { RUN_RETRIES_MAX } from './limits.ts';
import { model } from './model.ts';
import { step } from './step.ts';
import { playTurn } from './test-kit.ts';
import { ToolError, tool } from './tool.ts';

type Script = Parameters<typeof defineAgent>[0]['run'];
const play = (run: Script) => playTurn(defineAgent({ name: 'kit', description: 'Has tools', run }), 'go');

test('a tool shows its arguments and its result, and gives the result to the agent', async () => {
  const { tools, text, end } = await play(async function* () {
    const { sky } = yield* tool('weather', { city: 'Rome' }, async () => ({ sky: 'clear' }));
    yield sky;
  });
  assert.deepEqual(tools, [{ tool: 'weather', arguments: { city: 'Rome' }, result: { sky: 'clear' }, outcome: 'completed' }]);
  assert.deepEqual([text, end.state], ['clear', 'TASK_STATE_COMPLETED']);
});

test('a tool that throws has failed: clients see a message only from a ToolError, and the agent may catch the error', async () => {
  for (const [error, shown] of [
    [new ToolError('no such city'), { result: 'no such city' }],
    [new Error('password 123'), {}],
  ] as const) {
    const { tools, text } = await play(async function* () {
      try {
        yield* tool('weather', {}, () => {
          throw error;
        });
      } catch (caught) {
        assert.equal(caught, error);
        yield 'sorry';
      }
    });
    assert.deepEqual(tools, [{ tool: 'weather', arguments: {}, outcome: 'failed', ...shown }]);
    assert.equal(text, 'sorry');
  }
});

test('a tool is retried up to its limit within one call, with a notice each time', async () => {
  let runs = 0;
  const { tools, notices } = await play(async function* () {
    yield notice('begin');
    yield* tool(
      'flaky',
      {},
      () => {
        runs += 1;
        if (runs < 3) throw new Error('not yet');
        return runs;
      },
      { retries: 2 },
    );
  });
  assert.deepEqual(notices, ['begin', 'flaky failed and runs again (1 of 2)', 'flaky failed and runs again (2 of 2)']);
  assert.deepEqual(tools, [{ tool: 'flaky', arguments: {}, result: 3, outcome: 'completed' }]);
});

test('retries stop at the maximum, at an error that should not be retried, and at the end of the turn', async () => {
  let runs = 0;
  const failing = (options: Parameters<typeof tool>[3]) =>
    play(async function* () {
      yield* tool(
        'broken',
        {},
        () => {
          runs += 1;
          throw new RangeError('never');
        },
        options,
      );
    });
  await failing({ retries: 1 });
  assert.equal(runs, 2);
  await failing({ retries: 5, retryIf: error => !(error instanceof RangeError) });
  assert.equal(runs, 3);
  for (const retries of [-1, 0.5, RUN_RETRIES_MAX + 1])
    assert.equal((await failing({ retries })).end.reason, `retries must be a whole number from 0 to ${RUN_RETRIES_MAX}`);
  assert.equal(runs, 3);
});

test('a stored tool does not run again in the next attempt, and is shown again', async () => {
  let runs = 0;
  const agent = defineAgent({
    name: 'kit',
    description: 'Has tools',
    async *run() {
      const charge = () => {
        runs += 1;
        return { receipt: runs };
      };
      yield* tool('charge', { cents: 5 }, charge, { stored: true });
    },
  });
  const first = await playTurn(agent, 'go');
  const second = await playTurn(agent, 'go', { attempt: 2, steps: first.steps });
  assert.equal(runs, 1);
  assert.deepEqual(second.tools, first.tools);
});

test('arguments that are not an object of JSON are misuse', async () => {
  for (const args of [null, [], 'x', { big: 1n }]) {
    const { end } = await play(async function* () {
      yield* tool('x', args as never, () => 1);
    });
    assert.match(end.reason ?? '', /^tool x: its arguments are .*; they must be an object that can be written as JSON$/);
  }
});

test('a tool, a step or a model without yield* fails the turn and has not run; delegation works through helpers', async () => {
  let runs = 0;
  const count = () => {
    runs += 1;
    return 'ran';
  };
  const wrong: [RegExp, () => AsyncIterable<unknown>][] = [
    [
      /^write yield\* before step\(…\), not await, and not yield/,
      async function* () {
        yield `paid ${await (step('charge', count) as unknown)}`;
      },
    ],
    [
      /^write yield\* before tool\(…\)/,
      async function* () {
        yield tool('charge', {}, count) as unknown;
      },
    ],
    [
      /^write yield\* before tool\(…\)/,
      async function* () {
        yield 'a';
        return tool('charge', {}, count) as unknown;
      },
    ],
    [
      /^write yield\* before model\(…\)/,
      async function* () {
        const ask = async () => model({ model: 'm' }) as unknown;
        await ask();
      },
    ],
    [
      /^write yield\* before step\(…\)/,
      async function* () {
        yield 'a';
        await Promise.all([step('charge', count)]);
      },
    ],
  ];
  for (const [reason, run] of wrong) {
    const { end } = await play(run as Script);
    assert.equal(end.state, 'TASK_STATE_FAILED');
    assert.match(end.reason ?? '', reason);
  }
  assert.equal(runs, 0);
  const helper = (name: string) => tool(name, {}, count);
  const nested = async function* () {
    return yield* step('inner', count);
  };
  const right = await play(async function* () {
    const texts = [yield* helper('outer'), yield* nested()];
    yield texts.join(' ');
  });
  assert.deepEqual([right.text, right.end.state, runs], ['ran ran', 'TASK_STATE_COMPLETED', 2]);
  const whole = await play((() => helper('whole')) as unknown as Script);
  assert.deepEqual([whole.end.state, whole.tools.length], ['TASK_STATE_COMPLETED', 1]);
});

test('an editor marks a tool or a step without yield*', () => {
  const unused = [
    async function* () {
      // @ts-expect-error
      await step('charge', () => 1);
    },
    async function* () {
      // @ts-expect-error
      yield tool('charge', {}, () => 1);
    },
    // @ts-expect-error
    async () => step('charge', () => 1),
  ];
  assert.equal(unused.length, 3);
});
