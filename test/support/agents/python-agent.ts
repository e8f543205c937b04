import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { freePort } from '@hopline/cli/free-port';

/** Agents written with the Python SDK, by SDK version. */
const AGENTS = {
  '1': fileURLToPath(new URL('../../../infra/examples/python-a2a/agent.py', import.meta.url)),
  '0.3': fileURLToPath(new URL('python/agent_0_3.py', import.meta.url)),
} as const;
export type PythonSdk = keyof typeof AGENTS;

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
export async function startPythonAgent(python: string, sdk: PythonSdk): Promise<PythonAgent> {
  const port = await freePort();
  const child = spawn(python, [AGENTS[sdk], String(port)], { stdio: ['ignore', 'ignore', 'inherit'] });
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
  throw new Error(`the agent of a2a-sdk ${sdk} served no card in time`);
}
