import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import type { Writable } from 'node:stream';
import {
  type CodeAgentOptions,
  type CodeUser,
  chooseCodeUser,
  codeEnvironment,
  connectHost,
  HOST,
  mcpSocketOf,
  startHostProcess,
} from '@hopline/agent-code';
import type { Logger, Telemetry } from '@hopline/telemetry';

type CodeProcessesOptions = {
  /** HOPLINE_CODE_USER. */
  user: string;
  /** HOPLINE_CODE_SOCKET. Absent: hosts are children of this process. */
  socket: string | undefined;
  /** The environment of this process. Code gets a part of it. */
  environment: Readonly<Record<string, string | undefined>>;
  /** Options of Node of this process. */
  nodeOptions: readonly string[];
  stdout: Writable;
  stderr: Writable;
  logger: Logger;
  /** Shows text of the code to its author only. */
  showAuthor: (error: unknown) => void;
  exportSpan?: Telemetry['exportSpan'] | undefined;
};

/** An option that opens a debugger port, which only one process can have. */
const DEBUGGER = /^--inspect/;

/** Starts the code that an entry names, apart from this process, which holds the login. */
export class CodeProcesses {
  readonly #options: CodeProcessesOptions;

  constructor(options: CodeProcessesOptions) {
    this.#options = options;
  }

  /** The code runs in a container of its own, with that container's environment. */
  get isElsewhere(): boolean {
    return this.#options.socket !== undefined;
  }

  /** The socket through which the container of the code starts MCP servers. Undefined: they are children of this process. */
  get serverSocket(): string | undefined {
    const { socket } = this.#options;
    return socket === undefined ? undefined : mcpSocketOf(socket);
  }

  /** How a module or a graph runs: in a host of its own, with a place for its output lines. `env`: the variables that the entry names. */
  host({
    name,
    file,
    env,
  }: {
    name: string;
    file: string;
    env: readonly string[];
  }): Pick<CodeAgentOptions, 'start' | 'name' | 'logger' | 'showAuthor' | 'exportSpan'> {
    const { environment, socket, stdout, stderr, logger, showAuthor, exportSpan } = this.#options;
    const shown = { name, logger, showAuthor, exportSpan };
    if (socket !== undefined) return { ...shown, start: () => connectHost(socket) };
    const user = this.userOf({ name, paths: [process.execPath, HOST, file] });
    const nodeOptions = this.#options.nodeOptions.filter(option => !DEBUGGER.test(option));
    const host = { env: codeEnvironment(environment, env, user), user, nodeOptions, stdout, stderr };
    return { ...shown, start: () => startHostProcess(host) };
  }

  /** Where a command without a folder is found. */
  onPath(command: string): string {
    if (command.includes('/')) return command;
    const folders = (this.#options.environment.PATH ?? '').split(delimiter);
    return folders.map(folder => join(folder, command)).find(path => existsSync(path)) ?? command;
  }

  /**
   * The user as which code runs; undefined: the user of this process, which is logged. `paths`: the paths that the code must be able to
   * read.
   */
  userOf({ name, paths }: { name: string; paths: readonly string[] }): CodeUser | undefined {
    const { user: setting, logger } = this.#options;
    const { user, shared } = chooseCodeUser({ setting, name, paths, ownUid: process.getuid?.(), canStart });
    // An operator who sets `same` knows it.
    const level = setting === 'same' ? 'debug' : 'info';
    if (shared !== undefined)
      logger[level](
        { agent: name, reason: shared },
        'the code of this agent runs as the user of its sub-agent, and can read the login of NATS',
      );
    return user;
  }
}

/** Tries to run Node as the user. */
function canStart(user: CodeUser): boolean {
  return spawnSync(process.execPath, ['--version'], { ...user, env: {}, stdio: 'ignore' }).status === 0;
}
