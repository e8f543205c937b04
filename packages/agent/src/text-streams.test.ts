import assert from 'node:assert/strict';
import { test } from 'node:test';
import { foldEvents } from '@hopline/a2a';
import { isVisible } from '@hopline/events';
import { Requeued } from '@hopline/log';
import { project, TURN_LANES_MAX } from '@hopline/task';
import { supervisor } from '@hopline/task/test-kit';
import { until } from '../../../test/kit/until.ts';
import type { AgentEvent } from './agent.ts';
import { TURN_TEXTS_MAX } from './limits.ts';
import { runTurn } from './run-turn.ts';
import { quiet, scripted, TaskLog } from './task-log.test-kit.ts';

const text = (stream: string, content: string): AgentEvent => ({ type: 'text', stream, text: content });
const message = (content: string, messageId = 'ai-1') => ({ messageId, role: 'ROLE_AGENT' as const, parts: [{ text: content }] });
type Mode = 'caipe' | 'transparent' | 'aion' | 'direct';

async function play(mode: Mode, script: AgentEvent[]) {
  const task = await TaskLog.create(mode);
  const outcome = await runTurn(
    { log: task.log, agent: scripted(script), name: 'argocd', logger: quiet, signal: new AbortController().signal },
    task.job(),
  );
  const fold = await task.fold();
  assert.deepEqual(fold.violations, []);
  const texts = [...fold.artifacts.values()].map(artifact => artifact.text);
  return { task, fold, texts, outcome, view: task.view };
}

const TWO_AT_ONCE = [
  text('a', 'al'),
  text('b', 'be'),
  text('a', 'pha'),
  text('b', 'ta'),
  { type: 'text-end', stream: 'a' },
  text('b', '!'),
] satisfies AgentEvent[];

for (const mode of ['caipe', 'transparent', 'aion', 'direct'] as const) {
  test(`${mode}: two concurrent streams are two texts, whatever the order of their tokens [S1-25]`, async () => {
    const { texts } = await play(mode, TWO_AT_ONCE);
    assert.deepEqual(texts, ['alpha', 'beta!']);
  });
}

test('consecutive streams have separate artifacts; in aion they continue the artifact that clients know [S1-25]', async () => {
  const script: AgentEvent[] = [text('a', 'one '), { type: 'text-end', stream: 'a' }, text('b', 'two')];
  assert.deepEqual((await play('transparent', script)).texts, ['one ', 'two']);
  assert.deepEqual((await play('caipe', script)).texts, ['one ', 'two']);
  const { texts, fold } = await play('aion', script);
  assert.deepEqual(texts, ['one two']);
  assert.deepEqual([...fold.artifacts.keys()], ['aion:stream-delta']);
});

test('a stream that resumes after its end begins a new text if another stream is active [S1-25]', async () => {
  const script: AgentEvent[] = [
    text('a', 'one'),
    { type: 'text-end', stream: 'a' },
    text('b', 'two'),
    text('a', 'late'),
    text('b', '!'),
  ];
  assert.deepEqual((await play('aion', script)).texts, ['onetwo!', 'late']);
});

test('the number of concurrent texts of a turn is limited; those that have ended make room', async () => {
  const many = Array.from({ length: TURN_TEXTS_MAX }, (_, index) => text(`s${index}`, `${index};`));
  const full = await play('direct', [...many, { type: 'text-end', stream: 's3' }, text('more', 'x')]);
  assert.equal(full.texts[3], '3;x');
  assert.equal(full.outcome?.state, 'TASK_STATE_COMPLETED');
  const over = await play('direct', [...many, text('more', 'x')]);
  assert.equal(over.outcome?.state, 'TASK_STATE_FAILED');
  assert.equal(over.outcome?.reason, `the agent streamed more than ${TURN_TEXTS_MAX} texts at once`);
});

test('a last message that repeats a stream adds nothing; one that replaces the text replaces all of it [S2-2]', async () => {
  const done = (content: string, standing?: 'repeats' | 'replaces'): AgentEvent => ({
    type: 'done',
    message: message(content),
    ...(standing && { standing }),
  });
  const script = [text('a', 'look '), text('b', 'found')];
  const repeated = await play('caipe', [...script, done('found', 'repeats')]);
  assert.deepEqual([repeated.texts, repeated.outcome?.message?.messageId], [['look ', 'found'], 'ai-1']);
  assert.equal(repeated.task.ended()?.message, undefined);
  assert.equal((await play('transparent', [...script, done('found', 'repeats')])).task.ended()?.message, undefined);
  assert.deepEqual((await play('transparent', [...script, done('else', 'replaces')])).task.ended()?.message, message('else'));
  const replaced = await play('caipe', [...script, done('another answer', 'replaces')]);
  assert.deepEqual([replaced.texts, replaced.task.ended()?.message], [['another answer', ''], undefined]);
});

