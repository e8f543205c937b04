import assert from 'node:assert/strict';
import { type Duplex, duplexPair } from 'node:stream';
import { type TestContext, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { inspect } from 'node:util';
import {
  type Agent,
  type AgentDefinition,
  type AgentEvent,
  AgentLost,
  AgentMisuse,
  data,
  defineAgent,
  failed,
  notice,
  type StepOutcome,
  step,
  type Turn,
  type TurnSteps,
} from '@hopline/agent';
import { createLogger } from '@hopline/telemetry';
import { collect } from '../../../test/kit/collect.ts';
import { until } from '../../../test/kit/until.ts';
import { createCodeAgent, LOAD_MS_MAX } from './code-agent.ts';
import { CodeHost } from './code-host.ts';
import { CodeSession, HOST_SILENCE_MS_MAX, type HostLink, LOAD_SHOWN_MS, PING_MS } from './code-session.ts';
import { FRAME_BYTES_MAX, frameOf, STRUCTURE_MAX } from './frames.ts';
import { WINDOW_BYTES } from './protocol.ts';

const quiet = createLogger({ service: 'test', instance: 'test', level: 'silent' });

type Host = { link: HostLink; end: (code: number) => void; isStarted: () => boolean; isKilled: () => boolean };

/** A host without a process. Its code runs in the test, and the test provides the pipe. */
function hostOf(serve: (channel: Duplex, exit: (code: number) => void) => void): Host {
  const [channel, other] = duplexPair();
  const { promise: ended, resolve } = Promise.withResolvers<string>();
  let started = false;
  let killed = false;
  const end = (code: number) => {
    other.destroy();
    resolve(`exit code ${code}`);
  };
  serve(other, end);
  other.once('data', () => {
    started = true;
  });
  const kill = () => {
    killed = true;
    end(137);
  };
  return { link: { channel, ended, kill }, end, isStarted: () => started, isKilled: () => killed };
}

const honest = (agent: Agent) => hostOf((channel, exit) => void new CodeHost({ channel, exit, load: async () => agent }));

const LOADED = { k: 'loaded', description: 'd' };

/** A host that answers the load, and a turn with the given bytes. */
const hostile = (answer: (channel: Duplex, id: number) => void) =>
  hostOf(channel => {
    channel.on('error', () => {});
    channel.on('data', (chunk: Buffer) => {
      const text = chunk.toString('utf8');
      if (text.includes('"k":"load"')) channel.write(frameOf(JSON.stringify(LOADED)));
      const turn = /"k":"turn","id":(\d+)/.exec(text);
      if (turn !== null) answer(channel, Number(turn[1]));
    });
  });

async function agentOf(
  t: TestContext,
  hosts: Host[],
  { shown = [], ...more }: { shown?: unknown[]; loadMsMax?: number } = {},
): Promise<Agent> {
  const left = [...hosts];
  const agent = await createCodeAgent({
    code: { adapter: 'module', path: 'a.ts' },
    folder: '/',
    name: 'a',
    logger: quiet,
    showAuthor: error => shown.push(error),
    onSkipped: () => {},
    ...more,
    start: () => (left.shift() ?? assert.fail('no host is left')).link,
  });
  t.after(() => agent.close());
  return agent;
}

const defined = (run: AgentDefinition['run']) => defineAgent({ name: 'a', description: 'd', skills: ['one'], run });

function turnOf(more: Partial<Turn> = {}): Turn {
  const message = { messageId: 'm', role: 'ROLE_USER' as const, parts: [{ text: 'Ada' }] };
  const signal = new AbortController().signal;
  return { taskId: 't', contextId: 'c', message, metadata: {}, history: [], attempt: 1, trace: {}, signal, ...more };
}

async function loopTurns(count: number): Promise<void> {
  for (let n = 0; n < count; n += 1) await setImmediate();
}

async function eventsOf(agent: Agent, turn = turnOf()): Promise<unknown[]> {
  const events = await collect(agent.run(turn));
  return events;
}

test('a turn goes through the pipe: message, events in order, name, skills', async t => {
  const host = honest(
    defined(async function* (turn) {
      yield `Hello ${turn.text}`;
      yield notice('now');
      yield '!';
      yield failed('that is all');
    }),
  );
  const agent = await agentOf(t, [host]);
  assert.equal(agent.name, 'a');
  assert.deepEqual(
    (await agent.skills()).map(({ id }) => id),
    ['one'],
  );
  const events = (await eventsOf(agent)) as { type: string; text?: string }[];
  assert.deepEqual(
    events.map(({ type, text }) => text ?? type),
    ['Hello Ada', 'progress', '!', 'failed'],
  );
});

test('events of one turn of the event loop arrive as one batch', async t => {
  const tokens = Array.from({ length: 500 }, (_, n) => `${n} `);
  const host = honest(
    defined(async function* () {
      yield* tokens;
    }),
  );
  const agent = await agentOf(t, [host]);
  const batches: number[] = [];
  for await (const events of agent.runBatches!(turnOf())) batches.push(events.length);
  assert.deepEqual(batches, [500]);
});

test('code that yields faster than its events are taken waits', async t => {
  const token = 'x'.repeat(1_000);
  let yielded = 0;
  const host = honest(
    defined(async function* () {
      for (; yielded < 10_000; yielded += 1) yield token;
    }),
  );
  const agent = await agentOf(t, [host]);
  const events = agent.runBatches!(turnOf())[Symbol.asyncIterator]();
  let taken = ((await events.next()).value as unknown[]).length;
  await loopTurns(50);
  assert.ok(yielded * token.length < WINDOW_BYTES * 2, `${yielded} tokens are under way`);
  for (let step = await events.next(); step.done !== true; step = await events.next()) taken += step.value.length;
  assert.equal(taken, 10_000);
});

for (const { kind, between } of [
  { kind: 'text with pauses', between: async () => loopTurns(5) },
  { kind: 'text and other events', between: async () => notice('now') },
]) {
  test(`while its events are not taken, code that yields ${kind} sends no second frame above the window`, async t => {
    const text = 'x'.repeat(60_000);
    const whole = Math.ceil(WINDOW_BYTES / text.length);
    let yielded = 0;
    const host = honest(
      defined(async function* () {
        for (; yielded < 3 * whole; yielded += 1) {
          yield text;
          const event = await between();
          if (event !== undefined) yield event;
        }
      }),
    );
    const agent = await agentOf(t, [host]);
    const events = agent.runBatches!(turnOf())[Symbol.asyncIterator]();
    const texts = (batch: readonly AgentEvent[]) => batch.filter(({ type }) => type === 'text').length;
    let taken = texts((await events.next()).value);
    await until(() => yielded >= whole - 1);
    await loopTurns(50);
    for (let step = await events.next(); step.done !== true; step = await events.next()) taken += texts(step.value);
    assert.equal(taken, 3 * whole);
    assert.equal(host.isKilled(), false);
  });
}

test('an abort reaches the code with its reason, and ends the turn when the code has stopped', async t => {
  const stop = new AbortController();
  const seen: unknown[] = [];
  const host = honest(
    defined(async function* ({ signal }) {
      yield 'begun';
      try {
        await new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('stopped'))));
      } finally {
        seen.push(signal.reason);
      }
    }),
  );
  const agent = await agentOf(t, [host]);
  for await (const events of agent.runBatches!(turnOf({ signal: stop.signal }))) {
    assert.equal(events.length, 1);
    stop.abort('ended');
  }
  assert.deepEqual(seen, ['ended']);
});

