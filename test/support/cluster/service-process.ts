import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { compileCache } from '../../kit/compile-cache.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const READY_MS_MAX = 180_000;
const POLL_MS = 25;
const OUTPUT_CHARS_MAX = 1_000_000;

/** The bundle of a service that `npm test` has made for this run, else its source. */
export function programOf(service: string): string {
  const { TEST_SERVICES } = process.env;
  if (TEST_SERVICES === undefined) return join(ROOT, 'services', service, 'src', 'main.ts');
  return join(TEST_SERVICES, `${service}.mjs`);
}

/**
 * Node's options for a service. An agent's module must get the copy of `@hopline/agent` that its sub-agent uses. Outside any project, as in the
 * image, that is the copy of the bundle, but a module of this checkout would find the sources first.
 */
export function nodeOptionsOf(env: Record<string, string>): string[] {
  const { TEST_SERVICES } = process.env;
  if (TEST_SERVICES === undefined || !loadsModule(env)) return [];
  const url = pathToFileURL(join(TEST_SERVICES, 'agent.mjs')).href;
  const hook = `import { registerHooks } from 'node:module';
    registerHooks({ resolve: (name, context, next) => name === '@hopline/agent' ? { url: '${url}', shortCircuit: true } : next(name, context) });`;
  return ['--import', `data:text/javascript,${encodeURIComponent(hook)}`];
}

/** The command line of the checkout, because only that one names the npm scripts of the checkout in its hints. */
export const COMMAND_SOURCE = join(ROOT, 'packages/cli/src/main.ts');

/** Like `programOf`, for the command line. */
export function commandProgram(argv: readonly string[]): string {
  const { TEST_SERVICES } = process.env;
  // `hopline agent` loads an agent's module.
  if (TEST_SERVICES === undefined || argv[0] === 'agent') return COMMAND_SOURCE;
  return join(TEST_SERVICES, 'cli.mjs');
}

function loadsModule({ HOPLINE_AGENT = '{}' }: Record<string, string>): boolean {
  const { adapter, module } = JSON.parse(HOPLINE_AGENT) as { adapter?: string; module?: string };
  return adapter === 'module' || module !== undefined;
}

export type ServiceSpec = {
  service: string;
  instance: string;
  env: Record<string, string>;
  /** Runs a program of the test instead of a service: its path in the repository, and the URL path that answers 200 when it is ready. */
  program?: { path: string; readyPath: string };
};

/** One service as a process, killed, stopped and continued by signals. */
export class ServiceProcess {
  readonly spec: ServiceSpec;
  readonly port: number;
  #child: ChildProcess | undefined;
  #output = '';
  /** True if the process has logged since its last start that it is ready. */
  #isReady = false;

  constructor(spec: ServiceSpec, port: number) {
    this.spec = spec;
    this.port = port;
  }

  get url(): string {
    return `${this.#secure ? 'https' : 'http'}://127.0.0.1:${this.port}`;
  }

  /** Serves HTTPS. */
  get #secure(): boolean {
    return this.spec.env.HOPLINE_TLS_CERT_FILE !== undefined;
  }

  get pid(): number {
    return this.#child!.pid!;
  }

  /** The newest part of the process's log. */
  get output(): string {
    return this.#output;
  }

  /** True when the process was started and has ended. */
  get hasEnded(): boolean {
    const child = this.#child;
    return child !== undefined && (child.exitCode !== null || child.signalCode !== null);
  }

  async start(): Promise<void> {
    const { service, instance, env, program } = this.spec;
    const settings = {
      HOPLINE_HOST: '127.0.0.1',
      HOPLINE_PORT: String(this.port),
      HOPLINE_INSTANCE: instance,
      HOPLINE_STDIN_LIFELINE: '1',
    };
    const path = program === undefined ? programOf(service) : join(ROOT, program.path);
    const child = spawn(process.execPath, [...nodeOptionsOf(env), path], {
      cwd: ROOT,
      env: { PATH: process.env.PATH, HOME: process.env.HOME, ...compileCache(), ...settings, ...env },
    });
    this.#child = child;
    this.#isReady = false;
    let sinceStart = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => {
        this.#output = (this.#output + text).slice(-OUTPUT_CHARS_MAX);
        if (this.#child !== child || this.#isReady) return;
        sinceStart = (sinceStart + text).slice(-OUTPUT_CHARS_MAX);
        this.#isReady = sinceStart.includes('"msg":"ready"');
      });
    }
    await this.#ready(child);
  }

  /** Sends a signal and waits until the process has ended. */
  async kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, 'exit');
    child.kill(signal);
    await gone;
  }

  /** Freezes the process, as a long garbage collection or a paused virtual machine would. */
  pause(): void {
    process.kill(this.pid, 'SIGSTOP');
  }

  resume(): void {
    process.kill(this.pid, 'SIGCONT');
  }

  async #ready(child: ChildProcess): Promise<void> {
    const until = performance.now() + READY_MS_MAX;
    // Not `exit`, because output may still arrive after it.
    let isClosed = false;
    child.once('close', () => {
      isClosed = true;
    });
    while (performance.now() < until && !isClosed) {
      if (await this.#answers()) return;
      await new Promise(resolve => setTimeout(resolve, POLL_MS));
    }
    await this.kill();
    throw new Error(`${this.spec.instance} did not become ready:\n${this.#output}`);
  }

  async #answers(): Promise<boolean> {
    // The process itself must report that it is ready, because a process of another test may have taken the port. Tests choose their own
    // certificates and client authentication, so readiness checks neither.
    const isReady = this.spec.program !== undefined || this.#isReady;
    if (!isReady || this.#secure) return isReady;
    return fetch(`${this.url}${this.spec.program?.readyPath ?? '/readyz'}`)
      .then(response => response.ok)
      .catch(() => false);
  }
}
