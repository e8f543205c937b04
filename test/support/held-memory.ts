import type { ServiceProcess } from './cluster/service-process.ts';

/** NODE_OPTIONS of a process that prints its used heap on SIGUSR2. `code`: runs in it before the service. */
export function printsHeap(code = ''): string {
  const print = "gc();const m=process.memoryUsage();console.log('heap '+(m.heapUsed+m.external)+';')";
  return `--expose-gc --import=data:text/javascript,${encodeURIComponent(`${code}process.on('SIGUSR2',()=>{${print}})`)}`;
}
const POLL_MS = 20;

/** Bytes of heap that such a process holds. */
export async function heapBytes(service: ServiceProcess): Promise<number> {
  const printed = () => [...service.output.matchAll(/heap (\d+);/g)];
  const before = printed().length;
  process.kill(service.pid, 'SIGUSR2');
  while (printed().length === before) await new Promise(resolve => setTimeout(resolve, POLL_MS));
  return Number(printed().at(-1)![1]);
}
