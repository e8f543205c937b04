import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AgentEntry, Change, KeyValue } from '@hopline/log';
import { createMemoryLog } from '@hopline/log/memory';
import { AGENT_SILENCE_MS_MAX, SkillDirectory } from './skill-directory.ts';

const skill = (id: string) => ({ id, name: id, description: id, tags: [] });
const agent = (name: string, ...ids: string[]): AgentEntry => ({
  name,
  description: name,
  url: '',
  skills: ids.map(skill),
  beat: 1,
});

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise(resolve => setTimeout(resolve, 1));
}

test('S4-3 skills of all agents, told apart by the agent where two have the same', async t => {
  const log = createMemoryLog();
  const stop = new AbortController();
  t.after(() => stop.abort());
  await log.agents.put('b', agent('b', 'version', 'logs'));
  const directory = new SkillDirectory(() => 0);
  await directory.follow(log.agents, stop.signal, error => assert.fail(String(error)));
  const ids = () => directory.skills().map(one => one.id);
  assert.deepEqual(ids(), ['version', 'logs']);
  await log.agents.put('a', agent('a', 'version'));
  await until(() => ids().length === 3);
  assert.deepEqual(ids(), ['version', 'b.version', 'logs']);
  await log.agents.delete('b');
  await until(() => ids().length === 1);
});

test('an agent that is silent for too long is not on the card, and is again when it speaks', async t => {
  const log = createMemoryLog();
  const stop = new AbortController();
  t.after(() => stop.abort());
  let now = 0;
  const directory = new SkillDirectory(() => now);
  await log.agents.put('a', agent('a', 'version'));
  await directory.follow(log.agents, stop.signal, error => assert.fail(String(error)));
  now = AGENT_SILENCE_MS_MAX;
  assert.equal(directory.skills().length, 1);
  now = AGENT_SILENCE_MS_MAX + 1;
  assert.equal(directory.skills().length, 0);
  await log.agents.put('a', agent('a', 'version'));
  await until(() => directory.skills().length === 1);
});

test('a registry that is lost is followed again; one that never answers is told to the caller', async t => {
  const log = createMemoryLog();
  const stop = new AbortController();
  t.after(() => stop.abort());
  await log.agents.put('a', agent('a', 'version'));
  let lost = Promise.withResolvers<void>();
  const faults: unknown[] = [];
  const flaky = {
    ...log.agents,
    async *watch(signal: AbortSignal): AsyncGenerator<Change<AgentEntry>, void> {
      for await (const change of log.agents.watch(signal)) {
        yield change;
        if (change.type === 'ready' && faults.length === 0) {
          await lost.promise;
          throw new Error('gone');
        }
      }
    },
  } as KeyValue<AgentEntry>;
  const directory = new SkillDirectory(() => 0);
  await directory.follow(flaky, stop.signal, error => faults.push(error));
  await log.agents.delete('a');
  await log.agents.put('b', agent('b', 'logs'));
  lost.resolve();
  await until(() => directory.skills()[0]?.id === 'logs' && directory.skills().length === 1);
  assert.equal(faults.length, 1);
  lost = Promise.withResolvers();
  const dead = { ...log.agents, watch: () => assert.fail('no leader') } as unknown as KeyValue<AgentEntry>;
  await assert.rejects(
    new SkillDirectory(() => 0).follow(dead, stop.signal, () => stop.abort()),
    /no leader/,
  );
});
