import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { AllowedHosts } from './allowed-hosts.ts';
import type { Health } from './health.ts';
import { watchLoopLag } from './loop-lag.ts';

export interface ProbeOptions {
  readonly health: Health;
  /** Body of `/metrics`. */
  readonly metricsText: () => Promise<string>;
  /** `/livez` fails when the event loop was blocked for longer than this; milliseconds. */
  readonly loopLagMsMax: number;
  /** Probes and metrics ask for no credentials, so they check the Host of every request. */
  readonly hosts: AllowedHosts;
}

/** RFC 9110 15.5.20. */
const MISDIRECTED_STATUS = 421;

/** Prometheus text format 0.0.4; scrapers reject other content types. */
const METRICS_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

/**
 * Mounts `GET /livez`, `/readyz` and `/metrics`. Liveness depends only on this process, because a restart cannot repair an
 * unreachable broker. Readiness runs the service's checks and is false while the process starts and drains.
 */
export function registerProbes(app: FastifyInstance, options: ProbeOptions): void {
  const lag = watchLoopLag();
  app.addHook('onClose', async () => lag.stop());
  const { hosts } = options;
  const onRequest = async (request: FastifyRequest, reply: FastifyReply) =>
    hosts.allowsRequest(request.raw) ? undefined : reply.code(MISDIRECTED_STATUS).send({ error: hosts.refusal });
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
