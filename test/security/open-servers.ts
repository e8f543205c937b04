import type { TestContext } from 'node:test';
import { defineAgent } from '@hopline/agent';
import type { Authenticator, CorsRules } from '@hopline/endpoint';
import { AllowedHosts, createHealth, type ProbeOptions, startProbeServer } from '@hopline/lifecycle';
import { freePort } from '@hopline/local-cluster';
import { createMemoryLog } from '@hopline/log/memory';
import { createLogger } from '@hopline/telemetry';
import { webhookRules } from '@hopline/webhook-guard';
import { createIngress } from '../../services/ingress/src/ingress.ts';
import { createSubAgent } from '../../services/sub-agent/src/sub-agent.ts';
import { NO_METRICS } from '../kit/no-metrics.ts';

export const logger = createLogger({ service: 'test', instance: 'test', level: 'fatal' });

export type OpenServersOptions = { hosts?: AllowedHosts; publicUrl?: string; cors?: CorsRules; auth?: Authenticator };

/** One server of each kind, composed as in the services, on one log in memory. */
export async function openServers(
  t: TestContext,
  { hosts = new AllowedHosts(), publicUrl, cors, auth }: OpenServersOptions = {},
) {
  const log = createMemoryLog();
  const health = createHealth();
  health.started([]);
  const probes: ProbeOptions = { health, metricsText: async () => 'secret_metric 1\n', loopLagMsMax: 60_000, hosts };
  const both = { log, publicUrl, cors, auth, probes, metrics: NO_METRICS, logger };
  const ingress = await createIngress({
    ...both,
    profile: 'caipe',
    card: { name: 'x', description: 'x', version: '0', skills: 'public', extended: true, streaming: true, push: true },
    grpc: { port: 0, publicUrl: undefined },
    webhooks: webhookRules({ HOPLINE_WEBHOOK_ALLOW: undefined, HOPLINE_WEBHOOK_HTTP: false }),
    limits: {},
  });
  const agent = defineAgent({
    name: 'echo',
    description: 'x',
    run: async function* ({ text }) {
      yield text;
    },
  });
  const options = { name: 'echo', agent, skills: [], slots: 1, drainMs: 0, version: '0', retries: 0, forwardText: false };
  const subAgent = createSubAgent({ ...both, ...options });
  const probeServer = await startProbeServer({ ...probes, host: '127.0.0.1', port: 0 });
  // It resolves with its public URL.
  const subAgentPort = await freePort();
  await subAgent.start('127.0.0.1', subAgentPort);
  const urls = {
    ingress: await ingress.listen('127.0.0.1', 0),
    'sub-agent': `http://127.0.0.1:${subAgentPort}`,
    probes: probeServer.url,
  };
  t.after(async () => {
    await Promise.all([ingress.close(), subAgent.stop(), probeServer.close()]);
    await log.close();
  });
  const card = (await (await fetch(`${urls.ingress}/.well-known/agent-card.json`)).json()) as {
    supportedInterfaces: { url: string; protocolBinding: string }[];
  };
  return { log, urls, grpc: card.supportedInterfaces.find(one => one.protocolBinding === 'GRPC')!.url };
}

export type Servers = Awaited<ReturnType<typeof openServers>>;
