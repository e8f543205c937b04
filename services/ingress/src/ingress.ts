import { present } from '@hopline/a2a/json-value';
import { type ListedAgent, openHttp } from '@hopline/a2a-http';
import { createA2AServer, LIMITS, type Limits } from '@hopline/a2a-server';
import { agUiFront } from '@hopline/ag-ui-http';
import { type AgentInterface, decodeCardReport } from '@hopline/agent-card';
import { aiSdkFront } from '@hopline/ai-sdk-http';
import { durableStreamsFront } from '@hopline/durable-streams-http';
import type { Authenticator, CorsRules, EndpointTls } from '@hopline/endpoint';
import type { ProfileName } from '@hopline/events';
import { type ProbeOptions, registerProbes } from '@hopline/lifecycle';
import { defaultAgentOf, LiveAgents, type Log } from '@hopline/log';
import { openAIFront } from '@hopline/openai-http';
import { closedWord, type HopMetrics, type Logger } from '@hopline/telemetry';
import { type WebhookRules, webhookUrlProblem } from '@hopline/webhook-guard';
import { taskAudits } from './audit-task.ts';
import { taskExport } from './export-task.ts';
import { type IngressCardOptions, ingressCard } from './ingress-card.ts';

export type IngressDeps = {
  log: Log;
  profile: ProfileName;
  card: IngressCardOptions;
  /**
   * Tenants that requests may name. Listed on the card only while authentication is off. Otherwise credentials determine the tenant,
   * and the names stay private.
   */
  tenants?: readonly string[];
  /** Public address. Absent: the address on which it listens. */
  publicUrl: string | undefined;
  /** Linked at `/` for people with a browser. Absent: no link. */
  consoleUrl?: string | undefined;
  /** HOPLINE_DEFAULT_AGENT, for the list of agents. */
  defaultAgent?: string | undefined;
  /** Absent: no gRPC. Its `publicUrl` (`host:port`) defaults to the address on which it listens. */
  grpc?: { port: number; publicUrl: string | undefined } | undefined;
  /** Addresses that webhooks may have. The notifier has the same rules, so that unusable webhooks are refused at once. */
  webhooks: WebhookRules;
  limits: Partial<Limits>;
  /** Absent: plain HTTP. */
  tls?: EndpointTls | undefined;
  /** Absent: pages of other origins have no access. */
  cors?: CorsRules | undefined;
  /** Absent: authentication is off. */
  auth?: Authenticator | undefined;
  /** How long `close` still answers requests on open connections, in milliseconds. Absent: no time. */
  lastRequestsMs?: number;
  probes: ProbeOptions;
  metrics: HopMetrics;
  logger: Logger;
};

export type Ingress = {
  listen(host: string, port: number): Promise<string>;
  close(): Promise<void>;
};

/** The public server: A2A over HTTP and gRPC, and the probes. Keeps no state of tasks outside the log. */
export async function createIngress(deps: IngressDeps): Promise<Ingress> {
  const { log, logger, metrics, profile, auth, tenants = [] } = deps;
  const limits = { ...LIMITS, ...deps.limits };
  const stop = new AbortController();
  const agents = new LiveAgents(() => performance.now());
  await agents.follow(log.agents, stop.signal, error => logger.warn({ err: error }, 'agent registry lost'));
  let grpcUrl = deps.grpc?.publicUrl ?? '';
  const { card, declared } = ingressCard(deps.card, {
    url: () => http.url,
    moreInterfaces: () => (deps.grpc === undefined ? [] : grpcInterfaces(grpcUrl)),
    agents: () => agents.all(),
    security: auth?.card,
    tenants,
  });
  const webhookProblem = (webhook: string) => webhookUrlProblem(webhook, deps.webhooks);
  const common = { log, role: 'supervisor', profile, logger, metrics, limits, authenticate: auth?.authenticate } as const;
  const server = createA2AServer({ ...common, ...declared, webhookProblem });
  // Credentials are in headers that pages of other origins do not have.
  const hosts = auth?.card === undefined ? deps.probes.hosts : undefined;
  const http = openHttp(server, {
    card,
    publicUrl: deps.publicUrl,
    tls: deps.tls,
    cors: deps.cors,
    hosts,
    lastRequestsMs: deps.lastRequestsMs,
    agents: () => listAgents(agents, deps.defaultAgent),
    audits: taskAudits(log),
    exportTask: taskExport(log, deps.card.version),
    consoleUrl: deps.consoleUrl,
    fronts: [aiSdkFront, agUiFront, durableStreamsFront, openAIFront({ agents: () => listAgents(agents, deps.defaultAgent) })],
  });
  registerProbes(http.app, deps.probes);
  const publicCard = async () => (await card.current()).card;
  // Loaded only when used: its library takes 20 MB and 60 ms.
  const grpc = deps.grpc && (await import('@hopline/a2a-grpc')).openGrpc(server, { card: publicCard, tls: deps.tls, hosts });
  return {
    listen: async (host, port) => {
      if (grpc !== undefined && deps.grpc !== undefined) {
        const bound = await grpc.listen(host, deps.grpc.port);
        if (deps.grpc.publicUrl === undefined) grpcUrl = `127.0.0.1:${bound}`;
      }
      return http.listen(host, port);
    },
    close: async () => {
      stop.abort();
      await Promise.all([grpc?.close(), http.close()]);
      auth?.close();
    },
  };
}

/** Parts of an agent's entry that callers may see. Excludes addresses. */
function listAgents(agents: LiveAgents, configured: string | undefined): ListedAgent[] {
  const byDefault = defaultAgentOf(agents.list(), configured)?.name;
  return agents.all().map(({ name, description, skills, isLive, fault, failing, card, heartbeat }) => ({
    name,
    description,
    skills: skills.map(skill => ({ id: skill.id, name: skill.name })),
    state: isLive ? 'live' : 'silent',
    ...(isLive && fault !== undefined && { fault: closedWord(fault) }),
    ...(isLive && failing !== undefined && { failing: closedWord(failing) }),
    // An agent may write anything into its entry.
    ...present({ card: decodeCardReport(card) }),
    default: name === byDefault,
    lastSeenAt: new Date(heartbeat).toISOString(),
  }));
}

/** In gRPC, clients expect host and port on a card. */
function grpcInterfaces(url: string): AgentInterface[] {
  return (['1.0', '0.3'] as const).map(protocolVersion => ({ url, protocolBinding: 'GRPC', protocolVersion }));
}
