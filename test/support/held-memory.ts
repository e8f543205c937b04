import type { ServiceProcess } from './cluster/service-process.ts';

/** NODE_OPTIONS of a process whose frequent collections leave only the memory that is held. At SIGUSR2 it prints its heap. */
export const HELD_MEMORY = `--expose-gc --import=data:text/javascript,${encodeURIComponent(`
setInterval(gc,200).unref();
process.on('SIGUSR2',()=>{gc();const m=process.memoryUsage();console.log('heap '+(m.heapUsed+m.external)+';')})`)}`;
const POLL_MS = 20;

/** Bytes that a process with HELD_MEMORY holds. */
export async function heapBytes(service: ServiceProcess): Promise<number> {
  const printed = () => [...service.output.matchAll(/heap (\d+);/g)];
  const before = printed().length;
  process.kill(service.pid, 'SIGUSR2');
  while (printed().length === before) await new Promise(resolve => setTimeout(resolve, POLL_MS));
  return Number(printed().at(-1)![1]);
}
