import type { TestContext } from 'node:test';
import { createMemoryLog, type MemoryLog, type MemoryLogOptions } from '@hopline/log/memory';
import type { HopMetrics, LogFields, Logger } from '@hopline/telemetry';
import { NO_PARTIES } from '../../../test/kit/no-metrics.ts';
import type { A2AServer } from './a2a-server.ts';
import { type A2AServerOptions, createA2AServer } from './create-a2a-server.ts';
import { TinyRelay } from './tiny-relay.test-kit.ts';

/** A line that a server logged. */
export type Line = { level: string; fields: LogFields; message: string };

/** Test kit of a binding: a server in profile `caipe`, with its log lines and metrics. */
export type TestServer = {
  log: MemoryLog;
  relay: TinyRelay;
  server: A2AServer;
  lines: Line[];
  /** The sum of each counter and the number of values of each latency. */
  totals: Record<string, number>;
  /** Open streams and waiting sends. */
  open(): number;
  /** A server in another process on the same log. */
  another(options?: Partial<A2AServerOptions>): TestServer;
};

/** Opens a server on a log of its own, with a relay that runs until the test ends. */
export function openServer(t: TestContext, options: Partial<A2AServerOptions> = {}, memory: MemoryLogOptions = {}): TestServer {
  const log = createMemoryLog({ shards: 1, ...memory });
  const relay = new TinyRelay(log);
  const stop = new AbortController();
  const running = relay.run(stop.signal);
  const opened = serverOn(log, relay, options);
  t.after(async () => {
    opened.server.close();
    relay.resume();
    stop.abort();
    await running;
  });
  return opened;
}

function serverOn(log: MemoryLog, relay: TinyRelay, options: Partial<A2AServerOptions>): TestServer {
  const lines: Line[] = [];
  const totals: Record<string, number> = {};
  const defaults = {
    role: 'supervisor',
    profile: 'caipe',
    logger: recordingLogger(lines),
    metrics: countingMetrics(totals),
  } as const;
  return {
    log,
    relay,
    server: createA2AServer({ log, ...defaults, ...options }),
    lines,
    totals,
    open: () => totals.openStreams ?? 0,
    another: more => serverOn(log.another(), relay, { ...options, ...more }),
  };
}

function countingMetrics(totals: Record<string, number>): HopMetrics {
  const count = (name: string, n: number) => {
    totals[name] = (totals[name] ?? 0) + n;
  };
  const instrument = (name: string) => ({
    add: (n: number) => count(name, n),
    recordMs: () => count(name, 1),
    observe: () => {},
    of: () => NO_PARTIES,
  });
  return new Proxy({}, { get: (_target, name) => instrument(String(name)) }) as HopMetrics;
}

function recordingLogger(lines: Line[]): Logger {
  const at = (level: string) => (first: LogFields | string, message?: string) => {
    lines.push(
      typeof first === 'string' ? { level, fields: {}, message: first } : { level, fields: first, message: message ?? '' },
    );
  };
  const levels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal'].map(level => [level, at(level)] as const);
  return { ...Object.fromEntries(levels), child: () => recordingLogger(lines) } as unknown as Logger;
}
