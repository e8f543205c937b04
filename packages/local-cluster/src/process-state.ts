import type { ListedProcess } from './running-cluster.ts';

const PROBE_MS_MAX = 2000;
/** Reason that a sub-agent reports until its agent has answered for the first time. */
const PENDING = 'pending';

/**
 * State of a process of the local cluster. `isReady`: it does its work. `fault`: a clause, to follow a name, that explains why the process
 * does not work, why the agent of a ready sub-agent cannot work, or what a ready process lacks. `isStarting`: its only fault is that it has
 * not answered yet.
 */
export type ProcessState = { isReady: boolean; fault: string | null; isStarting: boolean };

/** Asks the process for its state at /readyz, which lists an agent without an answer as degraded. nats-server has no such path. */
export async function processState({ pid, url, service, ending, agent }: ListedProcess): Promise<ProcessState> {
  const down = { isReady: false, isStarting: false };
  if (pid === null) return { ...down, fault: `is not running (${ending ?? 'starting'})`, isStarting: ending === undefined };
  // The launcher's list is outdated if the launcher was killed.
  if (!isAlive(pid)) return { ...down, fault: `is not running (process ${pid} is gone)` };
  if (service === 'nats') return { isReady: true, fault: null, isStarting: false };
  let body: { degraded?: { check: string; reason: string }[]; not_ready?: { check: string; reason: string }[] };
  let status: number;
  try {
    const response = await fetch(new URL('/readyz', url), { signal: AbortSignal.timeout(PROBE_MS_MAX) });
    status = response.status;
    body = JSON.parse(await response.text());
  } catch {
    return { ...down, fault: 'does not answer' };
  }
  if (status !== 200) {
    const checks = body.not_ready?.map(({ check, reason }) => `${check}: ${reason}`) ?? [];
    const isStarting = body.not_ready?.every(({ reason }) => reason === 'starting') ?? false;
    return { ...down, fault: `is not ready${checks.length === 0 ? '' : ` (${checks.join(', ')})`}`, isStarting };
  }
  const degraded = body.degraded ?? [];
  const reason = degraded.find(({ check }) => check === 'agent')?.reason;
  if (reason !== undefined)
    return { isReady: true, fault: agentFault(reason, agent?.target ?? ''), isStarting: reason === PENDING };
  const checks = degraded.map(one => `${one.check}: ${one.reason}`).join(', ');
  return { isReady: true, fault: checks === '' ? null : `is degraded (${checks})`, isStarting: false };
}

/** Whether a process with this id exists, including a zombie. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** @param reason a code such as ECONNREFUSED, or the name of an error */
function agentFault(reason: string, target: string): string {
  if (reason === PENDING) return `has not answered yet (${target})`;
  if (reason === 'TooManyTools') return 'has more MCP tools than an agent may have; ask the agent, and it reports the numbers';
  const isProgram = reason === 'ENOENT' || reason === 'EACCES';
  return `${isProgram ? 'cannot be started' : 'cannot be reached'} (${reason} ${target})`;
}
