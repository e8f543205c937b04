import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { until } from '../../../test/kit/until.ts';
import type { Change, KeyValue } from './key-value.ts';
import { AGENT_REMEMBERED_MS, AGENT_SILENCE_MS_MAX, LiveAgents } from './live-agents.ts';
import type { AgentRegistration } from './log.ts';
import { createMemoryLog } from './memory/memory-log.ts';

const skill = (id: string) => ({ id, name: id, description: id, tags: [] });
const agent = (name: string, ...ids: string[]): AgentRegistration => ({
  name,
  description: name,
  url: '',
  skills: ids.map(skill),
  heartbeat: 1,
});

/** A followed registry, with a clock that the test sets. */
async function followedAgents(t: TestContext) {
  const log = createMemoryLog();
  const stop = new AbortController();
  t.after(() => stop.abort());
  const clock = { now: 0 };
  const directory = new LiveAgents(() => clock.now);
  await directory.follow(log.agents, stop.signal, error => assert.fail(String(error)));
  return { log, clock, directory };
}

test('an agent without heartbeats is not listed until its next one', async t => {
  const log = createMemoryLog();
  const stop = new AbortController();
  t.after(() => stop.abort());
  let now = 0;
  const directory = new LiveAgents(() => now);
  await log.agents.put('a', agent('a', 'version'));
  await directory.follow(log.agents, stop.signal, error => assert.fail(String(error)));
  now = AGENT_SILENCE_MS_MAX;
  assert.equal(directory.list().length, 1);
  now = AGENT_SILENCE_MS_MAX + 1;
  assert.equal(directory.list().length, 0);
  assert.deepEqual(
    directory.all().map(({ name, isLive }) => [name, isLive]),
    [['a', false]],
  );
  assert.equal(directory.msSinceSeen(), AGENT_SILENCE_MS_MAX + 1);
  await log.agents.put('a', agent('a', 'version'));
  await until(() => directory.list().length === 1);
});

test('an agent that is silent counts as seen until its last heartbeat is too old', async t => {
  const { log, clock, directory } = await followedAgents(t);
  await log.agents.put('a.1', agent('a'));
  await until(() => directory.isLive('a'));
  clock.now = AGENT_SILENCE_MS_MAX + 1;
  await log.agents.put('b.1', agent('b'));
  await until(() => directory.isLive('b'));
  clock.now += 100;
  const seen = (ms: number) => directory.seenWithin(ms).map(({ name, isLive }) => [name, isLive]);
  assert.deepEqual(seen(AGENT_SILENCE_MS_MAX + 102), [
    ['a', false],
    ['b', true],
  ]);
  assert.deepEqual(seen(AGENT_SILENCE_MS_MAX + 101), [['b', true]]);
});

test('an agent that stopped gracefully counts as seen for the same time, even after the watch was lost', async t => {
  const log = createMemoryLog();
  const stop = new AbortController();
  t.after(() => stop.abort());
  const lost = Promise.withResolvers<void>();
  const registry = {
    ...log.agents,
    async *watch(signal: AbortSignal): AsyncGenerator<Change<AgentRegistration>, void> {
      let isLost = false;
      void lost.promise.then(() => {
        isLost = true;
      });
      for await (const change of log.agents.watch(signal)) {
        yield change;
        if (isLost) return;
      }
    },
  } as KeyValue<AgentRegistration>;
  let now = 0;
  const directory = new LiveAgents(() => now);
  await directory.follow(registry, stop.signal, error => assert.fail(String(error)));
  await log.agents.put('a.1', agent('a'));
  await until(() => directory.isLive('a'));
  now = 200;
  await log.agents.delete('a.1');
  await until(() => !directory.isLive('a'));
  const seen = () => directory.seenWithin(201).map(({ name, isLive }) => [name, isLive]);
  assert.deepEqual(seen(), [['a', false]]);
  assert.deepEqual(directory.seenWithin(200), []);
  lost.resolve();
  await lost.promise;
  await log.agents.put('b.1', agent('b'));
  await until(() => directory.isLive('b'));
  assert.deepEqual(seen(), [
    ['a', false],
    ['b', true],
  ]);
});

test('an agent that has left is dropped, so that memory does not grow with every agent ever seen', async t => {
  const { log, clock, directory } = await followedAgents(t);
  const seen = () => directory.seenWithin(Number.POSITIVE_INFINITY).map(({ name }) => name);
  await log.agents.put('build-1.a', agent('build-1'));
  await log.agents.delete('build-1.a');
  await log.agents.put('lasting.a', agent('lasting'));
  await until(() => seen().length === 2);
  clock.now = AGENT_REMEMBERED_MS;
  await log.agents.put('lasting.a', agent('lasting'));
  await until(() => seen().length === 1);
  assert.deepEqual(seen(), ['lasting']);
});

