import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const MAIN = fileURLToPath(new URL('main.ts', import.meta.url));

function run(...argv: string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [MAIN, ...argv], { encoding: 'utf8' });
  return { status, stdout, lines: stderr.trim().split('\n') };
}

test('a wrong option or name is reported, and no configuration is written', () => {
  for (const [argv, reason] of [
    [['--agnt', 'guide'], /^hopline: Unknown option '--agnt'/],
    // `*` would select the user that may act as any agent.
    [['--agent', '*'], /^hopline: an agent name must be 1 to 32 of a-z, 0-9 and - \(not first\)$/],
    [['--groups', '65'], /^hopline: stream groups must be a whole number from 1 to 64$/],
    [['--earlier-agents'], /^hopline: --earlier-agents needs --one-account$/],
    [['--prefix', 'a b'], /^hopline: the prefix must be 1 to 32 of/],
  ] as const) {
    const { status, stdout, lines } = run(...argv);
    assert.deepEqual([status, stdout, lines.length], [1, '', 1]);
    assert.match(lines[0]!, reason);
  }
  assert.match(run('--groups', '3').stdout, /"\$JS\.API\.STREAM\.INFO\.A2A_LOG_2"/);
  assert.match(run('--agent', 'guide').stdout, /user: "agent\.guide"/);
  const { stdout } = run('--agent', 'guide', '--prefix', 'blue');
  assert.deepEqual(
    [...stdout.matchAll(/^ {2}"(.*)": \{$/gm)].map(([, name]) => name),
    ['blue.hopline', 'blue.agent.guide'],
  );
  for (const options of [['--one-account'], ['--one-account', '--earlier-agents']]) {
    assert.doesNotMatch(run(...options).stdout, /^accounts/m);
    assert.match(run(...options).stdout, /^authorization \{$/m);
  }
});
