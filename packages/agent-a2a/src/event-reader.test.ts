import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Message, Part, StreamResponse, Task, TaskState } from '@hopline/a2a';
import type { AgentEvent } from '@hopline/agent';
import { queueNotice } from '@hopline/events';
import { EventReader, RECENT_MESSAGES_MAX, type ReaderOptions } from './event-reader.ts';
import { OPEN_CALLS_MAX, OpenCalls } from './open-calls.ts';
import { KEPT_ID_UNITS_MAX, keptId, RecentIds } from './recent-ids.ts';

/** A reader whose calls return their events. */
function reader(options: Partial<ReaderOptions> = {}) {
  const one = new EventReader({ deltas: 'incremental', text: 'answer', onSkipped: () => {}, onCumulative: () => {}, ...options });
  return {
    read(event: StreamResponse): AgentEvent[] {
      one.read(event);
      return one.take();
    },
    snapshot: (whole: Task) => ({ isWhole: one.snapshot(whole), events: one.take() }),
    end(): AgentEvent[] {
      one.end();
      return one.take();
    },
    get state() {
      return one;
    },
  };
}
const message = (text: string, messageId = ''): Message => ({ messageId, role: 'ROLE_AGENT', parts: [{ text }] });
const working = (text: string, messageId = ''): StreamResponse => ({
  statusUpdate: { taskId: 't', contextId: 'c', status: { state: 'TASK_STATE_WORKING', message: message(text, messageId) } },
});
const task = (more: Partial<Task>): Task => ({ id: 't', contextId: 'c', status: { state: 'TASK_STATE_COMPLETED' }, ...more });

test('message ids are deduplicated within a bound; messages without an id never are [S0-22]', () => {
  const one = reader();
  assert.equal([...one.read(working('ha', '1')), ...one.read(working('ha', '1'))].length, 1);
  assert.equal([...one.read(working('ha')), ...one.read(working('ha'))].length, 2);
  const ids = new RecentIds(RECENT_MESSAGES_MAX);
  for (let id = 0; id < 2 * RECENT_MESSAGES_MAX; id += 1) assert.equal(ids.add(`${id}`), true);
  assert.equal(ids.add(`${RECENT_MESSAGES_MAX}`), false, 'the newest RECENT_MESSAGES_MAX are kept');
  assert.equal(ids.add(`${RECENT_MESSAGES_MAX - 1}`), true, 'older ones are dropped');
});

test('token counts that the agent reports with the end of its turn are passed on, and other values of that name are not', () => {
  const ended = (usage: unknown): StreamResponse => ({
    statusUpdate: { taskId: 't', contextId: 'c', status: { state: 'TASK_STATE_COMPLETED' }, metadata: { usage } },
  });
  const usageOf = (usage: unknown) =>
    reader()
      .read(ended(usage))
      .flatMap(event => (event.type === 'usage' ? [event.usage] : []));
  assert.deepEqual(usageOf({ inputTokens: 3, cachedTokens: 0, price: 7 }), [{ inputTokens: 3, cachedTokens: 0 }]);
  for (const other of [undefined, null, 'x', {}, { inputTokens: -1 }, { inputTokens: '3' }, { outputTokens: 0.5 }])
    assert.deepEqual(usageOf(other), []);
});

test('an id of more than KEPT_ID_UNITS_MAX is kept as a hash, and still found when it repeats [S0-22]', () => {
  const longest = 'x'.repeat(KEPT_ID_UNITS_MAX);
  assert.equal(keptId(longest), longest);
  const long = 'x'.repeat(1_000_000);
  assert.ok(keptId(long).length <= KEPT_ID_UNITS_MAX);
  assert.notEqual(keptId(`${long}\ud83d`), keptId(`${long}\ud83e`));
  const one = reader();
  assert.equal(
    [...one.read(working('a', long)), ...one.read(working('a', long)), ...one.read(working('a', `${long}2`))].length,
    2,
  );
  const artifact = (artifactId: string) => ({ artifactId, parts: [{ text: 'a' }] });
  one.read({ artifactUpdate: { taskId: 't', contextId: 'c', artifact: artifact(long), append: false, lastChunk: true } });
  const history = [message('a', long), message('a', `${long}2`)];
  assert.equal(one.snapshot(task({ history, artifacts: [artifact(`${long}2`)] })).isWhole, false);
  assert.equal(one.snapshot(task({ history, artifacts: [artifact(long), artifact(`${long}2`)] })).isWhole, true);
});

