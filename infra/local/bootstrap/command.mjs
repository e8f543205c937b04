import { spawn } from 'node:child_process';

/** How much of each output stream's end is kept: enough for an error message, bounded for a verbose build. */
const OUTPUT_CHARS_MAX = 64 * 1024;

/** Running process groups; an interrupted set-up must not leave a compiler behind. @type {Set<number>} */
const groups = new Set();

/** Kills all processes started by `runCommand`. */
export function stopCommands() {
  for (const pid of groups) killGroup(pid);
}

/** @param {number} pid */
function killGroup(pid) {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // The group has already ended.
  }
}

/**
 * Runs a program to its end. Never rejects: the result contains the fault.
 * @param {string[]} command program and arguments
 * @param {{ cwd?: string, env?: NodeJS.ProcessEnv, timeoutMs: number }} options
 * @returns {Promise<{ ok: boolean, code: number | null, timedOut: boolean, stdout: string, stderr: string }>}
 */
export function runCommand(command, { cwd, env, timeoutMs }) {
  const [program, ...args] = command;
  return new Promise(resolve => {
    // Its own process group, so that a timeout also kills the children of the program (npm and go start several).
    const child = spawn(program, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
    const result = { ok: false, code: null, timedOut: false, stdout: '', stderr: '' };
    const { pid } = child;
    if (pid !== undefined) groups.add(pid);
    const timer = setTimeout(() => {
      result.timedOut = true;
      if (pid !== undefined) killGroup(pid);
    }, timeoutMs);
    for (const name of ['stdout', 'stderr']) {
      child[name].setEncoding('utf8').on('data', text => {
        result[name] = (result[name] + text).slice(-OUTPUT_CHARS_MAX);
      });
    }
    const settle = code => {
      clearTimeout(timer);
      if (pid !== undefined) groups.delete(pid);
      resolve({ ...result, code, ok: code === 0 && !result.timedOut });
    };
    child.on('error', error => {
      result.stderr += error.message;
      settle(null);
    });
    child.on('close', settle);
  });
}

/**
 * The most informative line of a failed program's output: the first with "error", else the last.
 * @param {{ timedOut: boolean, stdout: string, stderr: string, code: number | null }} result
 * @returns {string} at most 300 characters, never empty
 */
export function failureLine(result) {
  if (result.timedOut) return 'timed out';
  const lines = `${result.stderr}\n${result.stdout}`
    .split('\n')
    .map(line => line.trim())
    .filter(line => line !== '');
  const line = lines.find(text => /\berr(or|_\w+)?\b|cannot|could not|denied|no such/i.test(text)) ?? lines.at(-1);
  return (line ?? `exit code ${result.code}`).slice(0, 300);
}
