import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { constants } from 'node:os';

const PARENT_POLL_MS = 1000;

/**
 * Runs the TypeScript entry point of a command with the required Node and returns its exit code. This process remains the parent,
 * because Node cannot exec, and forwards signals; the IPC channel closes when this process is killed.
 * @param {string} node @param {string[]} args @param {{ cwd: string, env: NodeJS.ProcessEnv, passesInterrupt: boolean }} options
 * `passesInterrupt`: false for a command that exits at once on a second SIGINT, because the terminal sends it the first one too.
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
 * npm runs this process through a shell, and a shell forwards no signals. Parent ids are therefore polled: a process whose parent has ended
 * gets a new parent id.
 */
function watchParents(env, onGone) {
  if (!env.npm_lifecycle_event) return undefined;
  const initial = parents();
  const timer = setInterval(() => {
    if (parents() === initial) return;
    clearInterval(timer);
    onGone();
  }, PARENT_POLL_MS);
  return timer.unref();
}

/** Ids of the shell and, on systems with /proc, of npm. */
function parents() {
  let grandparent = '';
  try {
    grandparent = /^PPid:\s*(\d+)$/m.exec(readFileSync(`/proc/${process.ppid}/status`, 'utf8'))?.[1] ?? '';
  } catch {
    // No /proc on macOS.
  }
  return `${process.ppid} ${grandparent}`;
}