test('aion: one transitory Stream Delta, closed once and removed with the end of its task; the message stays [S1-26 S1-28 C-18 C-19]', async () => {
  const { fold, view, task } = await play('aion', [
    { type: 'text', text: 'Hel' },
    { type: 'text', text: 'lo' },
    { type: 'artifact', artifact: { artifactId: 'x', name: 'report', parts: [{ text: 'R' }] }, append: false, lastChunk: true },
  ]);
  const deltas = task.facts.flatMap(fact =>
    fact.kind === 'artifact.updated' && fact.transitory ? [fact.event.artifactUpdate] : [],
  );
  assert.deepEqual(
    new Set(deltas.map(({ artifact }) => `${artifact.artifactId} ${artifact.name}`)),
    new Set(['aion:stream-delta Stream Delta']),
  );
  assert.deepEqual([deltas[0]?.append, deltas.slice(1).every(({ append }) => append)], [false, true]);
  assert.equal(deltas.filter(({ lastChunk }) => lastChunk).length, 1);
  assert.equal(fold.textOf('Stream Delta'), 'Hello');
  const ended = task.ended();
  assert.equal(ended?.message?.parts[0]?.text, 'Hello', 'S1-24: without a message of the agent, what was streamed');
  assert.ok(!JSON.stringify(task.facts.filter(isVisible).map(fact => fact.event)).includes('transitory'));
  // The supervisor's final state.
  const input = { kind: 'status', state: 'TASK_STATE_COMPLETED', message: message('Hello') } as const;
  assert.ok(
    view?.task.artifacts?.some(({ artifactId }) => artifactId === 'aion:stream-delta'),
    'there while it works',
  );
  await task.input(supervisor(), input).store();
  const after = project(view, task.facts.at(-1)!);
  assert.deepEqual(
    after.task.artifacts?.map(({ name }) => name),
    ['report'],
  );
  assert.equal(after.task.status.message?.parts[0]?.text, 'Hello');
});

test('a message joins the history once by its id, and its metadata is merged into the task’s [S1-16 S1-17]', async () => {
  const history = [message('one', 'h-1'), message('one again', 'h-1'), message('two', 'h-2')];
  const { view } = await play('direct', [{ type: 'done', history, metadata: { a: 1 } }]);
  assert.deepEqual(
    view?.task.history?.map(({ messageId }) => messageId),
    ['m1', 'h-1', 'h-2'],
  );
  assert.deepEqual(view?.task.history?.[1], { ...message('one', 'h-1'), taskId: 'task-1', contextId: 'c1' }, 'S1-14');
  assert.deepEqual(view?.task.metadata, { a: 1 });
});

test('the mode and the step of an input are kept in the log but not shown to clients [S1-21]', async () => {
  const source = { mode: 'messages', node: 'left' };
  const { task, fold } = await play('transparent', [
    { type: 'text', stream: 'a', text: 'x', source },
    { type: 'step', step: 'left' },
    { type: 'progress', message: message('p'), source: { mode: 'custom' } },
    {
      type: 'artifact',
      artifact: { artifactId: 'x', parts: [{ data: 1 }] },
      append: false,
      lastChunk: true,
      source: { mode: 'custom' },
    },
  ]);
  const sources = task.facts.flatMap(fact => ('source' in fact ? [[fact.kind, fact.source]] : []));
  assert.deepEqual(sources, [
    ['lane.opened', source],
    ['status.changed', { mode: 'custom' }],
    ['artifact.updated', { mode: 'custom' }],
  ]);
  assert.ok(!JSON.stringify([...fold.artifacts.values(), fold.task]).includes('messages'));
});

test('a second attempt replaces every text of the first, even texts that it does not write again [C-5]', async () => {
  const task = await TaskLog.create('caipe');
  const dead = scripted(async function* () {
    yield* TWO_AT_ONCE;
    await new Promise(() => {});
  });
  const stop = new AbortController();
  const first = runTurn({ log: task.log, agent: dead, name: 'argocd', logger: quiet, signal: stop.signal }, task.job());
  await until(async () => (await task.inputs()).some(input => input.kind === 'text' && input.tokens.join('').endsWith('!')));
  stop.abort();
  await assert.rejects(first, Requeued);
  await task.fold();
  const again = scripted([text('c', 'new'), { type: 'done' }]);
  await runTurn(
    { log: task.log, agent: again, name: 'argocd', logger: quiet, signal: new AbortController().signal },
    task.job(2),
  );
  const fold = await task.fold();
  assert.deepEqual(
    [...fold.artifacts.values()].map(artifact => artifact.text),
    ['new', ''],
  );
});

test('a later attempt may make as many artifacts as the first, and replaces the incomplete one', async () => {
  const file = (index: number, last = true): AgentEvent => ({
    type: 'artifact',
    artifact: { artifactId: `file-${index}`, name: `file-${index}`, parts: [index % 2 === 0 ? { raw: 'aGk=' } : { text: 'hi' }] },
    append: false,
    lastChunk: last,
    apart: true,
  });
  const count = 2 * TURN_LANES_MAX;
  for (const mode of ['caipe', 'transparent', 'direct'] as const) {
    const task = await TaskLog.create(mode);
    const dead = scripted(async function* () {
      yield file(0);
      yield file(1);
      yield file(2, false);
      await new Promise(() => {});
    });
    const stop = new AbortController();
    const deps = { log: task.log, name: 'argocd', logger: quiet };
    const first = runTurn({ ...deps, agent: dead, signal: stop.signal }, task.job());
    await until(async () => (await task.inputs()).some(input => input.kind === 'artifact' && !input.last));
    stop.abort();
    await assert.rejects(first, Requeued);
    await task.foldNew();
    const again = scripted([...Array.from({ length: count }, (_, index) => file(index)), { type: 'done' }]);
    const outcome = await runTurn({ ...deps, agent: again, signal: new AbortController().signal }, task.job(2));
    assert.equal(outcome?.reason, undefined);
    await task.foldNew();
    const fold = foldEvents(task.facts.filter(isVisible).map(({ event }) => event));
    assert.deepEqual(fold.violations, []);
    const files = [...fold.artifacts.values()].filter(({ name }) => name?.startsWith('file-'));
    assert.equal(files.length, count);
    assert.ok(files.every(({ closed, parts }) => closed && parts.length === 1));
  }
});
