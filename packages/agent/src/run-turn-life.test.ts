import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Message, textOf } from '@hopline/a2a';
import { INPUT_DEPTH_MAX } from '@hopline/events';
import { LogUnavailable, Requeued, Superseded } from '@hopline/log';
import { agent as agentOf, supervisor } from '@hopline/task/test-kit';
import { until } from '../../../test/kit/until.ts';
import type { AgentEvent } from './agent.ts';
import { TURN_ARTIFACTS_MAX, TURN_TEXT_BYTES_MAX } from './limits.ts';
import { runTurn } from './run-turn.ts';
import { CALL, done, message, quiet, run, scripted, TaskLog, text } from './task-log.test-kit.ts';
import { WATCH_AFTER_MS } from './task-watch.ts';

test('an agent that throws fails its turn, and the text of its error is not shown', async () => {
  for (const agent of [
    scripted(() => {
      throw new Error('secret');
    }),
    scripted(async function* () {
      yield text('a');
      throw new SyntaxError('secret');
    }),
  ]) {
    const task = await TaskLog.create('direct');
    await run(task, agent);
    const fold = await task.fold();
    assert.equal(fold.task?.status.state, 'TASK_STATE_FAILED');
    assert.deepEqual(fold.task?.metadata, { reason: 'the agent failed', retryable: false });
    assert.ok(!JSON.stringify(await task.records()).includes('secret'));
  }
});

test('a second attempt replaces the text of the first [C-5]', async () => {
  for (const mode of ['caipe', 'direct'] as const) {
    const task = await TaskLog.create(mode);
    const dead = scripted(async function* () {
      yield { type: 'tool', phase: 'start', callId: 'w', tool: 'read' };
      yield { type: 'tool', phase: 'end', callId: 'w', tool: 'read' };
      yield { type: 'tool', phase: 'start', callId: 'x', tool: 'deploy' };
      yield text('half an ans');
      yield {
        type: 'artifact',
        artifact: { artifactId: 'f1', name: 'file', parts: [{ raw: 'AAAA' }] },
        append: false,
        lastChunk: true,
      };
      yield {
        type: 'artifact',
        artifact: { artifactId: 'f2', name: 'log', parts: [{ data: 1 }] },
        append: false,
        lastChunk: false,
      };
      throw new Error('dies');
    });
    const stop = new AbortController();
    const first = run(
      task,
      scripted(async function* (turn) {
        try {
          yield* dead.run(turn);
        } catch {
          stop.abort();
        }
      }),
      task.job(),
      stop.signal,
    );
    await assert.rejects(first, Requeued);
    await task.fold();
    const again: AgentEvent[] = [
      text('the whole answer'),
      {
        type: 'artifact',
        artifact: { artifactId: 'g1', name: 'file', parts: [{ raw: 'AAAA' }] },
        append: false,
        lastChunk: true,
      },
      { type: 'artifact', artifact: { artifactId: 'g2', name: 'log', parts: [{ data: 2 }] }, append: false, lastChunk: true },
      done,
    ];
    await run(task, scripted(again), task.job(2));
    const before = (await task.records()).findIndex(record => record.from.attempt === 2);
    assert.ok(before > 0);
    const fold = await foldAll(task);
    assert.deepEqual(fold.violations, []);
    assert.equal(fold.textOf(mode === 'caipe' ? 'streaming_result' : 'response'), 'the whole answer');
    const names = [...fold.artifacts.values()].map(artifact => artifact.name);
    assert.deepEqual(
      ['file', 'log', 'tool_notification_start', 'tool_notification_end'].map(name => names.filter(one => one === name).length),
      [1, 1, 2, 2],
    );
    assert.deepEqual([...fold.artifacts.values()].find(artifact => artifact.name === 'log')?.parts, [{ data: 2 }]);
    const ends = [...fold.artifacts.values()].filter(artifact => artifact.name === 'tool_notification_end');
    const shown = ends.map(({ parts }) => parts.map(part => part.text?.slice(0, 1)).join());
    assert.deepEqual(shown, ['✅', '❌'], 'only the call that the dead attempt left open has failed');
  }
});

