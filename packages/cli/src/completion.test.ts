import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { COMMANDS, isCommand, optionsOf } from './commands.ts';
import { completionScript, SHELLS } from './completion.ts';

const hasShell = (shell: string) => spawnSync(shell, ['-c', 'exit 0']).status === 0;

/** What bash offers for the last of these words. */
function completed(...words: string[]): string[] {
  const script = `${completionScript('bash')}
COMP_WORDS=(hopline ${words.map(word => `'${word}'`).join(' ')})
COMP_CWORD=${words.length}
_hopline
printf '%s\\n' "\${COMPREPLY[@]}"`;
  const { stdout, stderr, status } = spawnSync('bash', ['--norc', '-c', script], { encoding: 'utf8', cwd: import.meta.dirname });
  assert.deepEqual([status, stderr], [0, '']);
  return stdout.trim().split('\n');
}

test('bash completes commands, options and values', { skip: !hasShell('bash') && 'no bash' }, () => {
  assert.deepEqual(completed(''), [...Object.keys(COMMANDS), '--version', '--help']);
  assert.deepEqual(completed('ag'), ['agents', 'agent']);
  for (const command of Object.keys(COMMANDS).filter(isCommand))
    assert.deepEqual(
      completed(command, '--'),
      Object.keys(optionsOf(command)).map(option => `--${option}`),
    );
  assert.deepEqual(completed('list', '--state', 'in'), ['input-required']);
  assert.deepEqual(completed('completion', ''), [...SHELLS]);
  assert.deepEqual(completed('agent', 'completion.'), ['completion.test.ts', 'completion.ts']);
  assert.deepEqual(completed('ask', '--out', 'completion.t'), ['completion.test.ts', 'completion.ts']);
});

for (const shell of ['zsh', 'fish'] as const) {
  test(`${shell} reads its script`, { skip: !hasShell(shell) && `no ${shell}` }, () => {
    const { status, stderr } = spawnSync(shell, ['-n'], { input: completionScript(shell), encoding: 'utf8' });
    assert.deepEqual([status, stderr], [0, '']);
  });
}

test('every script names every command and option', () => {
  for (const shell of SHELLS) {
    const script = completionScript(shell);
    for (const command of Object.keys(COMMANDS).filter(isCommand)) {
      assert.ok(script.includes(command), `${shell}: ${command}`);
      for (const option of Object.keys(optionsOf(command)))
        assert.ok(script.includes(option), `${shell}: ${command} --${option}`);
    }
  }
});
