import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { constants } from 'node:os';

const PARENT_POLL_MS = 1000;

/**
 * Runs the TypeScript door of a command under the right Node and takes its exit code. This process stays as the parent (Node cannot
 * replace itself), so it passes signals on; the open IPC channel tells the child when this process was killed.
 * @param {string} node @param {string[]} args @param {{ cwd: string, env: NodeJS.ProcessEnv, passesInterrupt: boolean }} options `passesInterrupt`: false for a command that takes
 * a second Ctrl-C for "at once": the terminal sends the first one to it as well.
 * @returns {Promise<number>} exit code; 128 + n when signal n ended the child
 */
export function handOver(node, args, { cwd, env, passesInterrupt }) {
  return new Promise((resolve, reject) => {
    const child = spawn(node, args, { cwd, env, stdio: ['inherit', 'inherit', 'inherit', 'ipc'] });
    for (const name of ['SIGTERM', 'SIGHUP']) process.on(name, () => child.kill(name));
    process.on('SIGINT', () => passesInterrupt && child.kill('SIGINT'));
    const watch = watchParents(env, () => child.kill('SIGTERM'));
    child.on('error', reject);
    child.on('exit', (code, signal) => {
      clearInterval(watch);
      resolve(code ?? 128 + constants.signals[signal]);
    });
  });
}

/**
 * npm runs this through a shell, and a shell passes no signal on: when npm or the shell ends, by whatever cause, nobody is left who
 * could tell us. So their ids are looked at; a process whose parent ended gets another one.
 */
function watchParents(env, onGone) {
  if (!env.npm_lifecycle_event) return undefined;
  const before = parents();
  const timer = setInterval(() => {
    if (parents() === before) return;
    clearInterval(timer);
    onGone();
  }, PARENT_POLL_MS);
  return timer.unref();
}

/** Ids of the shell and, where the system shows it in a file, of npm. */
function parents() {
  let grandparent = '';
  try {
    grandparent = /^PPid:\s*(\d+)$/m.exec(readFileSync(`/proc/${process.ppid}/status`, 'utf8'))?.[1] ?? '';
  } catch {
    // No /proc on macOS.
  }
  return `${process.ppid} ${grandparent}`;
}