test('artifacts with the same name are paired, in order, with the artifacts of the dead attempt; a server may repeat one that has ended', async () => {
  const chunk = (content: string, more: object = {}): AgentEvent => ({
    type: 'artifact',
    artifact: { artifactId: 'a.md', name: 'a.md', parts: [{ text: content }] },
    append: false,
    lastChunk: true,
    ...more,
  });
  const own = { apart: true };
  const task = await TaskLog.create('transparent');
  const stop = new AbortController();
  const dies = scripted(async function* () {
    yield chunk('one', { ...own, lastChunk: false });
    yield chunk(', whole', { ...own, append: true });
    yield chunk('tw', { ...own, lastChunk: false });
    stop.abort();
    await new Promise(() => {});
  });
  await assert.rejects(run(task, dies, task.job(), stop.signal), Requeued);
  await task.fold();
  const again = [
    chunk('one', { ...own, lastChunk: false }),
    chunk(', whole', { ...own, append: true }),
    chunk('two', own),
    chunk('three', own),
    chunk('three'),
    chunk('three again, whole'),
    done,
  ];
  await run(task, scripted(again), task.job(2));
  const fold = await foldAll(task);
  assert.deepEqual(fold.violations, []);
  assert.deepEqual(
    [...fold.artifacts.values()].map(({ name, text: content }) => [name, content]),
    [
      ['a.md', 'one, whole'],
      ['a.md', 'two'],
      ['a.md', 'three'],
    ],
  );
});

test('a later attempt does not count as waiting for credentials just because another call’s agent waits', async () => {
  for (const [own, states] of [
    [false, ['TASK_STATE_WORKING']],
    [true, []],
  ] as const) {
    const task = await TaskLog.create('transparent');
    task.input(supervisor(), { kind: 'call', call: 'call-1-2', agent: 'argocd' });
    const ask = { kind: 'status', state: 'TASK_STATE_AUTH_REQUIRED', message: message('log in') } as const;
    await task.input(agentOf(own ? CALL : 'call-1-2'), ask).store();
    const waiting = scripted(async function* () {
      yield* [];
      await new Promise(() => {});
    });
    const stop = new AbortController();
    const running = run(task, waiting, task.job(2), stop.signal);
    if (!own) await until(async () => (await task.inputs()).length > 0);
    stop.abort();
    await assert.rejects(running, Requeued);
    const shown = (await task.inputs()).map(input => (input.kind === 'status' ? input.state : input.kind));
    assert.deepEqual(shown, states);
  }
});

test('if notices are statuses, a later attempt ends the open tool calls of a dead attempt once it no longer waits for credentials', async () => {
  const tool = (callId: string, phase: 'start' | 'end'): AgentEvent => ({ type: 'tool', phase, callId, tool: 'list_pods' });
  const ask = { kind: 'status', state: 'TASK_STATE_AUTH_REQUIRED', message: message('log in') } as const;
  for (const waits of [false, true]) {
    const task = await TaskLog.create('chat');
    const stop = new AbortController();
    const dying = scripted(async function* () {
      yield* [tool('a', 'start'), tool('b', 'start'), tool('a', 'end')];
      stop.abort();
      await new Promise(() => {});
    });
    await assert.rejects(run(task, dying, task.job(), stop.signal), Requeued);
    await task.fold();
    if (waits) await task.input({ ...agentOf(CALL), item: 1 }, ask).store();
    assert.equal(task.aggregate!.state, waits ? ask.state : 'TASK_STATE_WORKING');
    await run(task, scripted([text('the answer'), done]), task.job(2));
    await foldAll(task);
    const notices = task.facts.flatMap(fact => {
      const shown = fact.kind === 'status.changed' ? fact.event.statusUpdate.status.message : undefined;
      return shown?.metadata?.toolCallId === undefined
        ? []
        : [`${shown.metadata.toolCallId} ${textOf(shown.parts).split(' ')[0]}`];
    });
    assert.deepEqual(
      notices,
      ['a 🔧', 'b 🔧', 'a ✅', 'b ❌'].map(shown => `${CALL}/${shown}`),
    );
  }
});

