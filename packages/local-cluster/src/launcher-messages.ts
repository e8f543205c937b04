/**
 * Messages between the launcher of `npm start` and its console, over the IPC channel with which the launcher starts it. A process that
 * something else started, such as a container, has no such channel, so it cannot ask for anything.
 */

/** First message of the launcher: every request must repeat its token, which no page of another origin can read. */
export type LauncherHello = { token: string };

/** Kills a process of the cluster with SIGKILL. The launcher restarts it, as after any death. */
export type KillRequest = { id: number; token: string; kill: string };

/** `fault`: a sentence for people that explains why nothing was killed. Absent when the process has ended. */
export type KillAnswer = { id: number; fault?: string };

export function isLauncherHello(message: unknown): message is LauncherHello {
  return typeof (message as LauncherHello | null)?.token === 'string';
}

export function isKillRequest(message: unknown): message is KillRequest {
  const { id, token, kill } = (message ?? {}) as Partial<KillRequest>;
  return Number.isSafeInteger(id) && typeof token === 'string' && typeof kill === 'string';
}

export function isKillAnswer(message: unknown): message is KillAnswer {
  const { id, fault } = (message ?? {}) as Partial<KillAnswer>;
  return Number.isSafeInteger(id) && (fault === undefined || typeof fault === 'string');
}
