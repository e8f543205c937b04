#!/usr/bin/env node
import { run } from './run.ts';

const interruption = new AbortController();
const interrupt = () => interruption.abort(new Error('interrupted'));
// Once: a second signal has its default effect and ends the process.
for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, interrupt);
// The reader of the answer is gone (`hopline ask … | head`).
process.stdout.on('error', interrupt);
process.stderr.on('error', () => {});

process.exitCode = await run(process.argv.slice(2), {
  environment: process.env,
  get stdin() {
    // Lazy: only a command that reads standard input opens it.
    return process.stdin;
  },
  stdout: process.stdout,
  stderr: process.stderr,
  signal: interruption.signal,
});
