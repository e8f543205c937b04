import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type AgentDefinition,
  type AgentEvent,
  artifact,
  data,
  defineAgent,
  done,
  failed,
  needsInput,
  notice,
  tool,
} from './index.ts';
import { playTurn } from './test-kit.ts';

const define = (run: AgentDefinition['run'], more: Partial<AgentDefinition> = {}) =>
  defineAgent({ name: 'greeter', description: 'Greets', run, ...more });

test('strings become the answer byte for byte, and every other event has its own form', async () => {
  const agent = define(async function* (turn) {
    yield notice('looking');
    yield 'Hello';
    yield ' ';
    yield `${turn.text}\n`;
    yield artifact({ name: 'report.md', description: 'A report', text: '# One\n', last: false });
    yield artifact({ name: 'report.md', text: 'two', append: true });
    yield data({ rows: 3 }, { name: 'rows' });
    yield { type: 'tool', phase: 'start', callId: 'c', tool: 'look_up' };
    yield done();
    yield 'never';
  });
  const { text, artifacts, notices, end, events } = await playTurn(agent, 'you');
  assert.equal(text, 'Hello you\n');
  assert.deepEqual(notices, ['looking']);
  assert.deepEqual(
    artifacts.map(({ name, text: content, parts }) => [name, content, parts.find(part => part.data !== undefined)?.data]),
    [
      ['report.md', '# One\ntwo', undefined],
      ['rows', '', { rows: 3 }],
    ],
  );
  assert.equal(end.state, 'TASK_STATE_COMPLETED');
  assert.equal(events.at(-1)?.type, 'done');
});

test('an agent that passes on another server’s text may declare that it repeats it', () => {
  const run: AgentDefinition['run'] = async function* () {};
  assert.equal('repeatsText' in define(run), false);
  assert.equal('repeatsText' in define(run, { repeatsText: false }), false);
  assert.equal(define(run, { repeatsText: true }).repeatsText, true);
  assert.throws(() => define(run, { repeatsText: 'yes' as never }), /repeatsText is a string, not a boolean/);
});

test('the turn has all text parts joined without a separator, the message, the history and the attempt number [S1-6]', async () => {
  const seen: unknown[] = [];
  const agent = define(async function* (turn) {
    seen.push(turn.text, turn.message.parts.length, turn.history.length, turn.attempt, turn.metadata.who, turn.resume);
    yield '';
  });
  const earlier = { messageId: 'm0', role: 'ROLE_USER' as const, parts: [{ text: 'before' }] };
  const message = {
    messageId: 'm1',
    role: 'ROLE_USER' as const,
    parts: [{ text: 'a' }, { data: { x: 1 } }, { text: ' b' }, { text: 'c' }],
  };
  const { end } = await playTurn(agent, message, { history: [earlier], attempt: 3, metadata: { who: 'me' }, resume: { at: 2 } });
  assert.deepEqual(seen, ['a bc', 4, 1, 3, 'me', { at: 2 }]);
  assert.equal(end.state, 'TASK_STATE_COMPLETED');
});

test('a question interrupts the turn, and its resume value returns with the answer', async () => {
  const agent = define(async function* (turn) {
    if (turn.resume === undefined) yield needsInput('Which one?', { resume: { step: 1 } });
    else yield `took ${turn.text} at ${JSON.stringify(turn.resume)}`;
  });
  const first = await playTurn(agent, 'deploy');
  assert.equal(first.end.state, 'TASK_STATE_INPUT_REQUIRED');
  assert.equal(first.end.message?.parts[0]?.text, 'Which one?');
  const second = await playTurn(agent, 'prod', { resume: first.end.resume });
  assert.equal(second.text, 'took prod at {"step":1}');
});

test('an abort ends the turn even if the agent ignores the signal', async () => {
  const stop = new AbortController();
  const agent = define(async function* () {
    yield 'a';
    stop.abort();
    await new Promise(() => {});
  });
  const { text } = await playTurn(agent, 'x', { signal: stop.signal });
  assert.equal(text, 'a');
});

test('an error of the agent fails the turn without its message; the reason of `failed` is shown', async () => {
  const thrown = await playTurn(
    define(async function* () {
      yield 'a';
      throw new Error('the secret of the user');
    }),
    'x',
  );
  assert.deepEqual(thrown.end, { state: 'TASK_STATE_FAILED', reason: 'the agent failed', retryable: false });
  assert.match(String(thrown.cause), /the secret/);
  const turn = await playTurn(
    define(async function* () {
      yield failed('the index is down', { retryable: true });
    }),
    'x',
  );
  assert.deepEqual(turn.end, { state: 'TASK_STATE_FAILED', reason: 'the index is down', retryable: true });
});

test('log fields are numbers and words of the source, never text', async () => {
  const agent = define(async function* (turn) {
    turn.log.info`looked up ${3} rows, all ${true}`;
    turn.log.warn`it was ${turn.text as unknown as number}`;
    yield '';
    (turn.log.info as (words: unknown) => void)(turn.text);
  });
  const { log, end } = await playTurn(agent, 'a secret');
  assert.deepEqual(log, ['looked up 3 rows, all true', 'it was [text]']);
  assert.match(end.reason ?? '', /^turn\.log\.info must be called with a template literal/);
});

