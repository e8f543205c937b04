import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { HOST } from './ports.ts';

const POLL_MS = 100;
const PROBE_MS_MAX = 2000;

/** Polls `probe` until it succeeds (true), or until the time is over or `isHopeless` returns true (false). */
export async function becomesReady(probe: () => Promise<boolean>, msMax: number, isHopeless: () => boolean): Promise<boolean> {
  const deadline = performance.now() + msMax;
  while (performance.now() < deadline && !isHopeless()) {
    if (await probe()) return true;
    await sleep(POLL_MS);
  }
  return false;
}

/** Whether /readyz of the service responds with 200. */
export async function isServiceReady(url: string): Promise<boolean> {
  if (url === '') return false;
  try {
    const response = await fetch(new URL('/readyz', url), { signal: AbortSignal.timeout(PROBE_MS_MAX) });
    await response.body?.cancel();
    return response.status === 200;
  } catch {
    return false;
  }
}

/** Whether a nats-server with JetStream listens on the port: its first line is INFO with a JSON object. */
export function isNatsReady(port: number): Promise<boolean> {
  return new Promise(resolve => {
    const socket = connect({ port, host: HOST, timeout: PROBE_MS_MAX });
    const settle = (ready: boolean) => {
      socket.destroy();
      resolve(ready);
    };
    let greeting = '';
    socket.setEncoding('utf8').on('data', (text: string) => {
      greeting += text;
      if (greeting.includes('\n')) settle(/^INFO .*"jetstream":\s*true/.test(greeting));
    });
    socket
      .once('error', () => settle(false))
      .once('timeout', () => settle(false))
      .once('close', () => settle(false));
  });
}
