import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { basename, dirname, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { commandLineFor, freePort, type LogLocation, logSettingsOf, runningCluster } from '@hopline/local-cluster';
import { type CommandContext, command } from '../command/command.ts';
import { EXIT, type ExitCode } from '../command/exit-code.ts';
import { flag, text } from '../command/options.ts';
import { refuseInBinary } from '../command/refuse-in-binary.ts';
import { one } from '../command/subjects.ts';
import { UsageError } from '../command/usage-error.ts';
import { showAgentLine } from './agent-line.ts';
import { SourceWatch } from './source-watch.ts';

/** Exit code of a process that has reported invalid settings (packages/lifecycle). */
const EXIT_CONFIG = 78;
/** Variables that the code of an agent does not get: they are logins and settings of the cluster. */
const OF_CLUSTER = /^(?:NATS|HOPLINE)_/;
/** Names and number of variables that an entry may have. */
const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]{0,127}$/;
const VARIABLES_MAX = 1_024;
/** Bundles of the package `hopline` lie beside each other. */
const BUNDLED_SUB_AGENT = fileURLToPath(new URL('./sub-agent.mjs', import.meta.url));
const SUB_AGENT = existsSync(BUNDLED_SUB_AGENT)
  ? BUNDLED_SUB_AGENT
  : fileURLToPath(new URL('../../../../services/sub-agent/src/main.ts', import.meta.url));

export const agent = command({
  name: 'agent',
  subject: one('FILE', 'the file of an agent', 'files'),
  summary: 'runs your own agent in the local cluster',
  details: 'a module that exports an agent; it runs as a process of the cluster until Ctrl-C',
  asksNoServer: true,
  options: {
    name: text('NAME', "name in the cluster; default: the name in the agent's definition"),
    export: text('NAME', 'the export that is the agent (default: default)'),
    watch: flag('restarts the agent when code in its folder, or JSON that it imports, changes; running turns end first'),
  },
  notes: 'The cluster is the one at NATS_URL, or the one that `npm start` runs (HOPLINE_HOME).',
  async run({ subject: file, options }, context) {
    const { environment, signal, own, url, json, output } = context;
    refuseInBinary('hopline agent');
    if (!existsSync(file)) throw new UsageError(`file ${file} does not exist`);
    const fault = typeScriptFault(file, process);
    if (fault !== undefined) throw new UsageError(fault);
    const log = logSettingsOf(environment, 'agent');
    // Hints name `url`, whose ingress belongs to the cluster at NATS_URL; a local cluster names its own ingress.
    const commandLine = commandLineFor(own, environment.NATS_URL ? url : runningCluster(environment).url);
    const started = { file, name: options.name, export: options.export, log, commandLine, json, output, environment, signal };
    if (options.watch) return watched(started);
    return (await runOnce(started, { port: 0, stop: signal })) === 'stopped' ? EXIT.interrupted : EXIT.failed;
  },
});

/** `signal` aborts to end the agent: running turns are drained first. */
type StartedRun = Pick<CommandContext, 'json' | 'output' | 'environment' | 'signal' | 'commandLine'> & {
  file: string;
  name: string | undefined;
  export: string | undefined;
  log: LogLocation;
};

/** Why this Node cannot run a file; undefined if it can, or if the file is not TypeScript. `typescript`: how this process handles types. */
export function typeScriptFault(
  file: string,
  { version, features }: { version: string; features: { typescript?: string | false } },
): string | undefined {
  if (!/\.[cm]?ts$/.test(file) || features.typescript) return undefined;
  return `${basename(file)} is TypeScript, which needs Node 22.18 or newer; this is ${version}. Compile it to JavaScript, or use a newer Node`;
}

/** Restarts the agent on the same port when a source changes. If the agent cannot run, waits for the next change. */
async function watched(run: StartedRun): Promise<ExitCode> {
  const { file, output, signal } = run;
  const port = await freePort();
  const sources = new SourceWatch(file);
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
  // Standard error has errors that the agent throws, and lines that its author prints there.
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
    // The author runs code of their own, which gets the keys of their shell.
    env: variablesOf(environment),
    ...(name !== undefined && { name }),
    ...(exported !== undefined && { export: exported }),
  };
  const settings = {
    ...log,
    HOPLINE_AGENT: JSON.stringify(entry),
    // HOPLINE_PORT in the environment is the port of the cluster, not of the agent.
    HOPLINE_PORT: String(port),
    HOPLINE_STDIN_LIFELINE: '1',
    HOPLINE_AGENT_ERRORS_FD: '2',
    HOPLINE_CODE_USER: 'same',
  };
  // A single file needs no package.json to be a module.
  const args = ['--disable-warning=MODULE_TYPELESS_PACKAGE_JSON', SUB_AGENT];
  return spawn(process.execPath, args, { detached: true, stdio: 'pipe', env: { ...environment, ...settings } });
}

/** The variables that the code of the author gets. */
export function variablesOf(environment: Readonly<Record<string, string | undefined>>): string[] {
  const names = Object.keys(environment).filter(name => VARIABLE.test(name) && !OF_CLUSTER.test(name));
  return names.filter(name => environment[name] !== undefined).slice(0, VARIABLES_MAX);
}

async function aborted(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await once(signal, 'abort');
}

async function printLines(stream: Readable, print: (line: string) => void): Promise<void> {
  for await (const line of createInterface({ input: stream })) print(line);
}
