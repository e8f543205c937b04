import { Socket } from 'node:net';
import { Worker } from 'node:worker_threads';
import { context } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { CodeHost } from './code-host.ts';
import { loadCode } from './load-code.ts';

/**
 * The process in which the code of an agent runs: it has no login, no settings and no service of Hopline, only a pipe to the sub-agent that
 * started it.
 */

/** File descriptor of the pipe; the first after those of every process. */
const CHANNEL_FD = 3;

/** Ends the process when its parent is gone, even if the code never lets the event loop run. */
const WATCHDOG = `setInterval(() => { if (process.ppid !== ${process.ppid}) process.kill(process.pid, 'SIGKILL'); }, 1000)`;

context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
new Worker(WATCHDOG, { eval: true, stdin: false }).unref();
const exit = process.exit.bind(process);
const host = new CodeHost({ channel: new Socket({ fd: CHANNEL_FD }), load: loadCode, exit });
process.on('uncaughtException', error => host.crash(error));
