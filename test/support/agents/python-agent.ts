import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { freePort } from '@hopline/local-cluster';
import { type FoundPython, newestPythonWith } from '../python/python-with-httpx.ts';

/** The server of agents in Python. */
export const UVICORN = 'uvicorn==0.54.0';

/** Agents written with the Python SDK, by SDK version: one echoes, the other plays the script in its message (`PythonStep`). */
const AGENTS = {
  echo: { '1': '../../../infra/examples/python-a2a/agent.py', '0.3': 'python/agent_0_3.py' },
  scripted: { '1': 'python/scripted_1.py', '0.3': 'python/scripted_0_3.py' },
} as const;
export type PythonSdk = keyof (typeof AGENTS)['echo'];

/** A step of a scripted agent. The text of a message to it is its script, as JSON. */
export type PythonStep =
  | [name: 'status', state: string, text?: string]
  | [name: 'artifact', id: string, text: string, append: boolean, last: boolean]
  | [name: 'pause', seconds: number]
  | [name: 'raise'];

/** Finds a Python interpreter that has this SDK version and `modules`: the one in A2A_PYTHON_1 or A2A_PYTHON_0_3, else the one on PATH. */
export function pythonWith(sdk: PythonSdk, modules: readonly string[] = ['starlette', 'uvicorn']): string | undefined {
  const python = process.env[`A2A_PYTHON_${sdk.replace('.', '_')}`] ?? 'python3';
  return versionOf(python, 'a2a-sdk', modules)?.startsWith(`${sdk}.`) ? python : undefined;
}

/**
 * A framework whose agents serve A2A: its package, the agent of the tests, a variable that names a Python with both, and the newest version, which is
 * installed where the variable is not set.
 */
export const FRAMEWORKS = [
  { name: 'google-adk', script: 'python/adk_agent.py', variable: 'A2A_PYTHON_ADK', requirement: 'google-adk[a2a]==2.13.0' },
  {
    name: 'strands-agents',
    script: 'python/strands_agent.py',
    variable: 'A2A_PYTHON_STRANDS',
    requirement: 'strands-agents[a2a]==1.62.0',
  },
  {
    name: 'fasta2a',
    script: 'python/fasta2a_agent.py',
    variable: 'A2A_PYTHON_FASTA2A',
    requirement: 'fasta2a[pydantic-ai]==2.1.1',
  },
] as const;
export type Framework = (typeof FRAMEWORKS)[number];

/** A Python interpreter with the framework and uvicorn. */
export async function pythonWithFramework({ name, variable, requirement }: Framework): Promise<FoundPython> {
  const { [variable]: named } = process.env;
  if (named !== undefined) {
    if (versionOf(named, name, ['uvicorn']) === undefined)
      throw new Error(`${variable} is not a Python with ${name} and uvicorn: ${named}`);
    return { python: named };
  }
  return newestPythonWith([requirement, UVICORN]);
}

export async function startFrameworkAgent(python: string, { script }: Framework, ...args: string[]): Promise<PythonAgent> {
  return await startPythonScript(python, fileURLToPath(new URL(script, import.meta.url)), { args });
}

/** Version of an installed package; undefined when it or one of `modules` is absent. */
function versionOf(python: string, name: string, modules: readonly string[]): string | undefined {
  const probe = `import ${['importlib.metadata', ...modules].join(', ')}; print(importlib.metadata.version("${name}"))`;
  try {
    return execFileSync(python, ['-c', probe], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
  } catch {
    return undefined;
  }
}

/** Number of times to look for the card of a starting agent, 100 ms apart: on a busy machine the import of a framework takes a minute. */
const STARTS_MAX = 3_000;

export type PythonAgent = { url: string; stop(): Promise<void> };

/** Starts the agent and waits until it serves its card. */
export async function startPythonAgent(python: string, sdk: PythonSdk, kind: keyof typeof AGENTS = 'echo'): Promise<PythonAgent> {
  return await startPythonScript(python, fileURLToPath(new URL(AGENTS[kind][sdk], import.meta.url)));
}

/** Agents of packages/python/tests that only answer, in the order of their ports. */
const KIT_AGENTS = ['greeter', 'refunder', 'forecaster'] as const;

/** Serves them in one process, because importing the kit takes 1.3 CPU seconds. */
export async function startKitAgents(
  python: string,
  options: { cwd: string; env: NodeJS.ProcessEnv },
): Promise<Record<(typeof KIT_AGENTS)[number], string> & Pick<PythonAgent, 'stop'>> {
  const ports = await Promise.all(KIT_AGENTS.map(() => freePort()));
  const child = spawn(python, ['-m', 'tests.agents', ...ports.map(String)], {
    ...options,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const served = ports.map(port => untilServed('tests.agents', child, `http://127.0.0.1:${port}/`));
  const [greeter, refunder, forecaster] = await Promise.all(served);
  return { greeter: greeter!.url, refunder: refunder!.url, forecaster: forecaster!.url, stop: greeter!.stop };
}

/** Serves an application, such as `greeter:app`, at the port that its card names. */
export async function startUvicorn(
  python: string,
  app: string,
  port: number,
  options: { cwd: string; env: NodeJS.ProcessEnv },
): Promise<PythonAgent> {
  const args = ['-m', 'uvicorn', app, '--port', String(port), '--log-level', 'warning'];
  return await startServer(app, () => spawn(python, args, { ...options, stdio: ['ignore', 'ignore', 'inherit'] }), port);
}

/** Runs a script that serves a card at the port of its first argument. */
export async function startPythonScript(
  python: string,
  script: string,
  { args = [], env = process.env }: { args?: readonly string[]; env?: NodeJS.ProcessEnv } = {},
): Promise<PythonAgent> {
  return await startServer(script, port =>
    spawn(python, [script, port, ...args], { env, stdio: ['ignore', 'ignore', 'inherit'] }),
  );
}

async function startServer(name: string, start: (port: string) => ChildProcess, own?: number): Promise<PythonAgent> {
  const port = own ?? (await freePort());
  return await untilServed(name, start(String(port)), `http://127.0.0.1:${port}/`);
}

/** Waits until the process serves a card, either at `url` or at another path of its server. */
export async function untilServed(
  name: string,
  child: ChildProcess,
  url: string,
  card = '.well-known/agent-card.json',
): Promise<PythonAgent> {
  const exited = once(child, 'exit');
  for (let tries = 0; tries < STARTS_MAX && child.exitCode === null; tries += 1) {
    const found = await fetch(new URL(card, url)).catch(() => undefined);
    if (found?.ok) {
      const stop = async () => {
        child.kill('SIGKILL');
        await exited;
      };
      return { url, stop };
    }
    await new Promise(resolve => setTimeout(resolve, 100));
  }
  child.kill('SIGKILL');
  throw new Error(`${name} served no card in time`);
}
