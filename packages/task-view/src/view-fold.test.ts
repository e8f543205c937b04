import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Artifact, approvalRequestParts, Fold, type Part, type StreamResponse, type TaskState, textOf } from '@hopline/a2a';
import fc from 'fast-check';
import { type RecordedEvent, recordedStreams, snapshotAfter } from './recorded-streams.test-kit.ts';
import type { ViewChange } from './view-change.ts';
import { ViewFold, type ViewItem } from './view-fold.ts';

const IDS = { taskId: 't', contextId: 'c' };
const STREAMS = recordedStreams();

const task = (state: TaskState = 'TASK_STATE_SUBMITTED', artifacts: Artifact[] = []): StreamResponse => ({
  task: { id: 't', contextId: 'c', status: { state }, artifacts },
});
const status = (state: TaskState, text?: string, metadata = {}): StreamResponse => ({
  statusUpdate: {
    ...IDS,
    status: { state, ...(text !== undefined && { message: { messageId: `m-${text}`, role: 'ROLE_AGENT', parts: [{ text }] } }) },
    metadata,
  },
});
const update = (
  artifactId: string,
  name: string,
  text: string,
  more: { append?: boolean; last?: boolean; metadata?: object } = {},
) => ({
  artifactUpdate: {
    ...IDS,
    artifact: { artifactId, name, parts: [{ text }], ...(more.metadata && { metadata: { ...more.metadata } }) },
    append: more.append ?? false,
    lastChunk: more.last ?? false,
  },
});

function foldOf(events: readonly StreamResponse[], options = {}) {
  const fold = new ViewFold(options);
  const changes = events.flatMap(event => fold.add({ event }));
  return { fold, view: fold.view, changes };
}

/** The texts that a reader of the changes has, by id. The changes and the views must agree. */
function textsOfChanges(changes: readonly ViewChange[]): Map<string, string> {
  const texts = new Map<string, string>();
  for (const change of changes) {
    if (change.kind === 'text') texts.set(change.text.id, (texts.get(change.text.id) ?? '') + change.delta);
    if (change.kind === 'text-restarted') texts.set(change.text.id, change.whole);
  }
  return texts;
}

/** The answer according to the recorded task itself: the whole answer, or the text in a profile without a whole answer. */
function recordedAnswer(events: readonly RecordedEvent[]): string {
  const fold = new Fold();
  for (const { event } of events) fold.add(event);
  const named = (name: string) => [...fold.artifacts.values()].filter(artifact => artifact.name === name);
  return named('partial_result').at(-1)?.text ?? fold.textOf('response');
}

for (const name of [
  'plain-answer',
  'plain-answer-transparent',
  'two-agents-at-once',
  'agent-killed',
  'second-attempt',
  'takeover',
]) {
  test(`the answer of the recorded task ${name} appears once, without plan and notices [S2-34]`, () => {
    const events = STREAMS.get(name)!;
    const { view, changes } = foldOf(events.map(({ event }) => event));
    assert.ok(view.answer.length > 20);
    assert.equal(view.answer, recordedAnswer(events));
    assert.equal(view.state, 'TASK_STATE_COMPLETED');
    assert.ok(!view.answer.includes('Execution Plan') && !view.answer.includes('🔧'));
    if (!name.includes('transparent')) assert.match(view.plan, /Execution Plan/);
    for (const { id, text } of view.texts) assert.equal(textsOfChanges(changes).get(id) ?? '', text);
    assert.ok(view.texts.every(({ isComplete }) => isComplete));
    assert.ok(view.tools.every(({ outcome }) => outcome === 'completed'));
  });
}

test('a question ends a turn, and its answer begins the next with an answer of its own', () => {
  const events = STREAMS.get('question-and-second-turn')!;
  const asked = events.findIndex(({ event }) => 'statusUpdate' in event && /INPUT_REQ/.test(event.statusUpdate.status.state));
  const fold = new ViewFold();
  for (const item of events.slice(0, asked + 1)) fold.add(item);
  assert.deepEqual(
    [fold.view.question?.text, fold.view.turn, fold.view.answer],
    ['Which one?', 1, 'r1.0 r1.1 r1.2 r1.3 r1.4 r1.5 '],
  );
  assert.equal(fold.view.tools[0]?.outcome, 'running');
  for (const item of events.slice(asked + 1)) fold.add(item);
  const { view } = fold;
  assert.deepEqual([view.question, view.turn, view.answer], [undefined, 2, recordedAnswer(events)]);
  assert.deepEqual(
    view.texts.filter(({ channel }) => channel === 'answer').map(({ turn, isCurrent }) => [turn, isCurrent]),
    [
      [1, false],
      [2, true],
    ],
  );
  const continued = new ViewFold({ continues: true });
  const changes = [snapshotAfter(events.slice(0, asked + 1)), ...events.slice(asked + 1)].flatMap(item => continued.add(item));
  assert.equal(continued.view.answer, recordedAnswer(events));
  assert.equal([...textsOfChanges(changes).values()].join(''), recordedAnswer(events));
});

