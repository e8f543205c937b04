import { A2AError } from '@hopline/a2a';
import { isLoopback } from '@hopline/endpoint';
import { runningCluster } from '@hopline/local-cluster';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { LauncherLink } from './launcher-link.ts';

/** Header with the launcher's token. A form of another page cannot send a header, and the console answers no preflight request. */
export const LAUNCHER_TOKEN_HEADER = 'x-hopline-launcher-token';

/** A process that the page may kill. */
export type KillableProcess = {
  service: string;
  instance: string;
  agent?: string;
  /** Null while it is not running. */
  pid: number | null;
  restarts: number;
};

type KillDeps = {
  launcher?: LauncherLink | undefined;
  /** Address on which the console listens. */
  host: string;
  /** Absent: the console has no name for others. */
  publicUrl: string | undefined;
  home: string | undefined;
  /** Rejects unless ingress accepts the credentials of the request. */
  requireCaller: (request: FastifyRequest) => Promise<void>;
};

/** The token for the page; undefined if the page may kill nothing: without a launcher, and at an address that others reach. */
export function killToken({ launcher, host, publicUrl }: Pick<KillDeps, 'launcher' | 'host' | 'publicUrl'>): string | undefined {
  const isForThisUser = isLoopback(host) && (publicUrl === undefined || isLoopback(new URL(publicUrl).hostname));
  return isForThisUser ? launcher?.token : undefined;
}

/** The processes of the local cluster, and a way to kill one on purpose, for people who want to watch its effect on a stream. */
export function registerKills(scope: FastifyInstance, deps: KillDeps): void {
  const tokenOf = async (request: FastifyRequest): Promise<string> => {
    if (killToken(deps) === undefined) throw new A2AError('METHOD_NOT_FOUND', { detail: 'no such path' });
    const given = request.headers[LAUNCHER_TOKEN_HEADER];
    if (typeof given !== 'string')
      throw new A2AError('PERMISSION_DENIED', { detail: 'the request has no token of the launcher' });
    await deps.requireCaller(request);
    return given;
  };

  scope.get('/processes.json', { exposeHeadRoute: false }, async request => {
    await tokenOf(request);
    return { processes: processesOf(deps.home) };
  });

  scope.post<{ Params: { instance: string } }>('/processes/:instance/kill', async (request, reply) => {
    const token = await tokenOf(request);
    await deps.launcher!.kill(request.params.instance, token);
    return reply.code(204).send();
  });
}

function processesOf(home: string | undefined): KillableProcess[] {
  const { processes } = runningCluster(home === undefined ? {} : { HOPLINE_HOME: home });
  return processes
    .filter(({ service }) => service !== 'console')
    .map(({ service, instance, agent, pid, restarts }) => ({
      service,
      instance,
      ...(agent && { agent: agent.name }),
      pid,
      restarts,
    }));
}