test('an undefined member of an event or a definition counts as absent', () => {
  const none = { id: undefined, description: undefined, metadata: undefined, append: undefined, last: undefined };
  assert.deepEqual(artifact({ name: 'a', text: 'x', parts: undefined, ...none }), artifact({ name: 'a', text: 'x' }));
  assert.deepEqual(data(1, { name: undefined, description: undefined }), data(1));
  assert.deepEqual(failed('no', { retryable: undefined }), failed('no'));
});

test('an invalid definition is refused, and the error names the wrong member', () => {
  const run: AgentDefinition['run'] = async function* () {};
  const good = { name: 'a', description: 'd', run };
  const refuses = (definition: unknown, sentence: RegExp) =>
    assert.throws(() => defineAgent(definition as AgentDefinition), { name: 'AgentMisuse', message: sentence });
  refuses(undefined, /^the definition is undefined$/);
  refuses({ ...good, name: 'My Agent' }, /^name must be 1 to 32 of a-z/);
  refuses({ ...good, name: 'a'.repeat(33) }, /^name must be/);
  assert.equal(defineAgent({ ...good, name: 'a'.repeat(32) }).name.length, 32);
  refuses({ ...good, description: '' }, /^description must be a string/);
  refuses({ ...good, run: 'x' }, /^run is a string; it must be a generator: async \*run\(turn\)/);
  refuses({ ...good, skills: 'x' }, /^skills is a string, not an array$/);
  refuses({ ...good, skills: ['x', {}] }, /^skills\[1\] needs a name$/);
  refuses({ ...good, skills: [{ name: 'x', tags: 'y' }] }, /^skills\[0\]\.tags must be a list of strings$/);
});

test('skills may be written in a short form', async () => {
  const agent = define(async function* () {}, {
    skills: ['Say hello', { name: 'Wave', id: 'w', description: 'Waves', tags: ['hand'] }],
  });
  assert.deepEqual(await agent.skills(), [
    { id: 'say-hello', name: 'Say hello', description: 'Say hello', tags: [] },
    { id: 'w', name: 'Wave', description: 'Waves', tags: ['hand'] },
  ]);
});

test('a run that breaks a rule fails its turn with the name of the rule, and quotes no value', async () => {
  const failsWith = async (run: unknown, sentence: RegExp) => {
    const { end } = await playTurn(define(run as AgentDefinition['run']), 'x');
    assert.equal(end.state, 'TASK_STATE_FAILED');
    assert.match(end.reason ?? '', sentence);
    assert.doesNotMatch(end.reason ?? '', /secret/);
  };
  const yields = (value: unknown) =>
    async function* () {
      yield value;
    };
  await failsWith(async () => 'secret', /^run returned a promise \(is an await missing\?\); it must be a generator/);
  await failsWith(() => 'secret', /^run returned a string; it must be a generator/);
  await failsWith(yields(undefined), /^run yielded undefined; yield a string/);
  await failsWith(yields(tool('x', {}, () => 1)), /^run yielded a generator; write yield\* before tool/);
  await failsWith(yields(7), /^run yielded a number;/);
  await failsWith(yields({ text: 'secret' }), /^run yielded an object;/);
  await failsWith(yields(['secret']), /^run yielded an array;/);
  await failsWith(yields({ type: 'text', text: 7 }), /^run yielded text that is a number$/);
  await failsWith(yields({ type: 'artifact', artifact: {} }), /^run yielded an artifact without parts/);
  await failsWith(yields({ type: 'artifact', artifact: { parts: ['secret'] } }), /^run yielded an artifact without parts/);
  await failsWith(yields({ type: 'auth-required' }), /^run yielded auth-required without a message/);
  await failsWith(yields({ type: 'progress', text: 'secret' }), /^run yielded progress without a message/);
  await failsWith(yields({ type: 'tool', tool: 'x' }), /^run yielded a tool event without phase/);
  await failsWith(async function* () {
    yield notice('');
  }, /^notice is empty$/);
  await failsWith(async function* () {
    yield artifact({ name: 'x' });
  }, /^artifact: give exactly one of text and parts$/);
  await failsWith(async function* () {
    yield data(() => 'secret');
  }, /^data: a function cannot be written as JSON$/);
});

test('a defined agent may wait for credentials and then continue', async () => {
  const waits: AgentEvent = {
    type: 'auth-required',
    message: { messageId: 'm', role: 'ROLE_AGENT', parts: [{ text: 'log in' }] },
  };
  const agent = defineAgent({
    name: 'careful',
    description: 'Waits.',
    async *run() {
      yield waits;
      yield 'in';
    },
  });
  const { text, events, end } = await playTurn(agent, 'x');
  assert.deepEqual([text, events[0], end.state], ['in', waits, 'TASK_STATE_COMPLETED']);
});