/** Waits until the agent's text is in the log. */
async function written(task: TaskLog, content: string): Promise<void> {
  await until(async () => JSON.stringify(await task.records()).includes(`"${content}"`), `the text ${content}`);
}

/** Folds all inputs again. The decider drops those that it has folded before, as the relay does by their ordinals. */
async function foldAll(task: TaskLog) {
  const records = await task.records();
  task.records = async () => records.filter(record => record.from.attempt === 2);
  return await task.fold();
}

for (const [how, event, shown] of [
  ['fails without text shows the beginning that the first has shown', { type: 'failed', reason: 'x', retryable: false }, 'half'],
  ['completes without text leaves no text of the first', done, ''],
] as const) {
  test(`a second attempt that ${how}`, async () => assert.equal(await textAfter(event), shown));
}

async function textAfter(event: AgentEvent): Promise<string> {
  const task = await TaskLog.create('caipe');
  const stop = new AbortController();
  const first = run(
    task,
    scripted(async function* () {
      yield text('half');
      stop.abort();
    }),
    task.job(),
    stop.signal,
  );
  await assert.rejects(first, Requeued);
  await task.fold();
  await run(task, scripted([event]), task.job(2));
  return (await foldAll(task)).textOf('streaming_result');
}

test('after its last attempt a turn fails with only that reason', async () => {
  const task = await TaskLog.create('caipe');
  await run(task, scripted([text('never')]), task.job(4, { exhausted: true }));
  assert.deepEqual(await task.inputs(), [
    { kind: 'ended', call: CALL, state: 'TASK_STATE_FAILED', reason: 'attempts exhausted', retryable: true },
  ]);
});

test('a turn whose attempts are exhausted while the log is away is settled, and its watch does not end the process', async () => {
  const task = await TaskLog.create('caipe');
  const watched = Promise.withResolvers<void>();
  let reads = 0;
  const facts = Object.assign(Object.create(task.log.facts) as typeof task.log.facts, {
    last: async (taskId: string) => {
      reads += 1;
      if (reads === 1) return task.log.facts.last(taskId);
      watched.resolve();
      throw new LogUnavailable('away');
    },
  });
  const inputs = Object.assign(Object.create(task.log.inputs) as typeof task.log.inputs, {
    append: async (...args: Parameters<typeof task.log.inputs.append>) => {
      await watched.promise;
      // A rejection counts as unhandled at the end of the turn of the event loop.
      await new Promise(resolve => setImmediate(resolve));
      return task.log.inputs.append(...args);
    },
  });
  const { signal } = new AbortController();
  const deps = { log: { ...task.log, facts, inputs }, agent: scripted([]), name: 'argocd', logger: quiet, signal };
  assert.equal((await runTurn(deps, task.job(4, { exhausted: true })))?.reason, 'attempts exhausted');
});

test('a cancelled task stops its agent, and nothing more is written [S3-26]', async () => {
  for (const mode of ['caipe', 'direct'] as const) {
    const task = await TaskLog.create(mode);
    let stopped = false;
    const agent = scripted(async function* (turn) {
      yield text('a');
      await new Promise<void>(resolve => turn.signal.addEventListener('abort', () => resolve()));
      stopped = true;
      yield text('late');
    });
    const running = run(task, agent);
    await written(task, 'a');
    await task.cancel().store();
    assert.deepEqual(await running, { unneeded: 'ended' });
    assert.equal(stopped, true);
    assert.ok(!JSON.stringify(await task.records()).includes('late'));
    assert.ok(!(await task.inputs()).some(input => input.kind === 'ended'));
  }
});

test('an agent that ignores its signal is abandoned after STOP_MS_MAX', { timeout: 120_000 }, async () => {
  const task = await TaskLog.create('caipe');
  const deaf = scripted(async function* () {
    yield text('a');
    await new Promise(() => {});
  });
  const running = run(task, deaf);
  await written(task, 'a');
  await task.cancel().store();
  assert.deepEqual(await running, { unneeded: 'ended' });
});

