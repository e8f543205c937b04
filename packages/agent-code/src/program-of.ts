import { join } from 'node:path';

/** The program of a `command`. `node` is the Node that runs Hopline: the one on PATH may be older or missing. */
export function programOf(command: string, folder: string): string {
  if (command === 'node') return process.execPath;
  return /^\.{1,2}[\\/]/.test(command) ? join(folder, command) : command;
}
