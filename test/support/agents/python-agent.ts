import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { freePort } from '@hopline/cli/free-port';

/** Agents written with the Python SDK, by SDK version: one that echoes, and one that plays the script it is sent (`PythonStep`). */
const AGENTS = {
  echo: { '1': '../../../infra/examples/python-a2a/agent.py', '0.3': 'python/agent_0_3.py' },
  scripted: { '1': 'python/scripted_1.py', '0.3': 'python/scripted_0_3.py' },
} as const;
export type PythonSdk = keyof (typeof AGENTS)['echo'];

/** A step of a scripted agent; a script is the text of its message, as JSON. */
export type PythonStep =
  | [name: 'status', state: string, text?: string]
  | [name: 'artifact', id: string, text: string, append: boolean, last: boolean]
  | [name: 'pause', seconds: number]
  | [name: 'raise'];

/** A Python interpreter with this SDK version and `modules`: A2A_PYTHON_1 or A2A_PYTHON_0_3, else the one on PATH. */
export function pythonWith(sdk: PythonSdk, modules: readonly string[] = ['starlette', 'uvicorn']): string | undefined {
  const python = process.env[`A2A_PYTHON_${sdk.replace('.', '_')}`] ?? 'python3';
  const probe = `import ${['importlib.metadata', ...modules].join(', ')}; print(importlib.metadata.version("a2a-sdk"))`;
  try {
    const version = execFileSync(python, ['-c', probe], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
    return version.startsWith(`${sdk}.`) ? python : undefined;
  } catch {
    return undefined;
  }
}

export type PythonAgent = { url: string; stop(): Promise<void> };

/** Starts the agent and waits until it serves its card. */
export async function startPythonAgent(python: string, sdk: PythonSdk, kind: keyof typeof AGENTS = 'echo'): Promise<PythonAgent> {
  return await startPythonServer(python, fileURLToPath(new URL(AGENTS[kind][sdk], import.meta.url)));
}

/** Runs a script that serves a card at the port of its first argument. */
export async function startPythonServer(python: string, script: string): Promise<PythonAgent> {
  const port = await freePort();
  const child = spawn(python, [script, String(port)], { stdio: ['ignore', 'ignore', 'inherit'] });
  const url = `http://127.0.0.1:${port}/`;
  const exited = once(child, 'exit');
  for (let tries = 0; tries < 300 && child.exitCode === null; tries += 1) {
    const found = await fetch(`${url}.well-known/agent-card.json`).catch(() => undefined);
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
  throw new Error(`${script} served no card in time`);
}
