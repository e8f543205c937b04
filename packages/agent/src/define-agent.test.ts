import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TURN_LANES_BYTES_MAX, TURN_LANES_MAX } from '@hopline/task';
import {
  type Agent,
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
import { WHOLE_TEXT_UNITS_MAX } from './limits.ts';
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

test('an agent that passes on another server’s text may declare that it repeats text', () => {
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

test('an agent may be a hand-written iterator whose `return` throws or returns no promise', async () => {
  const ends = [
    () => ({ done: true }),
    () => {
      throw new Error('x');
    },
  ];
  for (const end of ends) {
    const events = ['a', 'b'].map(text => ({ type: 'text', text }));
    const iterator = { next: async () => ({ done: events.length === 0, value: events.shift() }), return: end };
    const run = () => ({ [Symbol.asyncIterator]: () => iterator });
    const agent = { description: 'd', skills: async () => [], run, close: async () => {} } as unknown as Agent;
    const played = await playTurn(agent, 'x');
    assert.deepEqual([played.text, played.end.state, played.cause], ['ab', 'TASK_STATE_COMPLETED', undefined]);
  }
});

test('an abort ends the turn even if the agent ignores the signal', async () => {
  const stop = new AbortController();
  const agent = define(async function* () {
    yield 'a';
    stop.abort();
    await new Promise(() => {});
  });
  const { text, end } = await playTurn(agent, 'x', { signal: stop.signal });
  assert.equal(end.state, 'TASK_STATE_CANCELED');
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
  await failsWith(yields(tool('x', {}, () => 1)), /^write yield\* before tool\(…\), not await, and not yield/);
  await failsWith(
    () => ({ [Symbol.asyncIterator]: () => ({ next: () => ({ value: tool('x', {}, () => 1) }) }) }),
    /^run yielded a generator/,
  );
  await failsWith(yields(7), /^run yielded a number;/);
  await failsWith(yields({ text: 'secret' }), /^run yielded an object;/);
  await failsWith(yields(['secret']), /^run yielded an array;/);
  await failsWith(yields({ type: 'text', text: 7 }), /^run yielded text that is a number$/);
  await failsWith(yields({ type: 'artifact', artifact: {} }), /^run yielded an artifact whose parts is undefined, not/);
  await failsWith(
    yields({ type: 'artifact', artifact: { parts: ['secret'] } }),
    /^run yielded an artifact whose parts\[0\] is a string; write/,
  );
  await failsWith(yields({ type: 'auth-required' }), /^run yielded auth-required without a message/);
  await failsWith(yields({ type: 'progress', text: 'secret' }), /^run yielded progress without a message/);
  await failsWith(yields({ type: 'tool', tool: 'x' }), /^run yielded a tool event without phase/);
  await failsWith(async function* () {
    yield notice('');
  }, /^notice is empty$/);
  await failsWith(async function* () {
    yield artifact({ name: 'x' });
  }, /^artifact: give exactly one of text, bytes and parts$/);
  await failsWith(async function* () {
    yield data(() => 'secret');
  }, /^data: a function cannot be written as JSON$/);
});

test('an event that run returns makes the turn fail, because it has no effect; a yielded one ends the turn', async () => {
  const endOf = async (run: () => AsyncIterable<unknown, unknown, undefined>) =>
    (await playTurn(define(run as AgentDefinition['run']), 'x')).end;
  const returned = (value: unknown) =>
    async function* () {
      yield 'a';
      return value;
    };
  for (const event of [failed('declined'), needsInput('Who?'), artifact({ name: 'a', text: 'b' }), done()]) {
    const { state, reason } = await endOf(returned(event));
    assert.equal(state, 'TASK_STATE_FAILED');
    assert.match(
      reason ?? '',
      /^run returned an event, which has no effect; write yield before it: return yield needsInput\(…\), for example$/,
    );
  }
  const silent = { next: async () => ({ done: true as const, value: 'secret' }) };
  const { reason } = await endOf(() => ({ [Symbol.asyncIterator]: () => silent }));
  assert.equal(reason, 'run returned a string and yielded nothing; write yield before the string');
  const asks = await endOf(async function* () {
    return yield needsInput('Who?');
  });
  assert.equal(asks.state, 'TASK_STATE_INPUT_REQUIRED');
  for (const value of [undefined, '', 'text of a helper', 7, { id: 1 }])
    assert.equal((await endOf(returned(value))).state, 'TASK_STATE_COMPLETED');
});

test('an editor marks a run that returns an event or a string', () => {
  // @ts-expect-error
  define(async function* () {
    yield 'a';
    return failed('declined');
  });
  // @ts-expect-error
  define(async function* () {
    yield 'a';
    return 'text';
  });
  define(async function* (turn) {
    if (turn.text === '') return yield needsInput('Who?');
    if (turn.attempt > 1) return;
    yield 'a';
  });
});

test('a part that no client could read makes the turn fail and is named in the reason; bytes become a file', async () => {
  const reasonOf = async (parts: unknown) => {
    const { end } = await playTurn(
      define(async function* () {
        yield artifact({ name: 'a.bin', parts: parts as never });
      }),
      'x',
    );
    return end.reason;
  };
  const file03 = { kind: 'file', file: { bytes: 'eA==', name: 'a.bin' } };
  const cyclic: Record<string, unknown> = {};
  cyclic.self = cyclic;
  const faults: [unknown, RegExp][] = [
    [[{ text: 'a' }, { raw: Buffer.from('x') }], /^artifact: parts\[1\]\.raw is bytes; write bytes\.toString\('base64'\)$/],
    [[file03], /^artifact: parts\[0\] has the form of A2A 0\.3; write \{ raw, filename, mediaType \}/],
    [[{ url: 7 }], /^artifact: parts\[0\]\.url is a number, not a string$/],
    [[{ text: 'a', mediaType: 7 }], /^artifact: parts\[0\]\.mediaType is a number, not a string$/],
    [[{ text: 'a', metadata: 'm' }], /^artifact: parts\[0\]\.metadata is a string, not an object$/],
    [[{}], /^artifact: parts\[0\] has no content: give one of text, raw, url and data$/],
    [[{ text: 'a', url: 'b' }], /^artifact: parts\[0\] has text and url: give one of/],
    [new Array(1), /^artifact: parts\[0\] is undefined; write \{ text \}/],
    [[{ data: { big: 10n } }], /^artifact: parts\[0\]\.data cannot be written as JSON$/],
    [[{ data: cyclic }], /^artifact: parts\[0\]\.data cannot be written as JSON$/],
    [{ text: 'a' }, /^artifact: parts is an object, not an array$/],
  ];
  for (const [parts, reason] of faults) assert.match((await reasonOf(parts)) ?? '', reason);
  const bytes = new Uint8Array([0, 255, 16]).subarray(1);
  const { artifacts, end } = await playTurn(
    define(async function* () {
      yield artifact({ name: 'a.png', bytes, mediaType: 'image/png' });
      yield artifact({ name: 'parts', parts: [{ data: null }, { kind: 'text', text: 'as in 0.3' } as never] });
    }),
    'x',
  );
  assert.equal(end.state, 'TASK_STATE_COMPLETED');
  const [png] = artifacts;
  assert.deepEqual(png?.parts, [{ raw: '/xA=', filename: 'a.png', mediaType: 'image/png' }]);
  assert.equal(artifacts.length, 2);
  for (const spec of [{ bytes: 'x' }, { bytes, text: 'x' }, { text: 'x', mediaType: 'text/csv' }])
    assert.throws(() => artifact({ name: 'a', ...spec } as never), { name: 'AgentMisuse' });
});

test('an agent that is not made by defineAgent fails with an event that the log could not store', async () => {
  const agent: Agent = {
    description: 'd',
    skills: async () => [],
    close: async () => {},
    async *run() {
      yield { type: 'text', text: 'before' };
      const parts = [{ raw: Buffer.from('x') as never }];
      yield { type: 'artifact', artifact: { artifactId: 'a', parts }, append: false, lastChunk: true };
    },
  };
  const { end, text, cause } = await playTurn(agent, 'x');
  assert.deepEqual([end.reason, text], ['the agent sent an event that cannot be read', 'before']);
  assert.match(String(cause), /an input of kind "artifact" has a member of a wrong type/);
});

test('an artifact that has ended stays: the next one with its name or id is a new artifact', async () => {
  const { artifacts, end } = await playTurn(
    define(async function* () {
      yield artifact({ name: 'a.md', text: 'one' });
      yield artifact({ name: 'a.md', text: 'two' });
      yield artifact({ name: 'a.md', text: 'three', append: true });
      yield artifact({ name: 'draft', text: 'first', last: false });
      yield artifact({ name: 'draft', text: 'second', last: false });
      yield artifact({ name: 'draft', text: '!', append: true });
      yield data(1);
      yield data(2);
    }),
    'x',
  );
  assert.equal(end.state, 'TASK_STATE_COMPLETED');
  assert.deepEqual(
    artifacts.map(({ name, text, parts }) => [name, text || parts[0]?.data]),
    [
      ['a.md', 'one'],
      ['a.md', 'two'],
      ['a.md', 'three'],
      ['draft', 'second!'],
      ['data', 1],
      ['data', 2],
    ],
  );
});

test('a turn with too many long text artifacts fails with that reason, as in a cluster; short texts and files do not count', async () => {
  const play = async (count: number, content: object) =>
    await playTurn(
      define(async function* () {
        yield 'ok';
        for (let n = 0; n < count; n += 1) yield artifact({ name: `a${n}`, ...content } as never);
      }),
      'x',
    );
  const texts = await play(TURN_LANES_MAX, { text: 'x'.repeat(WHOLE_TEXT_UNITS_MAX + 1) });
  assert.match(texts.end.reason ?? '', /^the agent made more than 128 texts and artifacts of text in one turn$/);
  assert.deepEqual([texts.text, texts.artifacts.length], ['ok', TURN_LANES_MAX - 1]);
  assert.equal((await play(TURN_LANES_MAX - 1, { text: 'x', last: false })).end.state, 'TASK_STATE_COMPLETED');
  for (const content of [{ bytes: new Uint8Array(1) }, { text: 'x' }]) {
    const files = await play(2 * TURN_LANES_MAX, content);
    assert.deepEqual([files.end.state, files.artifacts.length], ['TASK_STATE_COMPLETED', 2 * TURN_LANES_MAX]);
  }
  const huge = await playTurn(
    define(async function* () {
      const metadata = { text: 'x'.repeat(TURN_LANES_BYTES_MAX) };
      yield artifact({ name: 'a', text: 'x', metadata, last: false });
    }),
    'x',
  );
  assert.match(huge.end.reason ?? '', /^names and metadata of the streamed artifacts have more than/);
});

test('options that are undefined count as absent', async () => {
  const maybe: string | undefined = undefined as string | undefined;
  assert.deepEqual(artifact({ name: 'a', text: 'b', id: maybe, description: maybe }), artifact({ name: 'a', text: 'b' }));
  assert.deepEqual(data(1, { name: maybe, description: maybe }), data(1));
  assert.deepEqual(failed('a', { retryable: undefined }), failed('a'));
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