test('a question that asks to approve a call has the call, until it is answered', () => {
  const ids = { taskId: 't', contextId: 'c' };
  const approval = { callId: 'c1', tool: 'refund', arguments: { order: '17' } };
  const status = (state: TaskState, parts?: Part[]): StreamResponse => ({
    statusUpdate: { ...ids, status: { state, ...(parts && { message: { messageId: 'q', role: 'ROLE_AGENT', parts } }) } },
  });
  const parts = approvalRequestParts(approval);
  const fold = new ViewFold();
  const changes = fold.add({ event: status('TASK_STATE_INPUT_REQUIRED', parts) });
  assert.deepEqual(fold.view.question?.approval, approval);
  assert.equal(fold.view.question?.text, 'Run refund with {"order":"17"}?');
  assert.deepEqual(
    changes.find(({ kind }) => kind === 'question'),
    { kind: 'question', question: fold.view.question },
  );
  fold.add({ event: status('TASK_STATE_WORKING') });
  assert.equal(fold.view.question, undefined);
  fold.add({ event: status('TASK_STATE_INPUT_REQUIRED', [{ text: 'which order?' }]) });
  assert.ok(fold.view.question !== undefined && !('approval' in fold.view.question));
  const waits = new ViewFold();
  waits.add({ event: status('TASK_STATE_AUTH_REQUIRED', parts) });
  assert.ok(waits.view.question !== undefined && !('approval' in waits.view.question), 'an authorization waits for no decision');
});

test('a failure and a cancel end the texts with a reason', () => {
  const { view } = foldOf(STREAMS.get('failure')!.map(({ event }) => event));
  assert.equal(view.state, 'TASK_STATE_FAILED');
  assert.ok(view.failure !== undefined && view.texts.every(({ isComplete }) => isComplete));
  assert.equal(foldOf(STREAMS.get('cancel')!.map(({ event }) => event)).view.state, 'TASK_STATE_CANCELED');
});

const streamNames = fc.constantFrom(...STREAMS.keys());
const cuts = fc.array(fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true }), { maxLength: 4 });

test('a gap at any places of any recorded stream gives the same view', () => {
  fc.assert(
    fc.property(streamNames, cuts, (name, places) => {
      const events = STREAMS.get(name)!;
      const at = new Set(places.map(place => 1 + Math.floor(place * (events.length - 1))));
      const fold = new ViewFold();
      const changes: ViewChange[] = [];
      for (const [index, item] of events.entries()) {
        // The event itself is lost, and the task after the event follows the gap.
        const items: ViewItem[] =
          index > 0 && at.has(index) ? [{ gap: 'unknown' }, snapshotAfter(events.slice(0, index + 1))] : [item];
        for (const one of items) changes.push(...fold.add(one));
      }
      const whole = foldOf(events.map(({ event }) => event)).view;
      const { gaps: _gaps, cursor: _cursor, metadata: _metadata, ...view } = fold.view;
      const { gaps: _none, cursor: _before, metadata: _of, ...expected } = whole;
      assert.deepEqual(view, expected);
      const texts = textsOfChanges(changes);
      for (const { id, text } of view.texts) assert.equal(texts.get(id) ?? '', text);
    }),
    { numRuns: 300 },
  );
});

type Op = { id: string; text: string; replace: boolean; last: boolean };
const ops = fc.array(
  fc.record({
    id: fc.constantFrom('a', 'b', 'c'),
    text: fc.string({ unit: fc.constantFrom('x', 'y', '\n', '🎯'), maxLength: 3 }),
    replace: fc.boolean(),
    last: fc.boolean(),
  }),
  { maxLength: 30 },
);