test('the number of open calls is limited, and the oldest call of a tool ends first', () => {
  const calls = new OpenCalls();
  const ids = Array.from({ length: OPEN_CALLS_MAX + 1 }, (_, n) =>
    calls.idOf({ phase: 'start', tool: n === 0 ? 'old' : 'x', failed: false }),
  );
  assert.equal(calls.isOpen('old'), false);
  assert.equal(calls.idOf({ phase: 'end', tool: 'x', failed: false }), ids[1]);
});

test('the history of a polled task is the answer so far, without notices and earlier turns', () => {
  const one = reader();
  for (const event of [working('🔧 Calling tool: x', 'n1'), working('one', 'm1')]) one.read(event);
  const history = [
    message('from the previous turn', 'old'),
    { ...message('question', 'q'), role: 'ROLE_USER' as const },
    message('🔧 Calling tool: x', 'n1'),
    message('✅ Tool x completed', 'n2'),
    message('one', 'm1'),
    message(' two', 'm2'),
  ];
  assert.deepEqual(one.snapshot(task({ history })), { events: [{ type: 'snapshot', text: 'one two' }], isWhole: true });
});

test('a task without the first text, or with less than was received, is incomplete', () => {
  const one = reader();
  one.read(working('one', 'm1'));
  assert.equal(one.snapshot(task({ history: [message(' two', 'm2')] })).isWhole, false);
  assert.deepEqual(
    one.snapshot(task({ history: [message(' two', 'm2')] })).events,
    [],
    'a part of the answer must not replace it',
  );
  const nameless = reader();
  nameless.read(working('one'));
  assert.equal(nameless.snapshot(task({ history: [message('one')] })).isWhole, false);
  const artifacts = reader();
  artifacts.read({ artifactUpdate: { taskId: 't', contextId: 'c', artifact: { artifactId: 'a', parts: [{ text: 'x' }] } } });
  assert.equal(artifacts.snapshot(task({})).isWhole, false);
  assert.equal(artifacts.snapshot(task({ artifacts: [{ artifactId: 'a', parts: [{ text: 'xy' }] }] })).isWhole, true);
  assert.equal(reader().snapshot(task({})).isWhole, false, 'without any content a task may be incomplete');
});

test('without a setting, a poll, an artifact or the end of the turn decides how held texts are used', () => {
  const texts = ['Hi', 'Hi there', 'Hi there, you', 'Hi there, you all'];
  const message10 = (index: number) => message(texts[index]!, `m${index}`);
  const begun = () => {
    const one = reader({ deltas: undefined });
    const events = [0, 1].flatMap(index => [...one.read(working(texts[index]!, `m${index}`))]);
    assert.deepEqual(events, [{ type: 'text', text: 'Hi', id: 'm0' }]);
    return one;
  };
  const state = (of: TaskState, text?: string): StreamResponse => ({
    statusUpdate: { taskId: 't', contextId: 'c', status: { state: of, ...(text && { message: message(text, 'end') }) } },
  });
  const textsOf = (events: readonly AgentEvent[]) =>
    events.flatMap(event => (event.type === 'text' || event.type === 'snapshot' ? [[event.type, event.text]] : []));

  const polled = begun();
  assert.deepEqual(
    polled.snapshot(task({ status: { state: 'TASK_STATE_WORKING' }, history: [0, 1, 2].map(message10) })).events,
    [],
  );
  assert.deepEqual(textsOf(polled.snapshot(task({ history: [0, 1, 2, 3].map(message10) })).events), [
    ['snapshot', texts[3]],
    ['snapshot', texts[3]],
  ]);

  const artifact = { artifactId: 'a', parts: [{ text: 'Hi there' }] };
  const whole: StreamResponse = { artifactUpdate: { taskId: 't', contextId: 'c', artifact, append: false, lastChunk: true } };
  assert.deepEqual(textsOf([...begun().read(whole)]), [['snapshot', 'Hi there']]);
  assert.deepEqual(textsOf([...begun().read(state('TASK_STATE_COMPLETED', 'Hi there'))]), [['snapshot', 'Hi there']]);
  assert.deepEqual(textsOf([...begun().read(state('TASK_STATE_COMPLETED'))]), [['text', 'Hi there']]);
  assert.deepEqual(textsOf([...begun().read(state('TASK_STATE_INPUT_REQUIRED', 'Which?'))]), [['text', 'Hi there']]);
  assert.deepEqual(textsOf([...begun().end()]), [['text', 'Hi there']], 'a turn that fails has what was sent');
});

