import { METRICS_TYPES, type MetricsFormat, metricsFormatFor } from '@hopline/telemetry';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { AllowedHosts } from './allowed-hosts.ts';
import type { Health } from './health.ts';
import { watchLoopLag } from './loop-lag.ts';

export type ProbeOptions = {
  readonly health: Health;
  /** Body of `/metrics`. */
  readonly metricsText: (format: MetricsFormat) => Promise<string>;
  /** `/livez` fails if the event loop was blocked for longer than this, not counting time in which the process got no CPU. */
  readonly loopLagMsMax: number;
  /** Hosts under which the service, and a server that serves only probes, answers requests without credentials. */
  readonly hosts: AllowedHosts;
  /** True if the probes have their own port (HOPLINE_PROBE_PORT), so that `registerProbes` mounts nothing. */
  readonly elsewhere?: boolean;
};

/** IP addresses and localhost, which kubelets, Prometheus and the local launcher use. Public routes use names. */
const ADDRESSES = new AllowedHosts();
const NAME_REFUSAL = {
  error: 'probes and metrics answer only under IP addresses and localhost; HOPLINE_PROBE_PORT gives them a port of their own',
};

/** RFC 9110 15.5.20. */
export const MISDIRECTED_STATUS = 421;

/**
 * Mounts the probes on a server with other routes. Probes require no credentials, so they do not answer under the names of the server,
 * because its public route would expose them to every client.
 */
export function registerProbes(app: FastifyInstance, options: ProbeOptions): void {
  if (options.elsewhere === true) return;
  const probes = new Probes(options);
  app.addHook('onClose', async () => probes.stop());
  const onRequest = async (request: FastifyRequest, reply: FastifyReply) =>
    ADDRESSES.allowsRequest(request.raw) ? undefined : reply.code(MISDIRECTED_STATUS).send(NAME_REFUSAL);
  for (const path of PROBE_PATHS) {
    app.get(path, { onRequest }, async (request, reply) => {
      const { status, type, body } = await probes.answer(path, request.headers.accept);
      return reply.code(status).type(type).send(body);
    });
  }
}

const PROBE_PATHS = ['/livez', '/readyz', '/metrics'] as const;
type ProbePath = (typeof PROBE_PATHS)[number];

export function isProbePath(path: string): path is ProbePath {
  return (PROBE_PATHS as readonly string[]).includes(path);
}

export type ProbeAnswer = { readonly status: number; readonly type: string; readonly body: string };

export function jsonAnswer(status: number, value: object): ProbeAnswer {
  return { status, type: 'application/json; charset=utf-8', body: JSON.stringify(value) };
}

/**
 * The answers to `GET /livez`, `/readyz` and `/metrics`. Liveness depends only on this process, because a restart cannot repair an
 * unreachable broker. Readiness runs the service's checks and is false while the process starts and drains.
 */
export class Probes {
  readonly #options: ProbeOptions;
  readonly #lag = watchLoopLag();

  constructor(options: ProbeOptions) {
    this.#options = options;
  }

  /** `accept`: the header of the request, which determines the format of the metrics. */
  async answer(path: ProbePath, accept: string | undefined): Promise<ProbeAnswer> {
    if (path === '/livez') return this.#liveness();
    if (path === '/readyz') return this.#readiness();
    const format = metricsFormatFor(accept);
    return { status: 200, type: METRICS_TYPES[format], body: await this.#options.metricsText(format) };
  }

  stop(): void {
    this.#lag.stop();
  }

  #liveness(): ProbeAnswer {
    const lagMs = Math.round(this.#lag.maxMs());
    const alive = lagMs <= this.#options.loopLagMsMax;
    return jsonAnswer(alive ? 200 : 503, { alive, loop_lag_ms: lagMs, loop_lag_ms_max: this.#options.loopLagMsMax });
  }

  async #readiness(): Promise<ProbeAnswer> {
    const { ready, draining, notReady, degraded } = await this.#options.health.readiness();
    return jsonAnswer(ready ? 200 : 503, { ready, draining, not_ready: notReady, degraded });
  }
}
