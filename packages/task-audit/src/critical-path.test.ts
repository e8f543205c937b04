import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type AgentInput,
  type InputRecord,
  type Producer,
  type RelayInput,
  type Role,
  type TakenWork,
  writerOf,
} from '@hopline/events';
import type { Command } from '@hopline/task';
import { agent, Scenario, supervisor } from '@hopline/task/test-kit';
import { Random } from '../../../test/simulator/random.ts';
import { RecordedTask } from './recorded-task.test-kit.ts';
import type { TaskRecords } from './task-records.ts';
import { traceOf } from './trace.ts';

const RUNS = 200;

test('the named hops of any recorded task cover the time from question to end, even if processes died [S2-41]', () => {
  const seen = new Set<string>();
  for (let seed = 1; seed <= RUNS; seed++) {
    const { records, expected } = new RecordedTask(new Random(seed)).run();
    const { turns, costs } = traceOf(records);
    assert.equal(turns.length, expected.length, `seed ${seed}`);
    for (const [index, { fromMs, toMs, path }] of turns.entries()) {
      let atMs = fromMs;
      for (const part of path) {
        assert.ok(part.fromMs >= atMs && part.toMs > part.fromMs, `seed ${seed}: parts overlap`);
        atMs = part.toMs;
        seen.add(part.hop);
      }
      assert.ok(atMs <= toMs, `seed ${seed}: the parts are longer than the turn`);
      const coveredMs = path.reduce((sum, part) => sum + part.toMs - part.fromMs, 0);
      assert.ok(coveredMs >= 0.99 * (toMs - fromMs), `seed ${seed}: ${coveredMs} of ${toMs - fromMs} ms`);
      // The schedule of the task is known, so there is exactly one correct name for each millisecond.
      assert.deepEqual(runsOf(namesOf(path)), runsOf(expected[index]!), `seed ${seed}, turn ${index + 1}`);
    }
    const share = costs.reduce((sum, cost) => sum + cost.share, 0);
    assert.ok(share > 0.99 && share < 1 + 1e-9, `seed ${seed}: ${share}`);
  }
  const all = ['accept', 'work_queue', 'plan', 'agent_queue', 'agent', 'tool', 'talk', 'finish', 'compose', 'publish', 'append'];
  assert.deepEqual([...seen].sort(), [...all, 'redelivery', 'takeover'].sort());
});

const MESSAGE = { messageId: 'm', role: 'ROLE_USER' as const, parts: [{ text: 'hi' }] };
const WORKING = { kind: 'status', state: 'TASK_STATE_WORKING' } as const;
const CALL = { kind: 'call', call: 'call-1-1', agent: 'argocd' } as const;
const TEXT: AgentInput[] = [
  { kind: 'open', lane: 'a', artifact: { name: 'response' } },
  { kind: 'text', lane: 'a', tokens: ['a', 'b'], dt: [0, 100] },
];

/** A task whose relay folds each record 2 ms after it was created, and stores it 1 ms later. */
class FoldedTask {
  readonly #scenario = new Scenario('t', () => this.#now);
  readonly #records: TaskRecords = { taskId: 't', aggregate: undefined as never, facts: [], inputs: [] };
  #now = 0;

  message(at: number, role: Role, messageId = 'm'): this {
    const input = { kind: 'message', message: { ...MESSAGE, messageId }, contextId: 'c', role, profile: 'caipe' } as const;
    return this.#add(at, { v: 1, at, from: 'client', input }, () => this.#scenario.when({ kind: 'client', taskId: 't', input }));
  }

  cancel(at: number): this {
    const input = { kind: 'cancel' } as const;
    return this.#add(at, { v: 1, at, from: 'client', input }, () => this.#scenario.cancel());
  }

  relay(at: number, input: RelayInput): this {
    return this.#add(at, { v: 1, at, from: 'relay', input }, () => this.#scenario.when(input as Command));
  }

  write(at: number, from: Producer, inputs: AgentInput[], taken?: TakenWork): this {
    return this.#add(at, { v: 1, at, from, n: 1, inputs, ...(taken && { taken }) }, () => {
      for (const input of inputs) if (input.kind !== 'text') this.#scenario.input(from, input);
    });
  }

  #add(at: number, record: InputRecord, decide: () => unknown): this {
    const { inputs, facts } = this.#records;
    const seq = inputs.length + 1;
    inputs.push({ seq, taskId: 't', record, writer: writerOf(record), bytes: 1, storedAt: at + 1 });
    this.#now = at + 2;
    const before = this.#scenario.facts.length;
    decide();
    const added = this.#scenario.facts.slice(before);
    this.#records.aggregate = { ...this.#scenario.aggregate!, foldedSeq: seq };
    if (added.length > 0) {
      const stored = { v: 1 as const, facts: added, aggregate: this.#records.aggregate, startSeq: 1, startStoredAt: 0 };
      facts.push({ seq, record: stored, storedAt: at + 3 });
    }
    return this;
  }

  get paths(): string[][] {
    return this.pathsAt(undefined);
  }

  /** The paths when the task is read at `now`. */
  pathsAt(now: number | undefined): string[][] {
    return traceOf(this.#records, now).turns.map(({ path }) => runsOf(namesOf(path)));
  }
}