test('an error whose members throw when they are read fails only its turn', async t => {
  class ApiError extends Error {
    get code(): string {
      return (undefined as unknown as { status: string }).status;
    }
  }
  const fails = () => {
    throw new Error('inner');
  };
  const noText = Object.defineProperty(new Error('a'), 'message', { value: Object.create(null) });
  const errors: [unknown, Partial<Error>][] = [
    [new ApiError('declined'), { name: 'Error', message: 'declined' }],
    [noText, { name: 'Error', message: '' }],
    [Object.assign(new Error('b'), { [inspect.custom]: fails }), { message: 'b' }],
    [Object.defineProperty(new Error('c'), 'stack', { get: fails }), { message: 'c' }],
    [new Proxy({}, { get: fails, getPrototypeOf: fails, ownKeys: fails }), {}],
    [null, { name: 'object' }],
  ];
  const host = honest(
    defined(async function* (turn) {
      const thrown = errors[Number(turn.text)];
      if (thrown === undefined) yield 'served';
      else throw thrown[0];
    }),
  );
  const agent = await agentOf(t, [host]);
  const play = (text: string) => eventsOf(agent, turnOf({ message: { messageId: 'm', role: 'ROLE_USER', parts: [{ text }] } }));
  for (const [index, [, expected]] of errors.entries()) {
    const thrown = await play(`${index}`).catch((error: unknown) => error);
    assert.ok(thrown instanceof Error && !(thrown instanceof AgentLost), `${index}`);
    for (const [name, value] of Object.entries(expected)) assert.equal(thrown[name as 'name'], value, `${index}`);
    assert.equal(typeof inspect(thrown), 'string');
  }
  assert.deepEqual(await play('next'), [{ type: 'text', text: 'served' }]);
  assert.ok(!host.isKilled());
});