test('texts of agents at once, with attempts, equal the artifacts, whether a whole answer follows or not', () => {
  fc.assert(
    fc.property(ops, fc.boolean(), (list, withWhole) => {
      const closed = new Set<string>();
      const legal = list.filter(({ id, last }: Op) => {
        if (closed.has(id)) return false;
        if (last) closed.add(id);
        return true;
      });
      const texts = new Map<string, string>();
      // An artifact opens with its first text.
      for (const { id, text, replace } of legal)
        if (text !== '' || texts.has(id)) texts.set(id, replace ? text : (texts.get(id) ?? '') + text);
      const answer = [...texts.values()].join('');
      const events = [
        task(),
        ...legal.map(({ id, text, replace, last }) => update(id, 'streaming_result', text, { append: !replace, last })),
        ...(withWhole && answer !== '' ? [update('w', 'partial_result', answer, { last: true })] : []),
        status('TASK_STATE_COMPLETED'),
      ];
      const { view, changes } = foldOf(events);
      assert.equal(view.answer, answer);
      const seen = textsOfChanges(changes);
      assert.equal(view.texts.map(({ id }) => seen.get(id) ?? '').join(''), answer);
    }),
  );
});

test('an attempt that repeats its text makes no change, and one that differs restarts the text', () => {
  const events = [task(), update('a', 'streaming_result', 'one two'), update('a', 'streaming_result', 'one')];
  const { fold, changes } = foldOf(events);
  assert.deepEqual([fold.view.answer, changes.filter(({ kind }) => kind.startsWith('text')).length], ['one two', 1]);
  const more = fold.add({ event: update('a', 'streaming_result', ' four', { append: true }) });
  assert.deepEqual(more, [
    { kind: 'text-restarted', text: { id: 'a', channel: 'answer', agent: undefined, callId: undefined }, whole: 'one four' },
  ]);
  assert.equal(fold.view.answer, 'one four');
});

test('an attempt that ends with less text voids the rest', () => {
  const { view } = foldOf([
    task(),
    update('a', 'streaming_result', 'one two'),
    update('a', 'streaming_result', 'one', { last: true }),
  ]);
  assert.equal(view.answer, 'one');
});

test('a whole answer adds missing text, replaces other text, and does not contradict an interrupted turn', () => {
  const streamed = (whole: string) =>
    foldOf([
      task(),
      update('a', 'streaming_result', 'broken ', { last: true }),
      update('b', 'streaming_result', 'new', { last: true }),
      update('w', 'partial_result', whole, { last: true }),
    ]);
  assert.deepEqual(streamed('broken new!').view.answer, 'broken new!');
  const newest = streamed('new');
  assert.deepEqual([newest.view.answer, newest.changes.some(({ kind }) => kind === 'text-restarted')], ['new', false]);
  const other = streamed('other');
  assert.deepEqual([other.view.answer, [...textsOfChanges(other.changes).values()].join('')], ['other', 'other']);
});

test('calls pair by id and have arguments and results where the notices show them', () => {
  const metadata = { sourceAgent: 'weather', tool: 'forecast', toolCallId: 'c1' };
  const { view, changes } = foldOf([
    task(),
    update('s', 'tool_notification_start', 'start', { metadata: { ...metadata, arguments: { city: 'Oslo' } }, last: true }),
    update('e', 'tool_notification_end', 'end', { metadata: { ...metadata, failed: true, result: 'no data' }, last: true }),
    update('s2', 'tool_notification_start', 'start', { metadata: { tool: 'other' }, last: true }),
    update('e2', 'tool_notification_end', 'end', { metadata: { tool: 'other' }, last: true }),
    update('s3', 'tool_notification_start', 'start', { metadata: { tool: 'lost', toolCallId: 'c3' }, last: true }),
    status('TASK_STATE_COMPLETED'),
  ]);
  assert.deepEqual(
    view.tools.map(({ id, tool, agent, outcome, arguments: input, result }) => [id, tool, agent, outcome, input, result]),
    [
      ['c1', 'forecast', 'weather', 'failed', { city: 'Oslo' }, 'no data'],
      ['s2', 'other', undefined, 'completed', undefined, undefined],
      ['c3', 'lost', undefined, 'unknown', undefined, undefined],
    ],
  );
  assert.deepEqual(
    changes.filter(({ kind }) => kind.startsWith('tool')).map(({ kind }) => kind),
    ['tool-started', 'tool-arguments', 'tool-ended', 'tool-started', 'tool-ended', 'tool-started', 'tool-ended'],
  );
  assert.equal(view.answer, '');
});