const begun = () => new FoldedTask().message(0, 'supervisor').write(20, supervisor(), [WORKING, CALL], { queuedAt: 4, at: 10 });
const PLANNED = ['accept × 4', 'work_queue supervisor × 6', 'plan supervisor × 15', 'agent_queue argocd × 5'];
const TAKEN = { queuedAt: 25, at: 30 };

test('a turn that its client ends waited for the agent that worked, or for a worker that never came', () => {
  const talks = begun().write(60, agent(), TEXT, TAKEN).cancel(500);
  const talked = [...PLANNED, 'agent argocd × 30', 'talk argocd × 100', 'silence argocd × 340'];
  assert.deepEqual(talks.paths, [[...talked, 'publish × 2', 'append × 1']], 'an agent with text');
  const thinks = begun()
    .write(60, agent(), [{ kind: 'open', lane: 'a', artifact: { name: 'response' } }], TAKEN)
    .cancel(500);
  assert.deepEqual(thinks.paths, [[...PLANNED, 'agent argocd × 470', 'publish × 2', 'append × 1']], 'an agent without text');
  const queued = ['accept × 4', 'work_queue supervisor × 6', 'plan supervisor × 13', 'agent_queue argocd × 477'];
  assert.deepEqual(begun().cancel(500).paths, [[...queued, 'publish × 2', 'append × 1']], 'no agent');
  const unsupervised = new FoldedTask().message(0, 'supervisor').cancel(500);
  assert.deepEqual(unsupervised.paths, [['accept × 3', 'work_queue × 497', 'publish × 2', 'append × 1']], 'no supervisor');
  const next = begun().write(60, agent(), TEXT, TAKEN).message(500, 'supervisor', 'm2');
  assert.deepEqual(next.paths[0], [...talked, 'publish × 2', 'append × 1'], 'the next message ends the turn');
});

test('a turn that still runs waits until now, for the agent that has been silent for the longest time', () => {
  const queued = ['accept × 4', 'work_queue supervisor × 6', 'plan supervisor × 13'];
  assert.deepEqual(begun().pathsAt(500), [[...queued, 'silence argocd × 477']], 'an agent that has written nothing');
  const talked = [...PLANNED, 'agent argocd × 30', 'talk argocd × 100'];
  assert.deepEqual(begun().write(60, agent(), TEXT, TAKEN).pathsAt(500), [[...talked, 'silence argocd × 340']]);
  const other = { kind: 'call', call: 'call-1-2', agent: 'github' } as const;
  const two = new FoldedTask()
    .message(0, 'supervisor')
    .write(20, supervisor(), [WORKING, CALL, other], { queuedAt: 4, at: 10 })
    .write(60, agent(), TEXT, TAKEN);
  assert.deepEqual(two.pathsAt(500), [[...queued, 'silence github × 477']], 'of two agents, the one without text');
  assert.deepEqual(new FoldedTask().message(0, 'supervisor').pathsAt(500), [['accept × 3', 'work_queue × 497']]);
  const ended = begun().write(60, agent(), TEXT, TAKEN).cancel(500);
  assert.deepEqual(ended.pathsAt(9_000), ended.paths, 'an ended task has no present');
});

test('a turn that a relay ends waited for the agent that wrote no end; a timeout waited for the client', () => {
  const gone = begun().write(60, agent(), TEXT, TAKEN).relay(500, { kind: 'work-gone', turn: 1 });
  const talked = [...PLANNED, 'agent argocd × 30', 'talk argocd × 100', 'silence argocd × 340'];
  assert.deepEqual(gone.paths, [[...talked, 'publish × 2', 'append × 1']]);
  const asks = { kind: 'status', state: 'TASK_STATE_INPUT_REQUIRED' } as const;
  const asked = new FoldedTask()
    .message(0, 'agent.argocd')
    .write(20, agent('agent'), [WORKING, asks], { queuedAt: 4, at: 10 })
    .relay(900, { kind: 'timeout', request: 1 });
  const before = ['accept × 4', 'work_queue argocd × 6', 'agent argocd × 10', 'publish × 2', 'append × 1'];
  assert.deepEqual(asked.paths, [[...before, 'client × 879', 'append × 1']]);
});

/** The name of each millisecond. */
function namesOf(path: readonly { hop: string; agent?: string; fromMs: number; toMs: number }[]): string[] {
  return path.flatMap(({ hop, agent = '', fromMs, toMs }) =>
    Array.from({ length: toMs - fromMs }, () => `${hop} ${agent}`.trim()),
  );
}

/** Consecutive milliseconds of one name as `name × count`. */
function runsOf(names: readonly string[]): string[] {
  const runs: { name: string; count: number }[] = [];
  for (const name of names) {
    const run = runs.at(-1);
    if (run?.name === name) run.count += 1;
    else runs.push({ name, count: 1 });
  }
  return runs.map(({ name, count }) => `${name} × ${count}`);
}