test('a later message of the client ends the previous turn [S4-27]', async () => {
  const task = await TaskLog.create('direct');
  const running = run(
    task,
    scripted(async function* (turn) {
      yield text('a');
      await new Promise<void>(resolve => turn.signal.addEventListener('abort', () => resolve()));
    }),
  );
  await written(task, 'a');
  await task.message('more', 'm2', 'agent.argocd', 'transparent').store();
  assert.deepEqual(await running, { unneeded: 'later turn' });
  const outcome = await run(task, scripted([text('second turn'), done]), task.job(1, { turn: 2 }));
  assert.equal(outcome?.state, 'TASK_STATE_COMPLETED');
  const records = await task.records();
  task.records = async () => records.filter(record => record.from.turn === 2);
  const fold = await task.fold();
  assert.deepEqual(fold.violations, []);
  assert.equal(fold.textOf('response'), 'second turn');
});

test('an item whose work is already over does nothing', async () => {
  const task = await TaskLog.create('caipe');
  await run(task, scripted([text('a'), done]));
  await task.fold();
  const before = (await task.records()).length;
  assert.deepEqual(await run(task, scripted([text('again'), done]), task.job(2)), { unneeded: 'ended' });
  assert.equal((await task.records()).length, before);
});

test('an attempt ends if it is superseded, before it starts or while it runs', async () => {
  const task = await TaskLog.create('caipe');
  const zombie = run(
    task,
    scripted(async function* (turn) {
      yield text('old');
      await new Promise<void>(resolve => turn.signal.addEventListener('abort', () => resolve()));
      yield text('late');
    }),
  );
  await written(task, 'old');
  const ending = Promise.withResolvers<void>();
  const newer = run(
    task,
    scripted(async function* () {
      yield text('new');
      await ending.promise;
    }),
    task.job(2),
  );
  await written(task, 'new');
  await assert.rejects(
    Promise.all([zombie, task.fold()]),
    Superseded,
    'its item must not be settled as done: the newer attempt may die',
  );
  ending.resolve();
  assert.equal((await newer)?.state, 'TASK_STATE_COMPLETED');
});

test('a second run of an attempt that has written stops before it begins', async () => {
  const task = await TaskLog.create('caipe');
  const first = run(
    task,
    scripted(async function* (turn) {
      yield text('first');
      await new Promise<void>(resolve => turn.signal.addEventListener('abort', () => resolve()));
    }),
  );
  await written(task, 'first');
  let runs = 0;
  const second = scripted(async function* () {
    runs += 1;
    yield text('second');
  });
  await task.fold();
  await assert.rejects(run(task, second), Superseded);
  assert.equal(runs, 0);
  await run(task, scripted([text('newer'), done]), task.job(2));
  await task.fold();
  await first.catch(() => {});
});

test('a turn is followed only after WATCH_AFTER_MS, so a shorter one has no follower', async () => {
  for (const waits of [false, true]) {
    const task = await TaskLog.create('caipe');
    const followed = Promise.withResolvers<number>();
    const startedMs = performance.now();
    const facts = Object.assign(Object.create(task.log.facts) as typeof task.log.facts, {
      last: (taskId: string) => task.log.facts.last(taskId),
      follow: (...args: Parameters<typeof task.log.facts.follow>) => {
        followed.resolve(performance.now() - startedMs);
        return task.log.facts.follow(...args);
      },
    });
    const agent = scripted(async function* () {
      if (waits) await followed.promise;
      yield text('a');
    });
    const outcome = await runTurn(
      { log: { ...task.log, facts }, agent, name: 'argocd', logger: quiet, signal: new AbortController().signal },
      task.job(),
    );
    assert.equal(outcome?.state, 'TASK_STATE_COMPLETED');
    if (waits) assert.ok((await followed.promise) >= WATCH_AFTER_MS - 1);
    // On a busy machine even the short turn may take that long.
    else if (performance.now() - startedMs < WATCH_AFTER_MS)
      assert.equal(await Promise.race([followed.promise, 'not followed']), 'not followed');
  }
});

test('a turn that its process stops is requeued', async () => {
  const task = await TaskLog.create('caipe');
  const stop = new AbortController();
  const running = run(
    task,
    scripted(async function* () {
      yield text('a');
      stop.abort();
    }),
    task.job(),
    stop.signal,
  );
  await assert.rejects(running, Requeued);
  assert.ok(!(await task.inputs()).some(input => input.kind === 'ended'));
});