test('files are reported once and whole; the text of another server is the answer until it names one', () => {
  const png: Artifact = { artifactId: 'f', name: 'a.png', parts: [{ raw: 'AAAA', mediaType: 'image/png', filename: 'a.png' }] };
  const { view, changes } = foldOf([
    task(),
    update('r', 'conversion_result', 'hello '),
    update('r', 'conversion_result', 'world', { append: true, last: true }),
    update('p', 'streaming_result', '!'),
    update('n', 'report', 'line 1'),
    update('n', 'report', ', line 2', { append: true, last: true }),
    { artifactUpdate: { ...IDS, artifact: png, lastChunk: true } },
    status('TASK_STATE_COMPLETED'),
  ]);
  assert.equal(view.answer, 'hello world!');
  const files = changes.flatMap(change => (change.kind === 'file' ? [change.file] : []));
  assert.deepEqual(files, view.files);
  assert.deepEqual(
    files.map(({ name, parts }) => [name, parts]),
    [
      ['report', [{ text: 'line 1, line 2' }]],
      ['a.png', png.parts],
    ],
  );
});

test('progress and queue notices are lines, and the message of the last status counts only once', () => {
  const { fold, view, changes } = foldOf([
    task(),
    status('TASK_STATE_WORKING', 'looking'),
    update('g', 'progress', '50 %'),
    status('TASK_STATE_WORKING', 'still looking'),
  ]);
  assert.equal(view.progress, 'still looking');
  assert.deepEqual(
    changes.flatMap(change => (change.kind === 'progress' ? [change.line] : [])),
    ['looking', '50 %', 'still looking'],
  );
  fold.add({ event: status('TASK_STATE_COMPLETED', 'The answer.') });
  assert.deepEqual([fold.view.answer, fold.view.progress], ['The answer.', undefined]);
  const repeated = foldOf([task(), update('r', 'response', 'The answer.'), status('TASK_STATE_COMPLETED', 'The answer.')]);
  assert.deepEqual([repeated.view.answer, repeated.view.texts.length], ['The answer.', 1]);
});

test('a transitory text leaves the task at its end, and the message with its text is not a second answer [S1-28]', () => {
  const whole: StreamResponse = {
    task: {
      ...{ id: 't', contextId: 'c' },
      status: { state: 'TASK_STATE_COMPLETED', message: { messageId: 'm', role: 'ROLE_AGENT', parts: [{ text: 'Hi there' }] } },
    },
  };
  const fold = new ViewFold();
  for (const event of [task(), update('aion:stream-delta', 'Stream Delta', 'Hi there')]) fold.add({ event });
  fold.add({ gap: 'unknown' });
  fold.add({ event: whole });
  assert.equal(fold.view.answer, 'Hi there');
  assert.equal(foldOf([whole]).view.answer, 'Hi there');
});

test('usage and metadata of statuses are in the view', () => {
  const { view, changes } = foldOf([
    task(),
    status('TASK_STATE_WORKING', undefined, { usage: { inputTokens: 3, outputTokens: 1, model: 'x' } }),
    status('TASK_STATE_COMPLETED', undefined, { note: 1 }),
  ]);
  assert.deepEqual(view.usage, { inputTokens: 3, outputTokens: 1 });
  assert.equal(changes.filter(({ kind }) => kind === 'usage').length, 1);
  assert.equal(view.metadata?.note, 1);
});

test('views are immutable, and keep what did not change', () => {
  const { fold, view } = foldOf([
    task(),
    update('s', 'tool_notification_start', '', { metadata: { toolCallId: 'c' } }),
    update('a', 'response', 'x'),
  ]);
  const before = structuredClone(view);
  fold.add({ event: update('a', 'response', 'y', { append: true }) });
  assert.deepEqual(view, before);
  assert.equal(fold.view.tools, view.tools);
  assert.notEqual(fold.view.texts, view.texts);
  assert.equal(fold.view, fold.view);
});

test('a long answer is folded and restarted with a cost that grows with its length, not with its square', () => {
  const words = Array.from({ length: 200_000 }, (_, index) => `word ${index} `);
  const fold = new ViewFold();
  fold.add({ event: task() });
  let compared = 0;
  for (const append of [true, true]) {
    for (const [index, word] of words.entries()) {
      compared += fold.add({ event: update('a', 'response', word, { append: append && index > 0 }) }).length;
      assert.equal(fold.view.turn, 1);
    }
  }
  // The second pass is an attempt that repeats the first one, so it makes no change.
  assert.equal(compared, words.length);
  assert.equal(fold.view.answer, words.join(''));
  assert.equal(textOf([{ text: fold.view.answer }]).length, words.join('').length);
});

