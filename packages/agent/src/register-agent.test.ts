import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { test } from 'node:test';
import type { AgentRegistration, Log } from '@hopline/log';
import { createMemoryLog } from '@hopline/log/memory';
import { until } from '../../../test/kit/until.ts';
import {
  DEAD_INSTANCE_MS,
  ENTRY_DESCRIPTION_CHARS_MAX,
  EXAMPLE_CHARS_MAX,
  EXAMPLES_MAX,
  registerAgent,
  SKILL_NAME_CHARS_MAX,
  SKILLS_MAX,
  TAG_CHARS_MAX,
  TAGS_MAX,
} from './register-agent.ts';
import { quiet } from './task-log.test-kit.ts';

type Options = Parameters<typeof registerAgent>[0];
type Registration = {
  signal: AbortSignal;
  /** The entry of the first heartbeat. */
  first: Promise<AgentRegistration>;
  stop(): Promise<void>;
};

/** Registers the agent `mine`, with a heartbeat each millisecond. */
function registerMine(log: Log, agent: Partial<Options['agent']>, more: Partial<Options> = {}): Registration {
  const stop = new AbortController();
  const { promise: first, resolve } = Promise.withResolvers<AgentRegistration>();
  const registered = registerAgent({
    log,
    name: 'mine',
    agent: { description: 'Mine.', skills: async () => [], run: async function* () {}, close: async () => {}, ...agent },
    url: 'http://127.0.0.1:1/',
    skills: [],
    isDefault: false,
    logger: quiet,
    signal: stop.signal,
    heartbeatMs: 1,
    onRegistered: resolve,
    ...more,
  });
  return {
    signal: stop.signal,
    first,
    stop: () => {
      stop.abort();
      return registered;
    },
  };
}

/** Resolves after the given number of heartbeats. */
async function register(log: Log, heartbeats: number): Promise<Registration> {
  const reached = Promise.withResolvers<void>();
  let count = 0;
  const onRegistered = () => {
    count += 1;
    if (count === heartbeats) reached.resolve();
  };
  const registration = registerMine(log, {}, { isDefault: true, onRegistered });
  await reached.promise;
  return registration;
}

test('a registered agent has one listener on its signal, not one for each heartbeat, and its entry marks a default agent', {
  timeout: 120_000,
}, async () => {
  const log = createMemoryLog();
  const { signal, stop } = await register(log, 20);
  assert.equal((await log.agents.under('mine'))[0]?.value.default, true);
  const listeners = getEventListeners(signal, 'abort').length;
  await stop();
  // The first wait for skills may still have its own listener.
  assert.ok(listeners <= 2, `${listeners} listeners`);
  await log.close();
});

test('an instance that stops removes its own entry and no others', { timeout: 120_000 }, async () => {
  const log = createMemoryLog();
  const [first, second] = [await register(log, 1), await register(log, 1)];
  assert.equal((await log.agents.under('mine')).length, 2);
  await first.stop();
  assert.equal((await log.agents.under('mine')).length, 1);
  await second.stop();
  assert.deepEqual(await log.agents.under('mine'), []);
  await log.close();
});

test('an agent whose skills are malformed is registered without them, and its fault is reported', {
  timeout: 120_000,
}, async () => {
  const log = createMemoryLog();
  const faults: unknown[] = [];
  const skills = async () => [{ id: 'sync', name: 'Sync' }] as never;
  const { first, stop } = registerMine(log, { skills }, { onSkills: fault => faults.push(fault) });
  assert.deepEqual((await first).skills, []);
  assert.match(String(faults[0]), /^AgentMisuse: skills\(\) must resolve with a list of skills/);
  await stop();
  await log.close();
});

test('an instance that starts removes the entries of instances that died long ago', { timeout: 120_000 }, async () => {
  const log = createMemoryLog();
  const silentFor = (ms: number): AgentRegistration => ({
    name: 'mine',
    description: '',
    url: '',
    skills: [],
    heartbeat: Date.now() - ms,
  });
  await log.agents.put('mine.dead', silentFor(DEAD_INSTANCE_MS + 1));
  await log.agents.put('mine.silent', silentFor(DEAD_INSTANCE_MS - 60_000));
  await log.agents.put('other.dead', { ...silentFor(DEAD_INSTANCE_MS + 1), name: 'other' });
  const { stop } = await register(log, 1);
  await until(async () => (await log.agents.get('mine.dead')) === undefined);
  await stop();
  assert.deepEqual(
    (await log.agents.under('mine')).map(({ key }) => key),
    ['mine.silent'],
  );
  assert.notEqual(await log.agents.get('other.dead'), undefined, 'an entry of another agent');
  await log.close();
});

test('skills of any length fit the registry: each is cut to the limits of an agents file', { timeout: 120_000 }, async () => {
  const log = createMemoryLog();
  const long = 'x'.repeat(100_000);
  const texts = Array.from({ length: 1_000 }, (_, index) => `${index} ${long}`);
  const skill = (index: number) => ({ id: `${index} ${long}`, name: long, description: long, tags: texts, examples: texts });
  const all = Array.from({ length: 200 }, (_, index) => skill(index));
  const registration = registerMine(log, { description: long, skills: async () => all });
  const { skills } = await registration.first;
  const [first] = skills;
  assert.deepEqual([skills.length, new Set(skills.map(({ id }) => id)).size], [SKILLS_MAX, SKILLS_MAX]);
  assert.deepEqual(
    [first?.id.length, first?.name.length, first?.description.length, first?.tags.length, first?.examples?.length],
    [SKILL_NAME_CHARS_MAX, SKILL_NAME_CHARS_MAX, ENTRY_DESCRIPTION_CHARS_MAX, TAGS_MAX, EXAMPLES_MAX],
  );
  assert.deepEqual([first?.tags[0]?.length, first?.examples?.[0]?.length], [TAG_CHARS_MAX, EXAMPLE_CHARS_MAX]);
  assert.ok(JSON.stringify(skills).length < 1024 * 1024, 'one record of NATS');
  await registration.stop();
  await log.close();
});

test('the entry of an agent that does not answer states why, until the agent answers', { timeout: 120_000 }, async () => {
  const log = createMemoryLog();
  let isDown = true;
  const skills = async () => {
    if (isDown) throw new TypeError('secret', { cause: Object.assign(new Error('secret'), { code: 'ECONNREFUSED' }) });
    return [];
  };
  const { stop } = registerMine(log, { skills });
  const faults = async () => (await log.agents.under('mine')).map(({ value }) => value.fault);
  await until(async () => (await faults())[0] === 'ECONNREFUSED');
  isDown = false;
  await until(async () => (await faults()).every(fault => fault === undefined));
  assert.equal((await faults()).length, 1);
  await stop();
});