test('a turn whose inputs the log refuses rejects with the log’s error', async () => {
  const task = await TaskLog.create('caipe');
  const log = { ...task.log, inputs: { ...task.log.inputs, append: async () => Promise.reject(new Error('away')) } };
  const endless = scripted(async function* () {
    for (;;) yield text('token');
  });
  await assert.rejects(
    runTurn(
      { log: log as never, agent: endless, name: 'argocd', logger: quiet, signal: new AbortController().signal },
      task.job(),
    ),
    /away/,
  );
});

test('text of one turn is bounded', async () => {
  const half = 'x'.repeat(TURN_TEXT_BYTES_MAX / 2);
  const task = await TaskLog.create('caipe');
  await run(task, scripted([text(half), text(half), text('y'), done]));
  const fold = await task.fold();
  assert.equal(task.ended()?.reason, `the agent sent more than ${TURN_TEXT_BYTES_MAX} bytes of text in one turn`);
  assert.equal(fold.textOf('streaming_result').length, TURN_TEXT_BYTES_MAX);
  const calls = await TaskLog.create('caipe');
  const tools = Array.from({ length: TURN_ARTIFACTS_MAX + 1 }, (_, index) => ({
    type: 'tool' as const,
    phase: 'end' as const,
    callId: `${index}`,
    tool: 'x',
  }));
  const outcome = await run(calls, scripted([...tools, done]));
  assert.match(outcome?.reason ?? '', /more than 1000 artifacts and tool calls/);
});

test('an event that would not fit into a record fails the turn, not the log', async () => {
  const raw = 'A'.repeat(600 * 1024);
  const big = await TaskLog.create('caipe');
  const artifact: AgentEvent = {
    type: 'artifact',
    artifact: { artifactId: 'a', parts: [{ raw }] },
    append: false,
    lastChunk: true,
  };
  assert.match(
    (await run(big, scripted([artifact, done])))?.reason ?? '',
    /an artifact of the agent has more than 524288 bytes of JSON in one event: send it in chunks/,
  );
  const last = await TaskLog.create('direct');
  assert.match(
    (await run(last, scripted([{ type: 'done', message: message(raw) }])))?.reason ?? '',
    /a message of the agent has more than/,
  );
  const failed = await TaskLog.create('caipe');
  const outcome = await run(failed, scripted([{ type: 'failed', reason: 'x', retryable: false, message: message(raw) }]));
  assert.match(outcome?.reason ?? '', /a message of the agent/);
  const large = await TaskLog.create('caipe');
  await run(large, scripted([text(raw), done]));
  assert.equal((await large.fold()).textOf('streaming_result'), raw, 'text of any size is cut into records');
});

test('the trace of the job continues in the log and in the agent', async () => {
  const task = await TaskLog.create('caipe');
  const traceparent = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;
  let seen: string | undefined;
  const agent = scripted(async function* (turn) {
    seen = turn.trace.traceparent;
    yield text('a');
  });
  await run(task, agent, task.job(1, { trace: { traceparent } }));
  assert.equal(seen, traceparent);
});

