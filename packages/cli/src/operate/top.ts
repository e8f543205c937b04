import type { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { type ListedProcess, readCluster, runningCluster, snapshotOf } from '@hopline/local-cluster';
import { type CommandContext, command } from '../command/command.ts';
import { EXIT } from '../command/exit-code.ts';
import { topLines } from './top-lines.ts';

/** Milliseconds between two readings: on a terminal, and for a single snapshot. */
const REFRESH_MS = 2_000;
const SNAPSHOT_MS = 1_000;
const PIPE_COLUMNS = 120;

/** A terminal in raw mode sends keys instead of signals. */
const QUIT_KEYS = new Set(['q', 'Q', '\u0003', '\u0004']);
const INTERRUPT_KEY = '\u0003';

type Keys = Readable & { readonly isTTY?: boolean; setRawMode?(isRaw: boolean): unknown };

export const top = command({
  name: 'top',
  summary: 'shows live tasks, rates, lag and agents every two seconds; q quits',
  details:
    'your open tasks and the agents of the server; for the cluster of `npm start` also the rates, lag, takeovers, and the load of each process, ' +
    'from their metrics, even while the server or NATS is away; in a pipe, or with --json, one snapshot',
  options: {},
  async run(_given, context) {
    const { client, output, json, url, signal, environment } = context;
    const processes = () => processesOf(url, environment);
    let before = await readCluster(client, processes(), signal);
    // Once the screen is shown, it stays while the server is away. A refusal of the caller is final.
    const { fault } = before;
    if (fault !== undefined && (before.processes === undefined || !fault.retryable)) throw fault;
    if (json || output.columns === undefined) {
      await sleep(SNAPSHOT_MS, undefined, { signal });
      const snapshot = snapshotOf(url, before, await readCluster(client, processes(), signal));
      for (const line of json ? [JSON.stringify(snapshot)] : topLines(snapshot, PIPE_COLUMNS)) output.line(line);
      return EXIT.ok;
    }
    const keys = readKeys(context.stdin);
    try {
      // Waits first, because rates over a few milliseconds would be noise.
      for (let waitMs = SNAPSHOT_MS; ; waitMs = REFRESH_MS) {
        const key = await keyWithin(waitMs, keys.pressed, signal);
        if (key !== undefined) return key === INTERRUPT_KEY ? EXIT.interrupted : EXIT.ok;
        const now = await readCluster(client, processes(), signal);
        output.screen(topLines(snapshotOf(url, before, now), output.columns), ['', 'q quits']);
        before = now;
      }
    } finally {
      keys.close();
    }
  },
});

/** The processes of the local cluster, when the server is its ingress; they change when one is restarted. */
function processesOf(url: string, environment: CommandContext['environment']): ListedProcess[] | undefined {
  try {
    const cluster = runningCluster(environment);
    return new URL(cluster.url).origin === new URL(url).origin ? cluster.processes : undefined;
  } catch {
    return undefined;
  }
}

/** Resolves with the first key that quits. Without raw mode (standard input is not a terminal) only Ctrl-C quits, as a signal. */
function readKeys(stdin: Keys): { pressed: Promise<string>; close: () => void } {
  const { promise, resolve } = Promise.withResolvers<string>();
  if (!stdin.isTTY || stdin.setRawMode === undefined) return { pressed: promise, close: () => {} };
  const onData = (data: Buffer | string) => {
    const key = [...data.toString()].find(one => QUIT_KEYS.has(one));
    if (key !== undefined) resolve(key);
  };
  stdin.setRawMode(true);
  stdin.on('data', onData);
  return {
    pressed: promise,
    close: () => {
      stdin.off('data', onData);
      stdin.setRawMode?.(false);
      stdin.pause();
    },
  };
}

/** Resolves with the key, or with undefined when it is time for the next reading. */
async function keyWithin(ms: number, pressed: Promise<string>, signal: AbortSignal): Promise<string | undefined> {
  const over = new AbortController();
  const due = sleep(ms, undefined, { signal: AbortSignal.any([signal, over.signal]) });
  due.catch(() => {});
  try {
    return await Promise.race([pressed, due]);
  } finally {
    over.abort();
  }
}
