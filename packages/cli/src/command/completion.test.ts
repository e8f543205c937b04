import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { COMMANDS } from '../commands.ts';
import { completionScript, SHELLS } from './completion.ts';
import { optionsOf } from './parse-arguments.ts';

const hasShell = (shell: string) => spawnSync(shell, ['-c', 'exit 0']).status === 0;

/** The completions that bash offers for the last of these words. */
function completed(...words: string[]): string[] {
  const script = `${completionScript('bash', COMMANDS)}
COMP_WORDS=(hopline ${words.map(word => `'${word}'`).join(' ')})
COMP_CWORD=${words.length}
_hopline
printf '%s\\n' "\${COMPREPLY[@]}"`;
  const { stdout, stderr, status } = spawnSync('bash', ['--norc', '-c', script], { encoding: 'utf8', cwd: import.meta.dirname });
  assert.deepEqual([status, stderr], [0, '']);
  return stdout.trim().split('\n');
}

test('bash completes commands, options and values', { skip: !hasShell('bash') && 'no bash' }, () => {
  assert.deepEqual(completed(''), [...COMMANDS.map(({ name }) => name), '--version', '--help']);
  assert.deepEqual(completed('ag'), ['agents', 'agent']);
  for (const command of COMMANDS)
    assert.deepEqual(
      completed(command.name, '--'),
      optionsOf(command).map(([option]) => `--${option}`),
    );
  assert.deepEqual(completed('tasks', '--state', 'in'), ['input-required']);
  assert.deepEqual(completed('completion', ''), [...SHELLS]);
  assert.deepEqual(completed('logs', 'in'), ['ingress']);
  assert.deepEqual(completed('agent', 'completion.'), ['completion.test.ts', 'completion.ts']);
  assert.deepEqual(completed('ask', '--out', 'completion.t'), ['completion.test.ts', 'completion.ts']);
});

/**
 * Writes the script to a file, because fish cannot read it from a socket, and Node gives a child process a socket as its standard input.
 */
function scriptFile(t: TestContext, shell: 'zsh' | 'fish'): string {
  const folder = mkdtempSync(join(tmpdir(), 'hopline-completion-'));
  t.after(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, `hopline.${shell}`), completionScript(shell, COMMANDS));
  return join(folder, `hopline.${shell}`);
}

/** A developer's own configuration may print text, or have other completions. */
const WITHOUT_CONFIGURATION = { zsh: '-f', fish: '--no-config' } as const;

for (const shell of ['zsh', 'fish'] as const) {
  test(`${shell} reads its script without an error`, { skip: !hasShell(shell) && `no ${shell}` }, t => {
    const file = scriptFile(t, shell);
    const { status, stderr } = spawnSync(shell, [WITHOUT_CONFIGURATION[shell], '-n', file], { encoding: 'utf8' });
    assert.deepEqual([status, stderr], [0, '']);
  });
}

test('fish completes commands, options and values', { skip: !hasShell('fish') && 'no fish' }, t => {
  const shell = 'fish';
  const file = scriptFile(t, shell);
  const offered = (line: string) => {
    const script = `source ${file}; complete -C '${line}'`;
    const { stdout, stderr } = spawnSync(shell, [WITHOUT_CONFIGURATION[shell], '-c', script], { encoding: 'utf8' });
    assert.equal(stderr, '');
    return stdout
      .trim()
      .split('\n')
      .map(one => one.split('\t')[0]);
  };
  assert.deepEqual(offered('hopline ag').toSorted(), ['agent', 'agents']);
  assert.deepEqual(offered('hopline tasks --state in'), ['input-required']);
  assert.ok(offered('hopline tasks --').includes('--state'));
});

test('every script names every command and option', () => {
  for (const shell of SHELLS) {
    const script = completionScript(shell, COMMANDS);
    for (const command of COMMANDS) {
      assert.ok(script.includes(command.name), `${shell}: ${command.name}`);
      for (const [option] of optionsOf(command)) assert.ok(script.includes(option), `${shell}: ${command.name} --${option}`);
    }
  }
});
