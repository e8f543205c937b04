import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { showAgentLine } from './agent-line.ts';
import { EXIT, type ExitCode } from './exit-code.ts';
import type { Output } from './output.ts';
import { natsUrlOf } from './running-cluster.ts';
import { UsageError } from './usage-error.ts';

/** The process has reported what is wrong with its settings (packages/lifecycle). */
const EXIT_CONFIG = 78;
const SUB_AGENT = fileURLToPath(new URL('../../../services/sub-agent/src/main.ts', import.meta.url));

export type AgentRun = {
  file: string;
  name: string | undefined;
  export: string | undefined;
  json: boolean;
  commandLine: (args: string) => string;
  output: Output;
  environment: Readonly<Record<string, string | undefined>>;
  /** Aborts to end the agent: running turns are drained first. */
  signal: AbortSignal;
};

/** `hopline agent`: runs the agent of a file as a sub-agent process of the cluster until it is interrupted. */
export async function agent(run: AgentRun): Promise<ExitCode> {
  const { file, environment, output, signal } = run;
  if (!existsSync(file)) throw new UsageError(`file ${file} does not exist`);
  const child = startSubAgent(run, natsUrlOf(environment));
  const exited = once(child, 'exit') as Promise<[number | null]>;
  // The process drains when its standard input ends. Its own process group keeps the terminal's Ctrl-C away from it.
  const drain = () => child.stdin?.end();
  if (signal.aborted) drain();
  else signal.addEventListener('abort', drain, { once: true });
  for (const stream of [child.stdout, child.stderr]) void printLines(stream as Readable, run);
  const [code] = await exited;
  if (signal.aborted) return EXIT.interrupted;
  if (code !== EXIT_CONFIG) output.warn(`the agent process ended${code === null ? '' : ` with code ${code}`}`);
  return EXIT.failed;
}

function startSubAgent({ file, name, export: exported, environment }: AgentRun, natsUrl: string): ChildProcess {
  const path = resolve(file);
  const entry = {
    adapter: 'module',
    path,
    ...(name !== undefined && { name }),
    ...(exported !== undefined && { export: exported }),
  };
  const settings = {
    NATS_URL: natsUrl,
    HOPLINE_AGENT: JSON.stringify(entry),
    // HOPLINE_PORT in the environment is the port of the cluster.
    HOPLINE_PORT: '0',
    HOPLINE_STDIN_LIFELINE: '1',
  };
  // A single file needs no package.json that declares it a module.
  const args = ['--disable-warning=MODULE_TYPELESS_PACKAGE_JSON', SUB_AGENT];
  return spawn(process.execPath, args, { detached: true, stdio: 'pipe', env: { ...environment, ...settings } });
}

async function printLines(stream: Readable, run: AgentRun): Promise<void> {
  for await (const line of createInterface({ input: stream })) {
    if (run.json) run.output.line(line);
    else showAgentLine(line, run);
  }
}
