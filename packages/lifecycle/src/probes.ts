import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { AllowedHosts } from './allowed-hosts.ts';
import type { Health } from './health.ts';
import { watchLoopLag } from './loop-lag.ts';

export interface ProbeOptions {
  readonly health: Health;
  /** Body of `/metrics`. */
  readonly metricsText: () => Promise<string>;
  /** `/livez` fails when the event loop was blocked for longer than this. */
  readonly loopLagMsMax: number;
  /** Hosts under which the service, and a server that serves only probes, answers requests without credentials. */
  readonly hosts: AllowedHosts;
  /** True if the probes have their own port (HOPLINE_PROBE_PORT), so that `registerProbes` mounts nothing. */
  readonly elsewhere?: boolean;
}

/** IP addresses and localhost, which kubelets, Prometheus and the local launcher use. A public route has a name. */
const ADDRESSES = new AllowedHosts();
const NAME_REFUSAL = {
  error: 'probes and metrics answer only under IP addresses and localhost; HOPLINE_PROBE_PORT gives them a port of their own',
};

/** RFC 9110 15.5.20. */
const MISDIRECTED_STATUS = 421;

/** Prometheus text format 0.0.4; scrapers reject other content types. */
const METRICS_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

/**
 * Mounts the probes on a server with other routes. Probes ask for no credentials, so they do not answer under the names of the server:
 * its public route would expose them to every client.
 */
export function registerProbes(app: FastifyInstance, options: ProbeOptions): void {
  if (options.elsewhere !== true) mountProbes(app, options, ADDRESSES, NAME_REFUSAL);
}

/**
 * Mounts `GET /livez`, `/readyz` and `/metrics` under the names of `hosts`. Liveness depends only on this process, because a restart cannot repair an
 * unreachable broker. Readiness runs the service's checks and is false while the process starts and drains.
 */
export function mountProbes(
  app: FastifyInstance,
  options: ProbeOptions,
  hosts: AllowedHosts,
  refusal: { readonly error: string },
): void {
  const lag = watchLoopLag();
  app.addHook('onClose', async () => lag.stop());
  const onRequest = async (request: FastifyRequest, reply: FastifyReply) =>
    hosts.allowsRequest(request.raw) ? undefined : reply.code(MISDIRECTED_STATUS).send(refusal);
  app.get('/livez', { onRequest }, async (_request, reply) => {
    const lagMs = Math.round(lag.maxMs());
    const alive = lagMs <= options.loopLagMsMax;
    return reply.code(alive ? 200 : 503).send({ alive, loop_lag_ms: lagMs, loop_lag_ms_max: options.loopLagMsMax });
  });
  app.get('/readyz', { onRequest }, async (_request, reply) => {
    const { ready, draining, notReady, degraded } = await options.health.readiness();
    return reply.code(ready ? 200 : 503).send({ ready, draining, not_ready: notReady, degraded });
  });
  app.get('/metrics', { onRequest }, async (_request, reply) => reply.type(METRICS_TYPE).send(await options.metricsText()));
}
