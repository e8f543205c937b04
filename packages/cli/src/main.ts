#!/usr/bin/env node
import { EXIT } from './command/exit-code.ts';
import { run } from './run.ts';

const interruption = new AbortController();
/** Called on Ctrl-C instead of ending the command. */
let taken: (() => void) | undefined;

const interrupt = () => {
  // A second signal ends the process at once.
  if (interruption.signal.aborted) process.exit(EXIT.interrupted);
  interruption.abort(new Error('interrupted'));
};
process.on('SIGINT', () => (taken ?? interrupt)());
process.on('SIGTERM', interrupt);
let isOutputLost = false;
process.stdout.on('error', ({ code }: NodeJS.ErrnoException) => {
  // The reader of the output has closed it (`hopline ask … | head`).
  if (code !== 'EPIPE' && !isOutputLost) {
    isOutputLost = true;
    process.exitCode = EXIT.failed;
    process.stderr.write(`hopline: standard output cannot be written (${code})\n`);
  }
  interruption.abort(new Error('interrupted'));
});
process.stderr.on('error', () => {});

const exitCode = await run(process.argv.slice(2), {
  environment: process.env,
  folder: process.cwd(),
  get stdin() {
    // A getter, so that only a command that reads standard input opens it.
    return process.stdin;
  },
  stdout: process.stdout,
  stderr: process.stderr,
  signal: interruption.signal,
  takeInterrupts: interrupted => {
    taken = interrupted;
  },
});
// Output may have been lost before this point, or may be lost later.
process.exitCode = isOutputLost ? EXIT.failed : exitCode;
