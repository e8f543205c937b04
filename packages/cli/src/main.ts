#!/usr/bin/env node
import { EXIT } from './exit-code.ts';
import { run } from './run.ts';

const interruption = new AbortController();
/** What a command does on Ctrl-C instead of ending. */
let taken: (() => void) | undefined;

const interrupt = () => {
  // A second signal ends the process at once.
  if (interruption.signal.aborted) process.exit(EXIT.interrupted);
  interruption.abort(new Error('interrupted'));
};
process.on('SIGINT', () => (taken ?? interrupt)());
process.on('SIGTERM', interrupt);
// The reader of the answer is gone (`hopline ask … | head`).
process.stdout.on('error', () => interruption.abort(new Error('interrupted')));
process.stderr.on('error', () => {});

process.exitCode = await run(process.argv.slice(2), {
  environment: process.env,
  folder: process.cwd(),
  get stdin() {
    // Lazy: only a command that reads standard input opens it.
    return process.stdin;
  },
  stdout: process.stdout,
  stderr: process.stderr,
  signal: interruption.signal,
  takeInterrupts: interrupted => {
    taken = interrupted;
  },
});
