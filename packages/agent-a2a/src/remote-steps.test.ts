import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject, RemoteResponse } from '@hopline/a2a';
import { AgentMisuse, type BegunStep, type StepOutcome, type TurnSteps } from '@hopline/agent';
import { AGENT_UNREACHABLE, AgentFault } from './agent-fault.ts';
import { RemoteSteps, STEPS_EXTENSION_URI } from './remote-steps.ts';

const OK: RemoteResponse = { unknown: 'unknown kind' };

/** Steps of an attempt, with outcomes that earlier ones have stored. */
class Stored implements TurnSteps {
  readonly calls: string[] = [];
  readonly #earlier: StepOutcome[];

  constructor(...earlier: StepOutcome[]) {
    this.#earlier = earlier;
  }

  async begin(step: string): Promise<BegunStep> {
    this.calls.push(`begin ${step}`);
    if (step === 'other') throw new AgentMisuse('step other comes where step charge is stored');
    const outcome = this.#earlier.shift();
    return { key: `key of ${step}`, ...(outcome && { outcome }) };
  }

  async end(outcome: StepOutcome): Promise<void> {
    this.calls.push(`end ${JSON.stringify(outcome)}`);
  }
}

function started(steps: TurnSteps | undefined, send: (answer: JsonObject) => Promise<RemoteResponse> = async () => OK) {
  const answers: JsonObject[] = [];
  const faults: AgentFault[] = [];
  let seen = Promise.withResolvers<void>();
  const remote = new RemoteSteps({
    steps,
    send: async answer => {
      answers.push(answer);
      seen.resolve();
      return await send(answer);
    },
    onFault: fault => {
      faults.push(fault);
      seen.resolve();
    },
  });
  const ask = async (request: unknown) => {
    seen = Promise.withResolvers();
    remote.read({ [STEPS_EXTENSION_URI]: request });
    await seen.promise;
  };
  return { remote, ask, answers, faults };
}

test('a step is answered with its key, and again once its outcome is stored', async () => {
  const stored = new Stored();
  const { remote, ask, answers, faults } = started(stored);
  await ask({ id: '1', steps: ['charge'] });
  await ask({ id: '2', steps: ['charge'], outcome: '{"value":{"times":1}}' });
  // A poll returns the newest request again.
  remote.read({ [STEPS_EXTENSION_URI]: { id: '2', steps: ['charge'] } });
  remote.read(undefined);
  remote.read({ other: {} });
  remote.read({ [STEPS_EXTENSION_URI]: null });
  await ask({ id: '3', steps: ['charge', 'send'] });
  await ask({ id: '4', steps: ['charge', 'send'], outcome: '{"error":{"name":"E","message":"m"}}' });
  assert.deepEqual(answers, [{ id: '1', key: 'key of charge' }, { id: '2' }, { id: '3', key: 'key of send' }, { id: '4' }]);
  assert.deepEqual(stored.calls, [
    'begin charge',
    'end {"value":{"times":1}}',
    'begin send',
    'end {"error":{"name":"E","message":"m"}}',
  ]);
  assert.deepEqual(faults, []);
});

test('the outcome of an earlier attempt is returned and is not stored again', async () => {
  const stored = new Stored({ value: 7 });
  const { ask, answers } = started(stored);
  await ask({ id: '1', steps: ['charge'] });
  await ask({ id: '2', steps: ['charge', 'send'] });
  assert.deepEqual(answers, [
    { id: '1', key: 'key of charge', outcome: { value: 7 } },
    { id: '2', key: 'key of send' },
  ]);
  assert.deepEqual(stored.calls, ['begin charge', 'begin send']);
});

test('an attempt that continues an earlier attempt’s run first reaches each of its steps', async () => {
  const stored = new Stored({ value: 7 });
  const { ask, answers } = started(stored);
  await ask({ id: '5', steps: ['charge', 'send'], outcome: '{"value":"sent"}' });
  assert.deepEqual(stored.calls, ['begin charge', 'begin send', 'end {"value":"sent"}']);
  assert.deepEqual(answers, [{ id: '5' }]);
});

test('an author’s error goes to the agent, even if steps cannot be stored', async () => {
  const { ask, answers } = started(new Stored());
  await ask({ id: '1', steps: ['other'] });
  const { ask: askWithout, answers: without } = started(undefined);
  await askWithout({ id: '1', steps: ['charge'] });
  assert.deepEqual(
    [...answers, ...without],
    [
      { id: '1', error: 'step other comes where step charge is stored' },
      { id: '1', error: 'this agent runs where steps cannot be stored' },
    ],
  );
});

for (const [name, requests] of Object.entries({
  'no object': ['charge'],
  'no steps': [{ id: '1', steps: [] }],
  'a name that is too long': [{ id: '1', steps: ['s'.repeat(129)] }],
  'an outcome that is not JSON': [{ id: '1', steps: ['charge'], outcome: '{' }],
  'an error without a name': [{ id: '1', steps: ['charge'], outcome: '{"error":{"message":"m"}}' }],
  'two steps at once': [
    { id: '1', steps: ['charge'] },
    { id: '2', steps: ['charge', 'send'] },
  ],
  'a step before the end of another': [{ id: '1', steps: ['charge', 'send'] }],
})) {
  test(`a request with ${name} ends the turn`, async () => {
    const { promise, resolve } = Promise.withResolvers<AgentFault>();
    const remote = new RemoteSteps({ steps: new Stored(), send: async () => OK, onFault: resolve });
    for (const request of requests) remote.read({ [STEPS_EXTENSION_URI]: request as JsonObject });
    const { retryable, word } = await promise;
    assert.deepEqual([retryable, word], [false, 'step_protocol']);
  });
}

test('an answer is repeated while the agent cannot be reached, and a refused one ends the turn as retryable', async () => {
  let tries = 0;
  const { promise, resolve } = Promise.withResolvers<AgentFault>();
  const remote = new RemoteSteps({
    steps: new Stored(),
    send: async () => {
      tries += 1;
      if (tries === 1) throw new AgentFault(AGENT_UNREACHABLE, true);
      return { error: { code: -32001, message: '', retryable: false } };
    },
    onFault: resolve,
  });
  remote.read({ [STEPS_EXTENSION_URI]: { id: '1', steps: ['charge'] } });
  const { message, retryable } = await promise;
  assert.deepEqual([tries, message, retryable], [2, 'the agent refused the answer to a step with error -32001', true]);
});
