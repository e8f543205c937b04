#!/usr/bin/env node
import { run } from './run.ts';

const leaving = new AbortController();
const leave = () => leaving.abort(new Error('interrupted'));
// Once: whoever asks again means it, and the default ends the process.
for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, leave);
// A reader of the answer that went away (`hopline ask … | head`): there is nobody to print for.
process.stdout.on('error', leave);
process.stderr.on('error', () => {});

process.exitCode = await run(process.argv.slice(2), {
  environment: process.env,
  get stdin() {
    // Opened only by a command that reads it.
    return process.stdin;
  },
  stdout: process.stdout,
  stderr: process.stderr,
  signal: leaving.signal,
});