test('absent or empty members are not a fault [S2-29]', () => {
  const one = reader();
  const events: StreamResponse[] = [
    { statusUpdate: { taskId: '', contextId: '', status: { state: 'TASK_STATE_WORKING' } } },
    {
      statusUpdate: {
        taskId: '',
        contextId: '',
        status: { state: 'TASK_STATE_WORKING', message: { messageId: '', role: 'ROLE_AGENT', parts: [] } },
      },
    },
    { artifactUpdate: { taskId: '', contextId: '', artifact: { artifactId: '', parts: [] } } },
  ];
  const [begun, artifact, ...more] = events.flatMap(event => [...one.read(event)]);
  assert.deepEqual(begun, { type: 'working' });
  assert.deepEqual(artifact, {
    type: 'artifact',
    artifact: { artifactId: 'artifact', parts: [] },
    append: false,
    lastChunk: false,
  });
  assert.deepEqual(more, []);
  assert.deepEqual(one.state.ids, {});
});

test('a message is the whole answer only as the first event [S1-11]', () => {
  const done = { type: 'done', message: message('42', 'm') };
  assert.deepEqual([...reader().read({ message: message('42', 'm') })], [{ ...done, direct: true }]);
  const later = reader();
  later.read(working('thinking', 'w'));
  assert.deepEqual([...later.read({ message: message('42', 'm') })], [done]);
});

test('a final or interrupting status with an empty message still ends the turn', () => {
  const one = reader();
  const [request] = one.read({ statusUpdate: { taskId: 't', contextId: 'c', status: { state: 'TASK_STATE_INPUT_REQUIRED' } } });
  assert.equal(request?.type === 'interrupted' && request.message.parts.length, 1);
  assert.deepEqual(request?.type === 'interrupted' && request.resume, { taskId: 't', contextId: 'c' });
  assert.equal(one.state.ended, true);
});

test('credentials are requested once and do not end the turn [S3-5]', () => {
  const one = reader();
  const status = (state: TaskState) => ({ statusUpdate: { taskId: 't', contextId: 'c', status: { state } } });
  const [request, ...more] = [...one.read(status('TASK_STATE_AUTH_REQUIRED')), ...one.read(status('TASK_STATE_AUTH_REQUIRED'))];
  assert.equal(request?.type === 'auth-required' && request.message.parts.length, 1);
  assert.deepEqual(request?.type === 'auth-required' && request.resume, { taskId: 't', contextId: 'c' });
  assert.deepEqual([more, one.state.ended], [[], false]);
  assert.deepEqual([...one.read(status('TASK_STATE_WORKING'))], [{ type: 'working' }]);
  assert.equal(one.state.waiting, undefined);
});

test("the start of the agent's work is one event, unless another event shows it", () => {
  const status = (state: TaskState) => ({ statusUpdate: { taskId: 't', contextId: 'c', status: { state } } });
  const bare = reader();
  assert.deepEqual(bare.read({ task: task({ status: { state: 'TASK_STATE_SUBMITTED' } }) }), []);
  assert.deepEqual(bare.read(status('TASK_STATE_WORKING')), [{ type: 'working' }]);
  assert.deepEqual(bare.read(status('TASK_STATE_WORKING')), []);
  assert.deepEqual(reader().read({ task: task({ status: { state: 'TASK_STATE_WORKING' } }) }), [{ type: 'working' }]);
  const spoken = reader();
  assert.deepEqual([...spoken.read(working('a')), ...spoken.read(status('TASK_STATE_WORKING'))], [{ type: 'text', text: 'a' }]);
  assert.deepEqual(reader({ text: 'hidden' }).read(working('a')), [{ type: 'working' }]);
});

