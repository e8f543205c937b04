import { openHttp } from '@hopline/a2a-http';
import { createA2AServer, type Limits } from '@hopline/a2a-server';
import { type Agent, type AgentSkill, serveAgent } from '@hopline/agent';
import { agentCard, resumeExtension } from '@hopline/agent-card';
import { PublishedCard } from '@hopline/agent-card/signing';
import type { Authenticator, CorsRules, EndpointTls } from '@hopline/endpoint';
import { type ProbeOptions, registerProbes } from '@hopline/lifecycle';
import type { Log } from '@hopline/log';
import type { HopMetrics, Logger } from '@hopline/telemetry';
import type { TurnWebhooks } from './turn-webhooks.ts';

export type SubAgentDeps = {
  log: Log;
  name: string;
  agent: Agent;
  /** From the agents file. */
  skills: readonly AgentSkill[];
  /** It takes messages that no skill of any agent fits. */
  isDefault?: boolean | undefined;
  slots: number;
  /** Retries of a call that failed as retryable. */
  retries: number | undefined;
  /** Whether a supervisor's client sees the agent's text. */
  forwardText: boolean | undefined;
  drainMs: number;
  /** Overrides of LIMITS. */
  limits?: Partial<Limits>;
  /** Receives what the agent throws, for the terminal of its author. */
  showError?: ((error: unknown) => void) | undefined;
  version: string;
  /** URL of the endpoint for clients; absent: the address it listens on. */
  publicUrl: string | undefined;
  /** Absent: remote agents get no webhook. */
  webhooks?: TurnWebhooks;
  /** Absent: plain HTTP. */
  tls?: EndpointTls | undefined;
  /** Absent: no CORS, so pages of other origins cannot use the endpoint. */
  cors?: CorsRules | undefined;
  /** Absent: authentication is off. */
  auth?: Authenticator | undefined;
  probes: ProbeOptions;
  metrics: HopMetrics;
  logger: Logger;
};

export type SubAgent = {
  /** Listens, consumes work and registers the agent. Resolves with the endpoint's URL once the agent is registered. */
  start(host: string, port: number): Promise<string>;
  /** Rejects with why the agent does not answer or cannot be started, as of the newest request for its skills. */
  check(): Promise<void>;
  /** Waits for running turns, then closes endpoint and agent. */
  stop(): Promise<void>;
};

/** One agent: a worker for the supervisor's calls, and an A2A endpoint of its own for direct calls (S0-46). Both run the same turns. */
export function createSubAgent(deps: SubAgentDeps): SubAgent {
  const { log, name, agent, logger, metrics, version, auth } = deps;
  const stop = new AbortController();
  let serving: Promise<void> = Promise.resolve();
  let agentFault: unknown = new AgentPending('the agent has not answered yet');
  let skills = [...deps.skills];
  const extensions = [resumeExtension];
  const capabilities = { streaming: true, extensions };
  const fixed = { name, version, capabilities, security: auth?.card };
  // A remote agent has no description until its card is read.
  const card = new PublishedCard(() => agentCard({ ...fixed, description: agent.description || name, url: http.url, skills }));
  const server = createA2AServer({
    log,
    role: `agent.${name}`,
    profile: 'transparent',
    logger,
    metrics,
    extensions,
    ...(deps.limits && { limits: deps.limits }),
    // NATS permits it to ingress alone (packages/log-jetstream/src/users.ts).
    writesIndex: false,
    authenticate: auth?.authenticate,
  });
  // Credentials are in headers that no page of another origin has.
  const hosts = auth?.card === undefined ? deps.probes.hosts : undefined;
  const http = openHttp(server, { card, publicUrl: deps.publicUrl, tls: deps.tls, cors: deps.cors, hosts });
  registerProbes(http.app, deps.probes);
  deps.webhooks?.register(http.app);
  return {
    start: async (host, port) => {
      const address = await http.listen(host, port);
      deps.webhooks?.listening(`${address}/`);
      deps.webhooks?.share(log.wakeUps, name, stop.signal);
      const registered = Promise.withResolvers<void>();
      const onRegistered = (entry: { skills: AgentSkill[] }) => {
        skills = entry.skills;
        registered.resolve();
      };
      const { slots, drainMs, retries, forwardText, showError, isDefault = false } = deps;
      const serveOptions = {
        log,
        name,
        agent,
        url: http.url,
        skills: deps.skills,
        isDefault,
        slots,
        drainMs,
        showError,
        onRegistered,
        onSkills: (fault: unknown) => {
          agentFault = fault;
        },
        ...(retries !== undefined && { retries }),
        ...(forwardText !== undefined && { forwardText }),
      };
      serving = serveAgent({ ...serveOptions, signal: stop.signal, logger, metrics });
      // A failed worker ends the process, so that it is restarted instead of looking alive.
      serving.catch(error => {
        logger.fatal({ agent: name, err: error }, 'worker ended');
        process.nextTick(() => {
          throw error;
        });
      });
      await Promise.race([registered.promise, serving]);
      return http.url;
    },
    check: async () => {
      if (agentFault !== undefined) throw agentFault;
    },
    stop: async () => {
      stop.abort();
      await serving;
      await http.close();
      auth?.close();
      await agent.close();
    },
  };
}

class AgentPending extends Error {
  override readonly name = 'pending';
}
