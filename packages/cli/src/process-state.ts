import type { ListedProcess } from './running-cluster.ts';

const PROBE_MS_MAX = 2000;

/**
 * State of a process of the local cluster. `isReady`: it does its work. `fault`: why not, or, of a sub-agent that is ready, why its
 * agent cannot work; a clause that follows a name.
 */
export type ProcessState = { isReady: boolean; fault: string | null };

/** Asks the process: its /readyz, which lists an agent without an answer as degraded. nats-server has no such path. */
export async function processState({ pid, url, service, ending, agent }: ListedProcess): Promise<ProcessState> {
  if (pid === null) return { isReady: false, fault: `does not run (${ending ?? 'starting'})` };
  if (!isAlive(pid)) return { isReady: false, fault: `does not run (process ${pid} is gone)` };
  if (service === 'nats') return { isReady: true, fault: null };
  let body: { degraded?: { check: string; reason: string }[]; not_ready?: { check: string; reason: string }[] };
  let status: number;
  try {
    const response = await fetch(new URL('/readyz', url), { signal: AbortSignal.timeout(PROBE_MS_MAX) });
    status = response.status;
    body = JSON.parse(await response.text());
  } catch {
    return { isReady: false, fault: 'does not answer' };
  }
  if (status !== 200) {
    const checks = body.not_ready?.map(({ check, reason }) => `${check}: ${reason}`) ?? [];
    return { isReady: false, fault: `is not ready${checks.length === 0 ? '' : ` (${checks.join(', ')})`}` };
  }
  const reason = body.degraded?.find(({ check }) => check === 'agent')?.reason;
  return { isReady: true, fault: reason === undefined ? null : agentFault(reason, agent?.target ?? '') };
}

/** The launcher may have been killed, and its list with it outdated. */
function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** @param reason a code such as ECONNREFUSED, or the name of an error */
function agentFault(reason: string, target: string): string {
  if (reason === 'pending') return `has not answered yet (${target})`;
  const isProgram = reason === 'ENOENT' || reason === 'EACCES';
  return `${isProgram ? 'cannot be started' : 'cannot be reached'} (${reason} ${target})`;
}
