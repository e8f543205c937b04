import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Job } from '@hopline/log';
import { agent, Scenario, supervisor } from '@hopline/task/test-kit';
import { missingSituations, SITUATIONS, type Situation, Situations } from './situations.ts';

const ALL = Object.keys(SITUATIONS) as Situation[];

const metBySeeds = (names: readonly string[]) => Object.fromEntries(names.map(name => [name, { seeds: 1, first: 1 }]));

const countsOf = (seeds: number, isWire: boolean, clients = seeds) => ({ any: seeds, wire: isWire ? seeds : 0, clients });

test('1,000 seeds that never met a situation name it, and fewer do not', () => {
  const [missed, ...met] = ALL;
  assert.deepEqual(missingSituations(metBySeeds(met), countsOf(1_000, true)), [missed]);
  assert.deepEqual(missingSituations(metBySeeds(met), countsOf(999, true)), []);
  assert.deepEqual(missingSituations(metBySeeds(ALL), countsOf(1_000, true)), []);
});

test('the log in memory is not expected to meet a situation of the wire', () => {
  const ofMemory = ALL.filter(name => SITUATIONS[name] !== 'wire');
  assert.deepEqual(missingSituations(metBySeeds(ofMemory), countsOf(1_000, false)), []);
  assert.equal(missingSituations({}, countsOf(1_000, false)).length, ofMemory.length);
});

test('seeds without dialects, callers, forks and bursts are not expected to meet their situations', () => {
  const others = ALL.filter(name => SITUATIONS[name] !== 'clients');
  assert.deepEqual(missingSituations(metBySeeds(others), countsOf(1_000, true, 0)), []);
  assert.deepEqual(
    missingSituations(metBySeeds(others), countsOf(1_000, true)),
    ALL.filter(name => SITUATIONS[name] === 'clients'),
  );
});

const message = { messageId: 'login', role: 'ROLE_AGENT' as const, parts: [{ text: 'Log in first.' }] };
const asks = { kind: 'status', state: 'TASK_STATE_AUTH_REQUIRED', message } as const;
const works = { kind: 'status', state: 'TASK_STATE_WORKING' } as const;

/** A task with two calls, the first of which waits for credentials. */
function waiting(): Scenario {
  const task = new Scenario().message('go').input(supervisor(), works);
  for (const call of ['call-1-1', 'call-1-2']) task.input(supervisor(), { kind: 'call', call, agent: 'argocd' });
  return task.input(agent('call-1-1'), asks);
}

function metBy(task: Scenario): Situation[] {
  const situations = new Situations();
  situations.addTask(task.facts);
  return [...situations.met];
}

test('the facts of a task show how each wait for credentials went', () => {
  assert.deepEqual([metBy(waiting()), waiting().rejected], [[], []]);
  const other = agent('call-1-2');
  assert.deepEqual(metBy(waiting().input(agent('call-1-1'), works).open(agent('call-1-1'), 'a')), [
    'an agent continues because its credentials have arrived',
  ]);
  assert.deepEqual(metBy(waiting().message('the password', 'm2')), ['a client answers a request for credentials']);
  assert.deepEqual(metBy(waiting().when({ kind: 'auth-timeout', request: 1 })), ['a request for credentials times out']);
  assert.deepEqual(metBy(waiting().input(other, asks)), ['two agents wait for credentials at once']);
  assert.deepEqual(metBy(waiting().open(other, 'b').text(other, 'b', 'meanwhile')), [
    'an agent writes while another one waits for credentials',
  ]);
});

test('a supervisor that dies, and the one that takes over, are counted only while an agent waits for credentials', async () => {
  const task = waiting();
  const job = { work: { taskId: task.aggregate!.taskId }, attempt: 1 } as Job;
  const record = { v: 1 as const, facts: [], aggregate: task.aggregate!, startSeq: 1, startStoredAt: 1 };
  const situations = new Situations();
  const pending = new Promise<void>(() => {});
  situations.onSupervised('supervisor-1', job, pending);
  situations.onSupervised('supervisor-2', { ...job, attempt: 2 }, pending);
  situations.killed('supervisor-1');
  assert.deepEqual([...situations.met], []);
  situations.onFactsStored(record);
  situations.killed('supervisor-1');
  situations.onSupervised('supervisor-3', job, Promise.resolve());
  await Promise.resolve();
  situations.killed('supervisor-3');
  assert.deepEqual([...situations.met], []);
  situations.killed('supervisor-2');
  assert.deepEqual([...situations.met], ['a supervisor dies while an agent waits for credentials']);
  situations.onSupervised('supervisor-4', { ...job, attempt: 3 }, pending);
  assert.deepEqual([...situations.met].slice(1), ['another supervisor takes a turn over whose agent waits for credentials']);
});