test('what the code throws keeps its class; its text is for the author; a broken rule of the kit names the rule', async t => {
  const agent = await agentOf(t, [
    honest(
      defined(async function* ({ text }) {
        yield 'a';
        if (text === 'rule') yield 5 as unknown as string;
        throw new RangeError('a secret');
      }),
    ),
  ]);
  await assert.rejects(eventsOf(agent), { name: 'RangeError', stack: /code-agent\.test\.ts/ });
  const message = { messageId: 'm', role: 'ROLE_USER' as const, parts: [{ text: 'rule' }] };
  await assert.rejects(
    eventsOf(agent, turnOf({ message })),
    (error: Error) => error instanceof AgentMisuse && /a number/.test(error.message),
  );
});

test('turn.log and errors for the author reach the sub-agent', async t => {
  const lines: string[] = [];
  const shown: unknown[] = [];
  const write = (_: TemplateStringsArray) => void lines.push(_.join(''));
  const log = { debug: write, info: write, warn: write, error: write };
  const agent = await agentOf(t, [
    honest({
      description: 'd',
      skills: async () => [],
      close: async () => {},
      run: async function* (turn) {
        turn.log!.info`took ${3} rows`;
        turn.showError?.(new Error('for the author'));
        turn.remoteRunBegan?.({ run: 1 });
        yield { type: 'done' };
      },
    }),
  ]);
  const runs: unknown[] = [];
  await eventsOf(agent, turnOf({ log, showError: error => shown.push(error), remoteRunBegan: run => runs.push(run) }));
  assert.deepEqual([lines, shown.length, runs], [['took 3 rows'], 1, [{ run: 1 }]]);
});

test('a host that ends loses its turns as attempts, and the next one serves', async t => {
  const dying: Host = honest(
    defined(async function* () {
      yield 'last words';
      await setImmediate();
      dying.end(1);
      await new Promise(() => {});
    }),
  );
  const agent = await agentOf(t, [
    dying,
    honest(
      defined(async function* () {
        yield 'again';
      }),
    ),
  ]);
  const events: unknown[] = [];
  await assert.rejects(
    async () => {
      for await (const event of agent.run(turnOf())) events.push(event);
    },
    (error: unknown) => error instanceof AgentLost && error.word === 'code_ended',
  );
  assert.deepEqual(events, [{ type: 'text', text: 'last words' }]);
  assert.deepEqual(await eventsOf(agent), [{ type: 'text', text: 'again' }]);
});

test('a host that breaks the protocol is killed, and loses its turns', async t => {
  const frame = (value: unknown) => frameOf(JSON.stringify(value));
  const attacks: [string, (channel: Duplex, id: number) => void][] = [
    ['bytes that are not a frame', channel => channel.write(Buffer.alloc(64, 0xff))],
    ['no JSON', channel => channel.write(frameOf('{"k":'))],
    ['an unknown kind', channel => channel.write(frame({ k: 'login' }))],
    ['events of another turn', (channel, id) => channel.write(frame({ k: 'events', id: id + 1, events: [] }))],
    [
      'two steps at once',
      (channel, id) => {
        for (const name of ['one', 'two']) channel.write(frame({ k: 'step-begin', id, step: name }));
      },
    ],
    ['a step without a name', (channel, id) => channel.write(frame({ k: 'step-begin', id, step: '' }))],
    ['an outcome that is a text', (channel, id) => channel.write(frame({ k: 'step-end', id, outcome: 'x' }))],
    ['an answer to no question', (channel, id) => channel.write(frame({ k: 'answer', id }))],
    [
      'more than the window',
      (channel, id) => {
        for (let n = 0; n < 3; n += 1) channel.write(frame({ k: 'events', id, events: ['x'.repeat(WINDOW_BYTES)] }));
      },
    ],
  ];
  for (const [what, attack] of attacks) {
    const host = hostile(attack);
    const agent = await agentOf(t, [
      host,
      honest(
        defined(async function* () {
          yield 'well';
        }),
      ),
    ]);
    // Nothing takes the events, as while the log is slow.
    const steps: TurnSteps = { begin: () => new Promise(() => {}), end: () => new Promise(() => {}) };
    const events = agent.runBatches!(turnOf({ steps }))[Symbol.asyncIterator]();
    const lost = (error: unknown) => error instanceof AgentLost && error.word === 'code_violation';
    await assert.rejects(async () => {
      for (let step = await events.next(); step.done !== true; step = await events.next())
        await new Promise(resolve => setTimeout(resolve, 10));
    }, lost);
    assert.ok(host.isKilled(), what);
    assert.deepEqual(await eventsOf(agent), [{ type: 'text', text: 'well' }], what);
  }
});

