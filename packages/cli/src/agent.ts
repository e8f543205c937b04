import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { basename, dirname, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import {
  commandLineFor,
  freePort,
  type LogLocation,
  logSettingsOf,
  type OwnCommand,
  runningCluster,
} from '@hopline/local-cluster';
import type { Output } from '@hopline/terminal';
import { showAgentLine } from './agent-line.ts';
import { EXIT, type ExitCode } from './exit-code.ts';
import { SourceWatch } from './source-watch.ts';
import { UsageError } from './usage-error.ts';

/** The process has reported what is wrong with its settings (packages/lifecycle). */
const EXIT_CONFIG = 78;
const SUB_AGENT = fileURLToPath(new URL('../../../services/sub-agent/src/main.ts', import.meta.url));

export type AgentRun = {
  file: string;
  name: string | undefined;
  export: string | undefined;
  /** Restart the agent when a source changes. */
  watch: boolean;
  json: boolean;
  /** The server of the cluster at NATS_URL; of a local cluster its own is known. */
  url: string;
  own: OwnCommand;
  output: Output;
  environment: Readonly<Record<string, string | undefined>>;
  /** Aborts to end the agent: running turns are drained first. */
  signal: AbortSignal;
};

/** `hopline agent`: runs the agent of a file as a sub-agent process of the cluster until it is interrupted. */
export async function agent(run: AgentRun): Promise<ExitCode> {
  const { file, environment, signal } = run;
  if (!existsSync(file)) throw new UsageError(`file ${file} does not exist`);
  const fault = typeScriptFault(file, process);
  if (fault !== undefined) throw new UsageError(fault);
  const log = logSettingsOf(environment, 'agent');
  const commandLine = commandLineFor(run.own, environment.NATS_URL ? run.url : runningCluster(environment).url);
  const started = { ...run, log, commandLine };
  if (run.watch) return watched(started);
  return (await runOnce(started, { port: 0, stop: signal })) === 'stopped' ? EXIT.interrupted : EXIT.failed;
}

/** Why a file cannot run on this Node; undefined: it can, or is not TypeScript. `typescript`: what this process does with types. */
export function typeScriptFault(
  file: string,
  { version, features }: { version: string; features: { typescript?: string | false } },
): string | undefined {
  if (!/\.[cm]?ts$/.test(file) || features.typescript) return undefined;
  return `${basename(file)} is TypeScript, which needs Node 22.18 or newer; this is ${version}. Compile it to JavaScript, or use a newer Node`;
}

type StartedRun = AgentRun & { log: LogLocation; commandLine: (args: string) => string };

/** Restarts the agent on the same port when a source changes, and waits for a change where it cannot run. */
async function watched(run: StartedRun): Promise<ExitCode> {
  const { file, output, signal } = run;
  const port = await freePort();
  const sources = new SourceWatch(dirname(resolve(file)));
  try {
    while (!signal.aborted) {
      const changed = sources.change();
      const stop = AbortSignal.any([signal, changed]);
      const end = await runOnce(run, { port, stop });
      if (signal.aborted) break;
      if (end === 'failed') {
        output.warn(`waiting for a change in ${dirname(file)}`);
        await aborted(stop);
      }
      if (!signal.aborted) output.line('a source has changed: restarting the agent');
    }
  } finally {
    sources.close();
  }
  return EXIT.interrupted;
}

type OneRun = { port: number; stop: AbortSignal };

/** Runs the agent until its process ends, or until `stop` aborts and its turns are drained. */
async function runOnce(run: StartedRun, { port, stop }: OneRun): Promise<'stopped' | 'failed'> {
  const { output } = run;
  const child = startSubAgent(run, port);
  const exited = once(child, 'exit') as Promise<[number | null]>;
  // The process drains when its standard input ends. Its own process group keeps the terminal's Ctrl-C away from it.
  const drain = () => child.stdin?.end();
  if (stop.aborted) drain();
  else stop.addEventListener('abort', drain, { once: true });
  void printLines(child.stdout as Readable, line => (run.json ? output.line(line) : showAgentLine(line, run)));
  // What the agent throws, and what its author prints there.
  void printLines(child.stderr as Readable, line => output.warn(line));
  const [code] = await exited;
  stop.removeEventListener('abort', drain);
  if (stop.aborted) return 'stopped';
  if (code !== EXIT_CONFIG) output.warn(`the agent process ended${code === null ? '' : ` with code ${code}`}`);
  return 'failed';
}

function startSubAgent({ file, name, export: exported, environment, log }: StartedRun, port: number): ChildProcess {
  const path = resolve(file);
  const entry = {
    adapter: 'module',
    path,
    ...(name !== undefined && { name }),
    ...(exported !== undefined && { export: exported }),
  };
  const settings = {
    ...log,
    HOPLINE_AGENT: JSON.stringify(entry),
    // HOPLINE_PORT in the environment is the port of the cluster.
    HOPLINE_PORT: String(port),
    HOPLINE_STDIN_LIFELINE: '1',
    HOPLINE_AGENT_ERRORS_FD: '2',
  };
  // A single file needs no package.json that declares it a module.
  const args = ['--disable-warning=MODULE_TYPELESS_PACKAGE_JSON', SUB_AGENT];
  return spawn(process.execPath, args, { detached: true, stdio: 'pipe', env: { ...environment, ...settings } });
}

async function aborted(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await once(signal, 'abort');
}

async function printLines(stream: Readable, print: (line: string) => void): Promise<void> {
  for await (const line of createInterface({ input: stream })) print(line);
}