test('a notice that the turn waits for a slot is progress, both in a status and in a polled task [S4-21]', () => {
  const notice = queueNotice('q-1', { role: 'agent.slow', ahead: 3 });
  const status = { state: 'TASK_STATE_SUBMITTED' as const, message: notice };
  for (const text of ['answer', 'progress', 'hidden'] as const) {
    const one = reader({ text });
    const events = one.read({ statusUpdate: { taskId: 't', contextId: 'c', status } });
    assert.deepEqual(
      events.map(({ type }) => type),
      ['progress'],
    );
  }
  const polled = reader();
  const { events } = polled.snapshot(task({ status }));
  assert.deepEqual(
    events.map(({ type }) => type),
    ['progress'],
  );
});

test('calls in parts of Google ADK are tool calls, and the text of their status comes before them', () => {
  const call = { data: { id: 'c', name: 'look', args: { at: 'x' } }, metadata: { adk_type: 'function_call' } };
  const ended = (response: object) => ({
    data: { id: 'c', name: 'look', response },
    metadata: { adk_type: 'function_response' },
  });
  const one = reader();
  const status = (messageId: string, parts: Part[]) =>
    one.read({
      statusUpdate: {
        taskId: 't',
        contextId: 'c',
        status: { state: 'TASK_STATE_WORKING', message: { messageId, role: 'ROLE_AGENT', parts } },
      },
    });
  assert.deepEqual(status('1', [call, { text: 'Looking.' }]), [
    { type: 'text', text: 'Looking.', id: '1' },
    { type: 'tool', phase: 'start', callId: 'c', tool: 'look', arguments: { at: 'x' } },
  ]);
  const end = { type: 'tool', phase: 'end', callId: 'c', tool: 'look' };
  assert.deepEqual(status('2', [ended({ found: 1 })]), [{ ...end, failed: false, result: { found: 1 } }]);
  assert.deepEqual(status('3', [ended({ error: 'lost' })]), [{ ...end, failed: true, result: { error: 'lost' } }]);
  for (const data of [{}, { name: '' }, 'look', null]) {
    const [file] = status(JSON.stringify(data), [{ ...call, data }]);
    assert.equal(file?.type, 'artifact');
  }
  const artifact = { artifactId: 'a', parts: [ended({ found: 1 })] };
  assert.deepEqual(one.read({ artifactUpdate: { taskId: 't', contextId: 'c', artifact, lastChunk: true } }), []);
});

test('a file that a status has shown is not shown again by a whole artifact', () => {
  const one = reader();
  const file = { raw: 'AA==', filename: 'a.bin', mediaType: 'image/png' };
  const other = { ...file, raw: 'AQ==' };
  const artifact = (artifactId: string, parts: Part[], more = {}) =>
    one.read({ artifactUpdate: { taskId: 't', contextId: 'c', artifact: { artifactId, parts }, lastChunk: true, ...more } });
  const message = { messageId: 'm', role: 'ROLE_AGENT' as const, parts: [file, { text: 'Done.' }] };
  const shown = one.read({
    statusUpdate: { taskId: 't', contextId: 'c', status: { state: 'TASK_STATE_WORKING', message } },
  });
  assert.deepEqual(
    shown.map(({ type }) => type),
    ['artifact', 'text'],
  );
  const partsOf = (events: AgentEvent[]) => events.flatMap(event => (event.type === 'artifact' ? [event.artifact.parts] : []));
  assert.deepEqual(partsOf(artifact('1', message.parts)), [[{ text: 'Done.' }]]);
  assert.deepEqual(partsOf(artifact('2', [file])), []);
  assert.deepEqual(partsOf(artifact('3', [file, other])), [[other]]);
  assert.deepEqual(partsOf(artifact('4', [other])), [[other]], 'two artifacts are two files');
  assert.deepEqual(partsOf(artifact('5', [file], { lastChunk: false })), [[file]], 'a chunk');
});
