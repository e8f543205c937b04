import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { MUTATIONS } from './mutations.ts';
import { scenarioOf } from './scenario.ts';
import { shrink } from './shrink.ts';
import { simulate } from './simulate.ts';

const DETERMINISM_SEEDS = 10;
const SEEDS = 120;
/** Number of seeds of its themes within which each past defect must be found. */
const MUTATION_SEEDS_MAX = 60;

test('the same seed gives the same run, down to the last event', async () => {
  const seeds = Array.from({ length: DETERMINISM_SEEDS }, (_, index) => index + 1);
  const digests = async () => {
    const found: string[] = [];
    for (const seed of seeds) found.push((await simulate(scenarioOf(seed))).digest);
    return found;
  };
  const first = await digests();
  assert.equal(new Set(first).size, seeds.length, 'different seeds give different runs');
  assert.deepEqual(await digests(), first);
});

test('every promise holds under the faults of each seed', async () => {
  for (let seed = 1; seed <= SEEDS; seed++) {
    const { violations } = await simulate(scenarioOf(seed));
    assert.deepEqual(violations, [], `again: npm run simulate -- --seed ${seed} --trace`);
  }
});

for (const [name, { seedsMax = MUTATION_SEEDS_MAX }] of Object.entries(MUTATIONS)) {
  test(`the simulator finds: ${name}`, async t => {
    const main = fileURLToPath(new URL('main.ts', import.meta.url));
    // Needs a separate process, because the mutated modules must load after the mutation.
    const child = spawn(process.execPath, [main, '--mutation', name, '--seeds', String(seedsMax)]);
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', chunk => (output += chunk));
    const code = await new Promise(resolve => child.on('close', resolve));
    assert.equal(code, 0, output);
    // Shows whether the seed that is tried first still finds it.
    t.diagnostic(output.trim());
  });
}

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
