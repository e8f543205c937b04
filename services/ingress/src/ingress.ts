import { agentCard, outputModesOf } from '@hopline/a2a';
import { LIMITS, type Limits, openDoor } from '@hopline/a2a-door';
import { registerA2A, serverOptions } from '@hopline/a2a-http';
import type { Authenticator, DoorTls } from '@hopline/auth';
import type { Profile } from '@hopline/events';
import { type ProbeOptions, registerProbes } from '@hopline/lifecycle';
import { LiveAgents, type Log } from '@hopline/log';
import type { HopMetrics, Logger } from '@hopline/telemetry';
import fastify from 'fastify';
import { mergedSkills } from './merged-skills.ts';

export type IngressDeps = {
  log: Log;
  profile: Profile;
  cardName: string;
  version: string;
  /** Where clients reach the door; absent: the address it listens on. */
  publicUrl: string | undefined;
  limits: Partial<Limits>;
  /** Absent: HTTP. */
  tls?: DoorTls | undefined;
  /** Absent: nobody is asked who they are. */
  auth?: Authenticator | undefined;
  /** Whether clients may name webhooks; the card says so. */
  push: boolean;
  probes: ProbeOptions;
  metrics: HopMetrics;
  logger: Logger;
};

export type Ingress = {
  listen(host: string, port: number): Promise<string>;
  close(): Promise<void>;
};

/** The public door: A2A over HTTP, and the probes. Keeps no state of tasks that is not in the log. */
export async function createIngress(deps: IngressDeps): Promise<Ingress> {
  const { log, logger, metrics, profile, cardName: name, version, auth, push } = deps;
  const limits = { ...LIMITS, ...deps.limits };
  const app = fastify({ ...serverOptions(limits), https: deps.tls?.options ?? null });
  deps.tls?.keepFresh(app.server);
  const stop = new AbortController();
  const agents = new LiveAgents(() => performance.now());
  await agents.follow(log.agents, stop.signal, error => logger.warn({ err: error }, 'agent registry lost'));
  let url = deps.publicUrl ?? '';
  const description = 'Agents behind Hopline: every event is logged, any stream can be resumed.';
  const card = () => {
    const own = agentCard({ name, description, version, url, skills: mergedSkills(agents.list()), security: auth?.card });
    return { ...own, capabilities: { ...own.capabilities, pushNotifications: push } };
  };
  const outputModes = () => outputModesOf(card());
  registerProbes(app, deps.probes);
  const authenticate = auth && { authenticate: auth.authenticate };
  const door = openDoor({ log, role: 'supervisor', profile, logger, metrics, limits, push, outputModes, ...authenticate });
  registerA2A(app, door, { card });
  return {
    listen: async (host, port) => {
      const address = await app.listen({ host, port });
      // 0.0.0.0 is no address a client can use.
      const { protocol, port: bound } = new URL(address);
      if (deps.publicUrl === undefined) url = `${protocol}//127.0.0.1:${bound}/`;
      return address;
    },
    close: async () => {
      stop.abort();
      await app.close();
      auth?.close();
    },
  };
}
