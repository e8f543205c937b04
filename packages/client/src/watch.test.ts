import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { StreamResponse } from '@hopline/a2a';
import { recordedStreams } from '@hopline/task-view/test-kit';
import fc from 'fast-check';
import { collect } from '../../../test/kit/collect.ts';
import { type BadServerOptions, type ConnectionFault, startBadServer, status, story } from './bad-server.test-kit.ts';
import { createClient } from './client.ts';
import { NoAnswerError } from './watch.ts';

const STREAMS = recordedStreams();

async function withClient(options: BadServerOptions, use: (client: ReturnType<typeof createClient>) => Promise<void>) {
  const server = await startBadServer(options);
  try {
    await use(createClient({ url: server.url, retry: { baseMs: 1, waitMsMax: 2 } }));
  } finally {
    await server.close();
  }
}

const eventsOf = (name: string): StreamResponse[] => STREAMS.get(name)!.map(({ event }) => event);

for (const [profile, name] of [
  ['caipe', 'agent-killed'],
  ['transparent', 'plain-answer-transparent'],
] as const)
  test(`a watched task of profile ${profile} has the same last view, whatever happens to connections`, async () => {
    const events = eventsOf(name);
    let expected: unknown;
    await withClient({ events }, async client => {
      const views = await collect(client.watch('task-1'));
      expected = views.at(-1);
      const answers = views.map(({ answer }) => answer);
      // Only the second attempt of the killed agent takes text back.
      const restarts = answers.filter((answer, index) => index > 0 && !answer.startsWith(answers[index - 1]!)).length;
      assert.equal(restarts, name === 'agent-killed' ? 1 : 0);
      assert.equal(views.at(-1)?.state, 'TASK_STATE_COMPLETED');
      assert.ok(views.at(-1)!.answer.length > 50);
    });
    const after = fc.integer({ min: 0, max: 30 });
    const fault: fc.Arbitrary<ConnectionFault> = fc.oneof(
      fc.constant<ConnectionFault>({ kind: 'drop' }),
      fc.constant<ConnectionFault>({ kind: 'repeat' }),
      fc.record({ kind: fc.constant('cut' as const), after, halfFrame: fc.boolean() }),
      fc.record({ kind: fc.constant('drain' as const), after }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(fault, { maxLength: 4 }), faults =>
        withClient({ events, fault: n => faults[n] }, async client => {
          assert.deepEqual((await collect(client.watch({ id: 'task-1' }))).at(-1), expected);
        }),
      ),
      { numRuns: 25 },
    );
  });

test('ask resolves with the answer and shows each view, even over a broken connection', async () => {
  await withClient({ events: story(20), fault: n => (n === 0 ? { kind: 'cut', after: 5 } : undefined) }, async client => {
    const seen: string[] = [];
    const answer = await client.ask('count', { onView: view => seen.push(view.answer) });
    assert.equal(answer, Array.from({ length: 20 }, (_, index) => `${index} `).join(''));
    assert.equal(seen.at(-1), answer);
    assert.ok(seen.length > 20);
  });
});

test('ask rejects with the view of a task that failed or asks', async () => {
  for (const state of ['TASK_STATE_FAILED', 'TASK_STATE_INPUT_REQUIRED'] as const)
    await withClient({ events: story(3, state) }, async client => {
      const thrown = await client.ask('count').then(assert.fail, (error: unknown) => error);
      assert.ok(thrown instanceof NoAnswerError);
      assert.deepEqual([thrown.view.state, thrown.view.answer], [state, '0 1 2 ']);
      assert.match(thrown.message, /^the task is (failed|input-required)$/);
    });
});

test('a server without cursors is watched from its current task', async () => {
  const events = [...story(3).slice(0, -1), status('TASK_STATE_COMPLETED')];
  await withClient({ events, cursors: false }, async client => {
    assert.equal((await collect(client.watch('task-1'))).at(-1)?.answer, '0 1 2 ');
  });
});