test('an event that is too large for the pipe fails its turn with the limit and a way out', async t => {
  const play = async (chunk: () => string | AgentEvent) => {
    const host = honest(
      defined(async function* () {
        yield chunk();
      }),
    );
    const agent = await agentOf(t, [host]);
    await eventsOf(agent);
  };
  await assert.rejects(
    play(() => 'x'.repeat(FRAME_BYTES_MAX)),
    /an event of more than 17825536 bytes of JSON: send it in parts, or as a URL/,
  );
  await assert.rejects(
    play(() => data(Array.from({ length: STRUCTURE_MAX + 2 }, () => 0))),
    /an event with more than 262144 values: send it as a file \(bytes\)/,
  );
});

test('a malformed event fails only its turn', async t => {
  const host = hostile((channel, id) => {
    channel.write(frameOf(JSON.stringify({ k: 'events', id, events: [{ type: 'text', text: 5 }] })));
    channel.write(frameOf(JSON.stringify({ k: 'over', id })));
  });
  const agent = await agentOf(t, [host]);
  await assert.rejects(eventsOf(agent), AgentMisuse);
  assert.ok(!host.isKilled());
});

test('steps go through the pipe: outcomes of an earlier attempt, new outcomes, and the errors of both', async t => {
  const ended: StepOutcome[] = [];
  const steps: TurnSteps = {
    begin: async name => {
      if (name === 'other') throw new AgentMisuse('step other runs where attempt 1 stored step one');
      return { key: `key of ${name}`, ...(name === 'known' && { outcome: { value: [1] } }) };
    },
    end: async outcome => void ended.push(outcome),
  };
  const seen: unknown[] = [];
  const code = defined(async function* () {
    seen.push(yield* step('known', () => assert.fail('it is stored')));
    seen.push(yield* step('new', ({ key }) => ({ key })));
    try {
      yield* step('broken', () => {
        throw new RangeError('too far');
      });
    } catch (error) {
      seen.push((error as Error).name);
    }
    yield* step('other', () => assert.fail('it is refused'));
  });
  const agent = await agentOf(t, [honest(code)]);
  await assert.rejects(eventsOf(agent, turnOf({ steps })), (error: unknown) => {
    assert.ok(error instanceof AgentMisuse);
    assert.equal(error.message, 'step other runs where attempt 1 stored step one');
    return true;
  });
  assert.deepEqual(seen, [[1], { key: 'key of new' }, 'RangeError']);
  assert.deepEqual(ended, [{ value: { key: 'key of new' } }, { error: { name: 'RangeError', message: 'too far' } }]);
});

test('a step that waits for its answer ends with its turn', async t => {
  const stop = new AbortController();
  const steps: TurnSteps = { begin: () => new Promise(() => {}), end: () => new Promise(() => {}) };
  let ended = '';
  const code = defined(async function* () {
    try {
      yield* step('waits', () => 1);
    } catch (error) {
      ended = (error as Error).message;
      throw error;
    }
  });
  const agent = await agentOf(t, [honest(code)]);
  setTimeout(() => stop.abort(), 50);
  assert.deepEqual(await eventsOf(agent, turnOf({ steps, signal: stop.signal })), []);
  assert.equal(ended, 'the turn is over');
});

test('a run that the log cannot store makes its turn fail; a turn that reports runs endlessly is ended', async t => {
  const run = (channel: Duplex, id: number) => channel.write(frameOf(JSON.stringify({ k: 'run', id, run: 1 })));
  const refusing = hostile((channel, id) => {
    run(channel, id);
    channel.write(frameOf(JSON.stringify({ k: 'over', id })));
  });
  const remoteRunBegan = () => {
    throw new RangeError('too deep');
  };
  await assert.rejects(eventsOf(await agentOf(t, [refusing]), turnOf({ remoteRunBegan })), RangeError);
  assert.ok(!refusing.isKilled());
  const flooding = hostile((channel, id) => {
    for (let n = 0; n < 2_000; n += 1) run(channel, id);
  });
  const agent = await agentOf(t, [flooding, honest(defined(async function* () {}))]);
  await assert.rejects(eventsOf(agent), (error: unknown) => error instanceof AgentLost && error.word === 'code_violation');
});

