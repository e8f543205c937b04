import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { readOptions } from './command-options.ts';

test('without options every class of one replica runs', () => {
  const { tasks, replicas, size, classes, faultsMin, isMixed } = readOptions([]);
  assert.deepEqual(
    { tasks, replicas, nodes: size.nodes, faultsMin, isMixed },
    {
      tasks: 5000,
      replicas: 1,
      nodes: 1,
      faultsMin: undefined,
      isMixed: false,
    },
  );
  assert.ok(classes.length > 5 && classes.every(faultClass => faultClass.replicas.includes(1)));
});

test('options select classes, size and number of faults; the servers decide the replicas of mixed faults', () => {
  const { classes, faultsMin } = readOptions(['--class', 'relay SIGKILL', '--faults', '2']);
  assert.deepEqual([classes.map(({ name }) => name), faultsMin], [['relay SIGKILL'], 2]);
  const { replicas, size } = readOptions(['--mixed', '--nodes', '3', '--groups', '4']);
  assert.deepEqual([replicas, size.nodes, size.groups], [3, 3, 4]);
});

test('mixed faults end after their number of tasks or minutes, whichever comes first', () => {
  const endOf = (...args: string[]) => {
    const { tasks, minutes } = readOptions(['--mixed', ...args]);
    return [tasks, minutes];
  };
  assert.deepEqual(endOf(), [10_000, undefined]);
  assert.deepEqual(endOf('--minutes', '60'), [Number.POSITIVE_INFINITY, 60]);
  assert.deepEqual(endOf('--minutes', '60', '--tasks', '500'), [500, 60]);
});

test('an option that cannot be used is an error of one sentence', () => {
  const refusals: [string[], RegExp][] = [
    [['--tasks', 'x'], /^Error: --tasks must be a whole number, not x$/],
    [['--replicas', '2'], /^Error: --replicas must be 1 or 3$/],
    [['--nodes', '3'], /^Error: --nodes must be 1 with --replicas 1, not 3$/],
    [['--relays', '3'], /^Error: --relays must be an even number, not 3$/],
    [['--ingresses', '1'], /^Error: --ingresses must be 2 or more, not 1$/],
    [['--class', 'other'], /^Error: there is no class "other" with --replicas 1; see --help$/],
    [['--minutes', '60'], /^Error: --minutes needs --mixed$/],
    [['--slow'], /Unknown option '--slow'/],
  ];
  for (const [args, refusal] of refusals) assert.throws(() => readOptions(args), refusal, args.join(' '));
});

test('the command prints the sentence without a stack and exits with code 2', () => {
  const main = fileURLToPath(new URL('main.ts', import.meta.url));
  const { status, stdout, stderr } = spawnSync(process.execPath, [main, '--tasks', 'x'], { encoding: 'utf8' });
  assert.deepEqual([status, stdout, stderr], [2, '', 'faults: --tasks must be a whole number, not x\n']);
});
