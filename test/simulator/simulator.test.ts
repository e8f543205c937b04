import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { MUTATIONS } from './mutations.ts';
import { RunThread } from './run-thread.ts';
import { CLIENTS_SEED_MIN, GATHERED_THEME_NAMES, STEP_THEME_NAMES, scenarioOf, WIRE_THEME_NAMES } from './scenario.ts';
import { shrink } from './shrink.ts';
import type { Situation } from './situations.ts';

const DETERMINISM_SEEDS = 10;
/** Seeds of the first runs, and of those that also draw limits, dialects, callers, forks and bursts. */
const SEEDS = [...range(1, 52), ...range(CLIENTS_SEED_MIN, 10)];
/** Seeds of the theme with steps. */
const STEP_SEEDS = 12;
/** Seeds with which a run is repeated: the first of each kind. */
const REPEATED = [...range(1, DETERMINISM_SEEDS - 3), ...range(CLIENTS_SEED_MIN, 3)];
/** Seeds of the theme in which a write of many tasks breaks off. */
const GATHERED_SEEDS = 12;
/** Seed of one run for each theme of the wire. Such a run costs as much as four or five over the in-memory log. */
const WIRE_SEED = 1;
/** Seeds of a theme of the wire within which it causes its situation. */
const SITUATION_SEEDS_MAX = 5;
/** Number of seeds of its themes within which each past defect must be found. */
const MUTATION_SEEDS_MAX = 60;

const MAIN = fileURLToPath(new URL('main.ts', import.meta.url));

function range(from: number, seeds: number): number[] {
  return Array.from({ length: seeds }, (_, index) => from + index);
}

const thread = new RunThread();
after(() => thread[Symbol.asyncDispose]());

/** The digest of each seed's first run. */
const digests = new Map<number, string>();
/** The situations that WIRE_SEED met, by theme. */
const situationsOfSeed = new Map<string, ReadonlySet<Situation>>();

test('every promise holds under the faults of each seed', async () => {
  for (const seed of SEEDS) {
    const { violations, digest } = await thread.run(scenarioOf(seed));
    assert.deepEqual(violations, [], `again: npm run simulate -- --seed ${seed} --trace`);
    digests.set(seed, digest);
  }
});

test('the same seed gives the same run, down to the last event', async () => {
  assert.equal(new Set(digests.values()).size, SEEDS.length, 'different seeds give different runs');
  for (const seed of REPEATED) assert.equal((await thread.run(scenarioOf(seed))).digest, digests.get(seed), `seed ${seed}`);
});

test('every promise holds over the wire, and a run repeats to the last byte', async () => {
  const again = (theme: string) => `again: npm run simulate -- --log nats --seed ${WIRE_SEED} --theme "${theme}" --trace`;
  const runs = new Map<string, string>();
  for (const theme of WIRE_THEME_NAMES) {
    const { violations, digest, situations } = await thread.run(scenarioOf(WIRE_SEED, theme, 'nats'));
    assert.deepEqual(violations, [], again(theme));
    runs.set(theme, digest);
    situationsOfSeed.set(theme, situations);
  }
  const clients = await thread.run(scenarioOf(CLIENTS_SEED_MIN, undefined, 'nats'));
  assert.deepEqual(clients.violations, [], `again: npm run simulate -- --log nats --seed ${CLIENTS_SEED_MIN} --trace`);
  const [theme = ''] = WIRE_THEME_NAMES;
  assert.equal((await thread.run(scenarioOf(WIRE_SEED, theme, 'nats'))).digest, runs.get(theme), again(theme));
});

test('a step whose result is stored never runs again, whichever agents and relays die', async () => {
  const met = new Set<string>();
  for (const [log, seeds] of [
    ['memory', STEP_SEEDS],
    ['nats', 1],
  ] as const) {
    for (const theme of STEP_THEME_NAMES) {
      for (let seed = 1; seed <= seeds; seed++) {
        const { violations, coverage } = await thread.run(scenarioOf(seed, theme, log));
        assert.deepEqual(violations, [], `again: npm run simulate -- --log ${log} --seed ${seed} --theme "${theme}" --trace`);
        for (const one of coverage) met.add(one);
      }
    }
  }
  for (const phase of ['reached', 'stored', 'reused']) assert.ok(met.has(`fold: a step of an agent is ${phase}`), phase);
  assert.ok(met.has('fold: a failed step of an agent is open again'));
});

test('a write of many tasks that breaks off, and lost acknowledgements of some of them, change no text', async () => {
  for (const theme of GATHERED_THEME_NAMES) {
    for (let seed = 1; seed <= GATHERED_SEEDS; seed++) {
      const { violations } = await thread.run(scenarioOf(seed, theme));
      assert.deepEqual(violations, [], `again: npm run simulate -- --seed ${seed} --theme "${theme}" --trace`);
    }
  }
});

test('a seed reports the situations that its faults cause', async () => {
  const expected: [theme: string, Situation][] = [
    ['leaders', 'a deposed leader answers a read'],
    ['broken connections', 'a slow consumer is cut'],
    ['lost tails', 'a bucket loses its newest entries'],
    ['lasting partition', 'a task begins and ends while a process outside of it is parted'],
    ['forgetful servers', 'a message is stored again after its id was forgotten'],
    ['rebuilt inputs', 'the stream of inputs is created again'],
    ['none', 'a list has several pages'],
  ];
  for (const [theme, situation] of expected) {
    const met = new Set(situationsOfSeed.get(theme));
    for (let seed = situationsOfSeed.has(theme) ? WIRE_SEED + 1 : WIRE_SEED; seed <= SITUATION_SEEDS_MAX; seed++) {
      if (met.has(situation)) break;
      for (const one of (await thread.run(scenarioOf(seed, theme, 'nats'))).situations) met.add(one);
    }
    assert.ok(met.has(situation), `${theme}: ${[...met].join(', ')}`);
  }
});

for (const [name, { seedsMax = MUTATION_SEEDS_MAX }] of Object.entries(MUTATIONS)) {
  test(`the simulator finds: ${name}`, async t => {
    // Needs a separate process, because the mutated modules must load after the mutation.
    const child = spawn(process.execPath, [MAIN, '--mutation', name, '--seeds', String(seedsMax)]);
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', chunk => (output += chunk));
    const code = await new Promise(resolve => child.on('close', resolve));
    assert.equal(code, 0, output);
    // Shows whether the seed that is tried first still finds it.
    t.diagnostic(output.trim());
  });
}

test('the command ends quietly when the reader of its output is gone', async () => {
  const child = spawn(process.execPath, [MAIN, '--seed', '1', '--trace']);
  let errors = '';
  child.stderr.on('data', chunk => (errors += chunk));
  child.stdout.once('data', () => child.stdout.destroy());
  const [code] = await once(child, 'close');
  assert.deepEqual({ code, errors }, { code: 0, errors: '' });
});

test('a failing scenario shrinks to the fault and the task that cause the failure', async () => {
  const scenario = scenarioOf(1, 'mixed');
  const [task] = scenario.tasks;
  const [fault] = scenario.faults;
  const smallest = await shrink(scenario, async smaller => smaller.tasks.includes(task!) && smaller.faults.includes(fault!));
  assert.deepEqual(smallest.faults, [fault]);
  assert.deepEqual(
    smallest.tasks.map(({ name }) => name),
    [task!.name],
  );
});
