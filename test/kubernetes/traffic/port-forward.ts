import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';

const OPEN_MS_MAX = 15_000;

/** A port of a pod on a free port of this machine, until the stack ends. */
export async function forwardPort(
  stack: AsyncDisposableStack,
  { namespace, pod, port }: { namespace: string; pod: string; port: number },
): Promise<number> {
  const args = ['--namespace', namespace, 'port-forward', `pod/${pod}`, `:${port}`];
  return openedPort(stack, args, /Forwarding from 127\.0\.0\.1:(\d+)/);
}

/** The API of the cluster, with the credentials of KUBECONFIG, on a port of this machine. */
export async function proxyApi(stack: AsyncDisposableStack): Promise<number> {
  return openedPort(stack, ['proxy', '--port=0'], /Starting to serve on 127\.0\.0\.1:(\d+)/);
}

async function openedPort(stack: AsyncDisposableStack, args: string[], line: RegExp): Promise<number> {
  // In a process group of its own, so that an interrupt of the terminal does not end it before the report.
  const child = spawn('kubectl', args, { stdio: ['ignore', 'pipe', 'ignore'], detached: true });
  stack.defer(() => end(child));
  let printed = '';
  const opened = Promise.withResolvers<number>();
  child.stdout.on('data', (text: Buffer) => {
    printed += text.toString();
    const port = line.exec(printed)?.[1];
    if (port !== undefined) opened.resolve(Number(port));
  });
  const fail = () => opened.reject(new Error(`kubectl ${args.join(' ')} opened no port`));
  child.once('exit', fail);
  const timer = setTimeout(fail, OPEN_MS_MAX);
  return opened.promise.finally(() => clearTimeout(timer));
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill();
  await once(child, 'exit');
}