test('a host whose event loop is blocked is killed', async t => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const host = hostile(() => {});
  const agent = await agentOf(t, [host, honest(defined(async function* () {}))]);
  const lost = assert.rejects(eventsOf(agent), (error: unknown) => error instanceof AgentLost && error.word === 'code_silent');
  await setImmediate();
  t.mock.timers.tick(HOST_SILENCE_MS_MAX);
  assert.ok(!host.isKilled());
  t.mock.timers.tick(PING_MS);
  await lost;
  assert.ok(host.isKilled());
});

/** A host whose code does not load. */
const hanging = () => hostOf(channel => void channel.on('error', () => {}).resume());

/** A host whose code loads at once, and whose process ends with its first turn. */
const mortal = () => {
  const host: Host = honest(
    defined(async function* () {
      host.end(1);
      await new Promise(() => {});
    }),
  );
  return host;
};

test('a host that has not loaded its code within LOAD_MS_MAX is killed', async t => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const host = hanging();
  const shown: unknown[] = [];
  const showAuthor = (error: unknown) => void shown.push(error);
  const session = new CodeSession(host.link, { logger: quiet, name: 'a', showAuthor, onSkipped: () => {} });
  const lost = assert.rejects(session.load({ adapter: 'module', path: 'a.ts' }, '/', LOAD_MS_MAX), (error: unknown) => {
    assert.ok(error instanceof AgentLost && error.word === 'code_not_loaded');
    assert.equal(error.message, "the process of the agent's code did not load a.ts within 300 s (loadMsMax)");
    return true;
  });
  t.mock.timers.tick(LOAD_SHOWN_MS);
  assert.deepEqual(shown, ['a.ts has been loading for 10 s; its process is ended after 300 s (loadMsMax)']);
  t.mock.timers.tick(LOAD_MS_MAX - LOAD_SHOWN_MS - 1);
  assert.ok(!host.isKilled());
  t.mock.timers.tick(1);
  await lost;
  assert.ok(host.isKilled());
});

test('code that hangs while reloading is started again; until it runs, no work is taken, and the author reads why', async t => {
  const shown: unknown[] = [];
  const second = hanging();
  const third = honest(
    defined(async function* () {
      yield 'well';
    }),
  );
  const agent = await agentOf(t, [mortal(), second, third], { shown, loadMsMax: 1_000 });
  const gate = agent.gate!;
  const seen: boolean[] = [gate.isOpen];
  gate.listen(() => seen.push(gate.isOpen));
  await assert.rejects(eventsOf(agent), AgentLost);
  assert.deepEqual(await eventsOf(agent), [{ type: 'text', text: 'well' }]);
  assert.ok(second.isKilled());
  assert.deepEqual(seen, [true, false, true]);
  assert.deepEqual(shown, ["the process of the agent's code did not load a.ts within 1 s (loadMsMax); it starts again"]);
});

test('if an agent closes while its code reloads, the host is killed', async t => {
  const second = hanging();
  const agent = await agentOf(t, [mortal(), second]);
  await assert.rejects(eventsOf(agent), AgentLost);
  await until(() => second.isStarted(), 'the second host');
  await agent.close();
  assert.ok(second.isKilled());
});

test('an agent whose code does not load at the first start is refused with a sentence', async t => {
  const host = hanging();
  await assert.rejects(
    agentOf(t, [host], { loadMsMax: 20 }),
    /^AgentLost: the process .* did not load a.ts within 0.02 s \(loadMsMax\)$/,
  );
  assert.ok(host.isKilled());
});

test('the author reads that an uncaught error has ended the process', async t => {
  const shown: unknown[] = [];
  const host = hostile((channel, _id) => channel.end(frameOf(JSON.stringify({ k: 'crashed', text: 'Error: floating' }))));
  const agent = await agentOf(t, [host, honest(defined(async function* () {}))], { shown });
  await assert.rejects(eventsOf(agent), AgentLost);
  assert.deepEqual(
    shown.map(one => (typeof one === 'string' ? one : inspect(one))),
    ['Error: floating', 'nothing caught this error, so it has ended the process of the code; the turns that ran there run again'],
  );
});
