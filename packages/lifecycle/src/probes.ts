import type { FastifyInstance } from 'fastify';
import type { Health } from './health.ts';
import { watchLoopLag } from './loop-lag.ts';

export interface ProbeOptions {
  readonly health: Health;
  /** Body of `/metrics`. */
  readonly metricsText: () => Promise<string>;
  /** `/livez` fails when the event loop was blocked for longer than this; milliseconds. */
  readonly loopLagMsMax: number;
}

/** Prometheus text format 0.0.4; scrapers reject other content types. */
const METRICS_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

/**
 * Mounts `GET /livez`, `/readyz` and `/metrics`.
 * Liveness depends only on this process, because a restart cannot repair an unreachable broker. Readiness runs the service's
 * checks and
 * is false while the process starts and drains.
 */
export function registerProbes(app: FastifyInstance, options: ProbeOptions): void {
  const lag = watchLoopLag();
  app.addHook('onClose', async () => lag.stop());
  app.get('/livez', async (_request, reply) => {
    const lagMs = Math.round(lag.maxMs());
    const alive = lagMs <= options.loopLagMsMax;
    return reply.code(alive ? 200 : 503).send({ alive, loop_lag_ms: lagMs, loop_lag_ms_max: options.loopLagMsMax });
  });
  app.get('/readyz', async (_request, reply) => {
    const { ready, draining, notReady, degraded } = await options.health.readiness();
    return reply.code(ready ? 200 : 503).send({ ready, draining, not_ready: notReady, degraded });
  });
  app.get('/metrics', async (_request, reply) => reply.type(METRICS_TYPE).send(await options.metricsText()));
}