test('an event that does not fit into a record, or is not JSON, fails the turn, and the agent is not run again', async () => {
  const huge = 'x'.repeat(2 * 1024 * 1024);
  const circular: Record<string, unknown> = {};
  circular.self = circular;
  const part = (value: unknown): AgentEvent => ({
    type: 'artifact',
    artifact: { artifactId: 'a', parts: [value as Message['parts'][number]] },
    append: false,
    lastChunk: true,
  });
  const tooLarge = /^an event of the agent has more than \d+ bytes$/;
  const unreadable = /^the agent sent an event that cannot be read$/;
  const cases: [string, AgentEvent, RegExp][] = [
    ['name of a tool', { type: 'tool', phase: 'start', callId: 'c', tool: huge }, tooLarge],
    ['id of a call', { type: 'tool', phase: 'start', callId: huge, tool: 't' }, tooLarge],
    ['id of a token', { type: 'text', text: 'a', id: huge }, tooLarge],
    [
      'name of an artifact',
      {
        type: 'artifact',
        artifact: { artifactId: 'a', name: huge, parts: [{ text: 'a' }] },
        append: false,
        lastChunk: true,
        apart: true,
      },
      tooLarge,
    ],
    [
      'what is left for the next turn',
      { type: 'interrupted', state: 'TASK_STATE_INPUT_REQUIRED', message: message('?'), resume: huge },
      tooLarge,
    ],
    ['reason', { type: 'failed', reason: huge, retryable: false }, tooLarge],
    ['metadata of the end', { type: 'done', metadata: { huge } }, tooLarge],
    ['many messages at the end', { type: 'done', history: [1, 2, 3].map(() => message(huge.slice(0, 400_000))) }, tooLarge],
    ['a part that is not an object', part(null), unreadable],
    ['a number JSON has not', part({ data: 1n }), unreadable],
    ['a circle', { type: 'progress', message: { ...message('a'), metadata: circular } }, unreadable],
    ['a circle at the end', { type: 'done', metadata: circular }, unreadable],
  ];
  for (const [what, event, reason] of cases) {
    const task = await TaskLog.create('caipe', { recordBytesMax: 1024 * 1024 });
    const outcome = await run(task, scripted([text('text before'), event]));
    assert.equal(outcome?.state, 'TASK_STATE_FAILED', what);
    await task.fold();
    assert.match(task.ended()?.reason ?? '', reason, what);
    assert.equal(task.ended()?.retryable, false, what);
  }
});

test('a second stored item of a call runs only while the first has written nothing, and stops when it does', async () => {
  const task = await TaskLog.create('caipe');
  await run(
    task,
    scripted(async function* () {
      yield text('one');
      await task.fold();
      await run(task, scripted([text('never'), done]), task.job(1, { item: 2 }));
      yield done;
    }),
  );
  const fold = await task.fold();
  assert.deepEqual([fold.textOf('streaming_result'), task.ended()?.state], ['one', 'TASK_STATE_COMPLETED']);

  const late = await TaskLog.create('caipe');
  let stopped = false;
  const waiting = run(
    late,
    scripted(async function* ({ signal }) {
      try {
        await new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
      } finally {
        stopped = true;
      }
    }),
    late.job(1, { item: 2 }),
  );
  await late.recordOf({ id: CALL, agent: 'argocd', turn: 1, item: 1, attempt: 1 });
  assert.deepEqual(await waiting, { unneeded: 'other item' });
  assert.ok(stopped);
});

test('an event may nest INPUT_DEPTH_MAX levels of JSON; with one more the turn fails with a reason that names the bound', async () => {
  const artifact = (levels: number): AgentEvent => {
    const data: unknown = JSON.parse('['.repeat(levels) + ']'.repeat(levels));
    return { type: 'artifact', artifact: { artifactId: 'f', name: 'f', parts: [{ data }] }, append: false, lastChunk: true };
  };
  // Three levels: the input, its parts and the part.
  for (const [levels, reason] of [
    [INPUT_DEPTH_MAX - 3, undefined],
    [INPUT_DEPTH_MAX - 2, `an event of the agent nests deeper than ${INPUT_DEPTH_MAX} levels of JSON`],
  ] as const) {
    const task = await TaskLog.create('caipe');
    await run(task, scripted([artifact(levels), done]));
    await task.fold();
    assert.equal(task.ended()?.reason, reason);
  }
});

test('work whose turn is missing from a stale read waits for that turn instead of being settled', async () => {
  const task = await TaskLog.create('direct');
  const ask: AgentEvent = { type: 'interrupted', state: 'TASK_STATE_INPUT_REQUIRED', message: message('Which one?') };
  await run(task, scripted([ask]));
  await task.fold();
  const stale = await task.log.facts.last(task.taskId);
  await task.message('this one', 'm2', 'agent.argocd', 'transparent').store();
  task.log.facts.last = async () => stale;
  const outcome = await run(task, scripted([text('done'), done]), task.job(1, { turn: 2, item: 2 }));
  assert.equal(outcome?.state, 'TASK_STATE_COMPLETED');
});