test('the time since the newest heartbeat counts from the start of the process, and includes agents that stopped gracefully', async t => {
  const { log, clock, directory } = await followedAgents(t);
  clock.now = 300;
  assert.equal(directory.msSinceSeen(), 300);
  await log.agents.put('a', agent('a', 'version'));
  await until(() => directory.list().length === 1);
  clock.now = 800;
  await log.agents.delete('a');
  await until(() => directory.all().length === 0);
  assert.equal(directory.msSinceSeen(), 500);
});

test('a lost registry watch is opened again; a first read that fails rejects', async t => {
  const log = createMemoryLog();
  const stop = new AbortController();
  t.after(() => stop.abort());
  await log.agents.put('a', agent('a', 'version'));
  let lost = Promise.withResolvers<void>();
  const errors: unknown[] = [];
  const flaky = {
    ...log.agents,
    async *watch(signal: AbortSignal): AsyncGenerator<Change<AgentRegistration>, void> {
      for await (const change of log.agents.watch(signal)) {
        yield change;
        if (change.type === 'ready' && errors.length === 0) {
          await lost.promise;
          throw new Error('gone');
        }
      }
    },
  } as KeyValue<AgentRegistration>;
  const directory = new LiveAgents(() => 0);
  await directory.follow(flaky, stop.signal, error => errors.push(error));
  await log.agents.delete('a');
  await log.agents.put('b', agent('b', 'logs'));
  lost.resolve();
  await until(() => directory.list()[0]?.name === 'b' && directory.list().length === 1);
  assert.equal(errors.length, 1);
  lost = Promise.withResolvers();
  const dead = { ...log.agents, watch: () => assert.fail('no leader') } as unknown as KeyValue<AgentRegistration>;
  await assert.rejects(
    new LiveAgents(() => 0).follow(dead, stop.signal, () => stop.abort()),
    /no leader/,
  );
});

test('an agent is live while one of its instances is; the live instance with the newest heartbeat describes it', async t => {
  const { log, clock, directory } = await followedAgents(t);
  const heartbeat = (instance: string, version: string, at: number) =>
    log.agents.put(`a.${instance}`, { ...agent('a', version), heartbeat: at });
  const seen = () => directory.all().map(({ name, isLive, skills }) => [name, isLive, skills[0]?.id]);
  await heartbeat('old', 'v1', 10);
  await heartbeat('new', 'v2', 20);
  await until(() => seen()[0]?.[2] === 'v2');
  assert.deepEqual(seen(), [['a', true, 'v2']]);
  await log.agents.delete('a.new');
  await until(() => seen()[0]?.[2] === 'v1');
  assert.deepEqual(seen(), [['a', true, 'v1']]);
  await heartbeat('new', 'v2', 30);
  await until(() => seen()[0]?.[2] === 'v2');
  clock.now = AGENT_SILENCE_MS_MAX + 1;
  await heartbeat('old', 'v1', 25);
  await until(() => seen()[0]?.[1] === true);
  assert.deepEqual(seen(), [['a', true, 'v1']], 'the instance with the newer heartbeat is silent');
});

test('a malformed entry, or one with the name of another agent, is not listed', async t => {
  const log = createMemoryLog();
  const stop = new AbortController();
  t.after(() => stop.abort());
  const directory = new LiveAgents(() => 0);
  const registration = agent('argocd', 'sync');
  await log.agents.put('argocd.1', registration);
  const { tags: _tags, ...untagged } = skill('sync');
  const malformed: unknown[] = [
    null,
    'argocd',
    { ...registration, skills: undefined },
    { ...registration, skills: [null] },
    { ...registration, skills: [untagged] },
    { ...registration, skills: [{ ...skill('sync'), tags: [1] }] },
    { ...registration, skills: [{ ...skill('sync'), examples: 'sync' }] },
    { ...registration, description: undefined },
    { ...registration, url: undefined },
    { ...registration, heartbeat: '1' },
    { ...registration, description: 'No calendar has its time.', heartbeat: 8.64e15 + 1 },
    { ...registration, description: 'Without a time.', heartbeat: 1e20 },
  ];
  for (const [index, entry] of malformed.entries()) await log.agents.put(`argocd.m${index}`, entry as AgentRegistration);
  // NATS lets each agent write only keys with its own name.
  await log.agents.put('other.1', { ...registration, description: 'Not of argocd.', heartbeat: 2 });
  await directory.follow(log.agents, stop.signal, error => assert.fail(String(error)));
  assert.deepEqual(
    directory.list().map(({ name, description, skills }) => [name, description, skills.map(({ id }) => id)]),
    [['argocd', 'argocd', ['sync']]],
  );
});