const bytes = (artifactId: string, text: string, more: { append?: boolean; last?: boolean } = {}) =>
  update(artifactId, artifactId, text, more);

test('a view keeps as many bytes of files as its limit, counts the rest, and forgets what its reader has stored', () => {
  const { fold, view } = foldOf(
    [
      task(),
      bytes('full', 'ab'),
      bytes('full', 'cü', { append: true, last: true }),
      bytes('none', '', { last: true }),
      bytes('over', '1'),
      bytes('over', '2', { append: true, last: true }),
    ],
    { answerNames: [], fileBytesMax: 5 },
  );
  const shown = ({ files } = fold.view) => files.map(({ id, bytes: size, missing, parts }) => [id, size, missing, textOf(parts)]);
  assert.deepEqual(shown(view), [
    ['full', 5, undefined, 'abcü'],
    ['none', 0, undefined, ''],
    ['over', 2, 'excess', ''],
  ]);
  fold.forgetFile('full');
  fold.add({ event: bytes('next', '12345', { last: true }) });
  assert.deepEqual(shown().at(-1), ['next', 5, undefined, '12345']);
  assert.deepEqual(shown()[0], ['full', 5, undefined, '']);
  const { files } = foldOf([
    {
      artifactUpdate: { ...IDS, artifact: { artifactId: 'f', parts: [{ raw: 'AAECAw==' }, { data: { a: 1 } }, { url: 'x:' }] } },
    },
  ]).view;
  assert.deepEqual(
    files.map(file => file.bytes),
    [4 + 7],
  );
});

test('a file that began before the stream is marked as incomplete until a later attempt or the task has the whole file', () => {
  const begun = [bytes('f', 'end', { append: true })];
  const missingIn = (events: StreamResponse[]) => foldOf(events, { answerNames: [] }).view.files.map(({ missing }) => missing);
  assert.deepEqual(missingIn(begun), ['beginning']);
  assert.deepEqual(missingIn([...begun, bytes('f', 'whole')]), [undefined]);
  assert.deepEqual(missingIn([...begun, task('TASK_STATE_WORKING', [{ artifactId: 'f', name: 'f', parts: [{ text: 'x' }] }])]), [
    undefined,
  ]);
  // A file in a text whose beginning was received.
  const answer = update('a', 'streaming_result', 'see: ');
  const png = { artifactId: 'a', name: 'streaming_result', parts: [{ raw: 'AAAA', mediaType: 'image/png' }] };
  assert.deepEqual(missingIn([answer, { artifactUpdate: { ...IDS, artifact: png, append: true } }]), [undefined]);
});

test('a reader may choose the artifacts that are the answer, whatever their type', () => {
  const html: Artifact = { artifactId: 'h', name: 'page', parts: [{ text: '<p>', mediaType: 'text/html', filename: 'p.html' }] };
  const events = [task(), { artifactUpdate: { ...IDS, artifact: html, lastChunk: true } }, update('n', 'notes', 'text')];
  const seen = (options: object) => {
    const { answer, files } = foldOf(events, options).view;
    return [answer, files.map(({ id }) => id)];
  };
  assert.deepEqual(seen({}), ['text', ['h']]);
  assert.deepEqual(seen({ answerNames: [] }), ['', ['h', 'n']]);
  assert.deepEqual(seen({ answerNames: ['page'] }), ['<p>', ['n']]);
});

test('a fold that begins within a turn does not compare its text with the whole answer, until a gap makes it whole', () => {
  const events = [
    update('a', 'streaming_result', ' two', { append: true }),
    update('w', 'partial_result', 'one two', { last: true }),
  ];
  const { fold, view } = foldOf(events, { resumed: true });
  assert.equal(view.answer, ' two');
  fold.add({ gap: 'unknown' });
  const artifacts = [{ artifactId: 'a', name: 'streaming_result', parts: [{ text: 'one two' }] }];
  fold.add({ event: task('TASK_STATE_WORKING', artifacts) });
  fold.add({ event: update('w', 'partial_result', 'one two three', { last: true }) });
  assert.equal(fold.view.answer, 'one two three');
});

test('after a gap at the head of a stream that continues a task, no text of the turn is missing', () => {
  const fold = new ViewFold({ continues: true });
  fold.add({ gap: 'unknown' });
  fold.add({ event: task('TASK_STATE_WORKING', [{ artifactId: 'a', name: 'response', parts: [{ text: 'one' }] }]) });
  fold.add({ event: update('a', 'response', ' two', { append: true }) });
  assert.equal(fold.view.answer, 'one two');
});
