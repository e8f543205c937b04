import { type A2AHttpServer, openHttp } from '@hopline/a2a-http';
import { createA2AServer, type Limits } from '@hopline/a2a-server';
import { type Agent, type AgentSkill, type ServeAgentOptions, serveAgent } from '@hopline/agent';
import { agentCard, draftExtension, resumeExtension } from '@hopline/agent-card';
import { PublishedCard } from '@hopline/agent-card/signing';
import type { Authenticator, CorsRules, EndpointTls } from '@hopline/endpoint';
import { type ProbeOptions, registerProbes } from '@hopline/lifecycle';
import type { Log, TextPace } from '@hopline/log';
import type { HopMetrics, Logger } from '@hopline/telemetry';
import type { TurnWebhooks } from './turn-webhooks.ts';

type SubAgentDeps = {
  log: Log;
  name: string;
  agent: Agent;
  /** From the agents file. */
  skills: readonly AgentSkill[];
  /** Whether the agent receives messages that fit no skill of any agent. */
  isDefault?: boolean | undefined;
  slots: number;
  /** How often a call that failed as retryable is repeated. */
  retries: number | undefined;
  /** Whether a supervisor's client sees the agent's text. */
  forwardText: boolean | undefined;
  drainMs: number;
  /** How long text is held before it is stored. Absent: the relay holds it. */
  pace?: TextPace;
  /** Limits that replace those of LIMITS. */
  limits?: Partial<Limits>;
  /** Receives errors that the agent throws, for the terminal of its author. */
  showError?: ((error: unknown) => void) | undefined;
  version: string;
  /** URL of the endpoint for clients. Absent: the address on which the endpoint listens. */
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

type SubAgent = {
  /** Listens, consumes work and registers the agent. Resolves with the endpoint's URL once the agent is registered. */
  start(host: string, port: number): Promise<string>;
  /** Rejects with the reason why the agent did not answer the newest request for its skills, or why it cannot be started. */
  check(): Promise<void>;
  /** Waits for running turns, then closes endpoint and agent. */
  stop(): Promise<void>;
};

/** One agent: a worker for the supervisor's calls, and its own A2A endpoint for direct calls (S0-46). Both run the same turns. */
export function createSubAgent(deps: SubAgentDeps): SubAgent {
  const { log, name, agent, auth, webhooks } = deps;
  const stop = new AbortController();
  let serving: Promise<void> = Promise.resolve();
  let agentFault: unknown = new AgentPending('the agent has not answered yet');
  let skills = [...deps.skills];
  const http = openEndpoint(deps, () => skills);
  return {
    start: async (host, port) => {
      const address = await http.listen(host, port);
      webhooks?.listening(`${address}/`);
      webhooks?.share(log.wakeUps, name, stop.signal);
      const registered = Promise.withResolvers<void>();
      serving = takeWork(deps, {
        url: http.url,
        signal: stop.signal,
        onRegistered: entry => {
          skills = entry.skills;
          registered.resolve();
        },
        onSkills: fault => {
          agentFault = fault;
        },
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

/**
 * The agent's A2A endpoint, with the probes of the process and the webhooks of its turns. `skills`: returns the currently registered
 * skills.
 */
function openEndpoint(deps: SubAgentDeps, skills: () => AgentSkill[]): A2AHttpServer {
  const { log, name, agent, logger, metrics, version, auth } = deps;
  const extensions = [resumeExtension, draftExtension];
  const fixed = {
    name,
    version,
    capabilities: { streaming: true, stateTransitionHistory: true, extensions },
    security: auth?.card,
  };
  // A remote agent has no description until its card is read.
  const card = new PublishedCard(() =>
    agentCard({ ...fixed, description: agent.description || name, url: http.url, skills: skills() }),
  );
  const server = createA2AServer({
    log,
    role: `agent.${name}`,
    profile: 'transparent',
    logger,
    metrics,
    extensions,
    ...(deps.limits && { limits: deps.limits }),
    // Only ingress has the NATS permission for this (packages/log-jetstream/src/users.ts).
    writesIndex: false,
    authenticate: auth?.authenticate,
  });
  // Credentials are in headers, which pages of other origins do not have.
  const hosts = auth?.card === undefined ? deps.probes.hosts : undefined;
  const http = openHttp(server, { card, publicUrl: deps.publicUrl, tls: deps.tls, cors: deps.cors, hosts });
  registerProbes(http.app, deps.probes);
  deps.webhooks?.register(http.app);
  return http;
}

type Worker = Required<Pick<ServeAgentOptions, 'url' | 'signal' | 'onRegistered' | 'onSkills'>>;

/** Registers the agent and runs its work. If the worker fails, the process ends, so that it is restarted instead of looking alive. */
function takeWork(deps: SubAgentDeps, worker: Worker): Promise<void> {
  const { log, name, agent, skills, isDefault = false, slots, drainMs, pace } = deps;
  const { retries, forwardText, showError, metrics, logger } = deps;
  const serving = serveAgent({
    ...worker,
    log,
    name,
    agent,
    skills,
    isDefault,
    slots,
    drainMs,
    showError,
    metrics,
    logger,
    ...(pace && { pace }),
    ...(retries !== undefined && { retries }),
    ...(forwardText !== undefined && { forwardText }),
  });
  serving.catch(error => {
    logger.fatal({ agent: name, err: error }, 'worker ended');
    process.nextTick(() => {
      throw error;
    });
  });
  return serving;
}

class AgentPending extends Error {
  override readonly name = 'pending';
}
