import { Cors, registerA2A, serverOptions } from '@hopline/a2a-http';
import { createA2AServer, LIMITS } from '@hopline/a2a-server';
import { type Agent, type AgentSkill, serveAgent } from '@hopline/agent';
import { agentCard, resumeExtension } from '@hopline/agent-card';
import { PublishedCard } from '@hopline/agent-card/signing';
import type { Authenticator, CorsRules, EndpointTls } from '@hopline/endpoint';
import { type ProbeOptions, registerProbes } from '@hopline/lifecycle';
import type { Log } from '@hopline/log';
import type { HopMetrics, Logger } from '@hopline/telemetry';
import fastify from 'fastify';
import type { TurnWebhooks } from './turn-webhooks.ts';

export type SubAgentDeps = {
  log: Log;
  name: string;
  agent: Agent;
  /** From the agents file. */
  skills: readonly AgentSkill[];
  slots: number;
  /** How often a call that failed as retryable is made again. */
  retries: number | undefined;
  /** Whether a supervisor's client sees the agent's text. */
  forwardText: boolean | undefined;
  drainMs: number;
  version: string;
  /** Where clients reach the endpoint; absent: the address it listens on. */
  publicUrl: string | undefined;
  /** Absent: no agent calls us. */
  webhooks?: TurnWebhooks;
  /** Absent: the door speaks HTTP. */
  tls?: EndpointTls | undefined;
  /** Absent: pages of other origins cannot use the door. */
  cors?: CorsRules | undefined;
  /** Absent: nobody is asked who they are. */
  auth?: Authenticator | undefined;
  probes: ProbeOptions;
  metrics: HopMetrics;
  logger: Logger;
};

export type SubAgent = {
  /** Opens the agent's own door, takes work, announces the agent. Resolves with the door's address when the agent stands in the registry. */
  start(host: string, port: number): Promise<string>;
  /** Lets turns in hand end, then closes door and agent. */
  stop(): Promise<void>;
};

/** One agent: a worker for the supervisor's calls, and an A2A endpoint of its own for whoever calls it directly (S0-46). Both run the same turns. */
export function createSubAgent(deps: SubAgentDeps): SubAgent {
  const { log, name, agent, logger, metrics, version, auth } = deps;
  const cors = deps.cors && new Cors(deps.cors);
  const app = fastify(serverOptions(LIMITS, deps.tls?.options, cors));
  deps.tls?.keepFresh(app.server);
  const stop = new AbortController();
  let serving: Promise<void> = Promise.resolve();
  let url = deps.publicUrl ?? '';
  let skills = [...deps.skills];
  const extensions = [resumeExtension];
  const capabilities = { streaming: true, extensions };
  const card = new PublishedCard(() =>
    agentCard({ name, description: agent.description || name, version, url, skills, capabilities, security: auth?.card }),
  );
  registerProbes(app, deps.probes);
  deps.webhooks?.register(app);
  const authenticate = auth && { authenticate: auth.authenticate };
  const door = createA2AServer({
    log,
    role: `agent.${name}`,
    profile: 'transparent',
    logger,
    metrics,
    extensions,
    ...authenticate,
  });
  registerA2A(app, door, { card, cors });
  return {
    start: async (host, port) => {
      const address = await app.listen({ host, port });
      deps.webhooks?.listening(`${address}/`);
      deps.webhooks?.share(log.wakeUps, name, stop.signal);
      if (deps.publicUrl === undefined) url = `${address}/`;
      const known = Promise.withResolvers<void>();
      const announced = (entry: { skills: AgentSkill[] }) => {
        skills = entry.skills;
        known.resolve();
      };
      const { slots, drainMs, retries, forwardText } = deps;
      const own = {
        log,
        name,
        agent,
        url,
        skills: deps.skills,
        slots,
        drainMs,
        onRegistered: announced,
        ...(retries !== undefined && { retries }),
        ...(forwardText !== undefined && { forwardText }),
      };
      serving = serveAgent({ ...own, signal: stop.signal, logger, metrics });
      // A worker that cannot go on must not look alive: the process ends, and is started again.
      serving.catch(error => {
        logger.fatal({ agent: name, err: error }, 'worker ended');
        process.nextTick(() => {
          throw error;
        });
      });
      await Promise.race([known.promise, serving]);
      return url;
    },
    stop: async () => {
      stop.abort();
      await serving;
      await app.close();
      auth?.close();
      await agent.close();
    },
  };
}
