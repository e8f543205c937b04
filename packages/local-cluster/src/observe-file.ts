import { readFileSync } from 'node:fs';
import { isAlive } from './process-state.ts';

/** File in the home of a local cluster, while `npm run observe` runs. */
export const OBSERVE_FILE = 'observe.json';

/** The programs that `npm run observe` has started, by name, and its own process. */
export type ObserveFile = { pid: number; prometheus?: string; jaeger?: string; grafana?: string };

/** The addresses of the programs. Empty if `npm run observe` is not running, even if it was killed and left its file. */
export function observedAt(home: string): Omit<ObserveFile, 'pid'> {
  let file: ObserveFile;
  try {
    file = JSON.parse(readFileSync(`${home}/${OBSERVE_FILE}`, 'utf8')) as ObserveFile;
  } catch {
    return {};
  }
  const { pid, ...urls } = file;
  return Number.isInteger(pid) && isAlive(pid) ? urls : {};
}
