import { Layouts } from '@hopline/events';
import { createMemoryLog, type MemoryLog } from '@hopline/log/memory';
import { type ClusterSettings, WORK_BOUNDS } from './cluster-settings.ts';
import { faultyLog } from './faulty-log.ts';
import { type Link, partOf } from './link.ts';
import type { LogPart, LogServers, ProcessLog } from './log-servers.ts';
import type { Trace } from './trace.ts';
import type { VirtualClock, VirtualProcess } from './virtual-clock.ts';
import { WorkBroker } from './work-broker.ts';

/** Timers of one idle process; 60 runs with 11 processes had at most 102. */
const TIMERS_AT_REST_MAX = 15;

/** The log in memory. Its faults are above the NATS client. */
export class MemoryServers implements LogServers {
  readonly log: MemoryLog;
  readonly timersAtRestMax: number;
  readonly requestMsMax = 0;
  readonly unsupported: readonly string[] = [];
  readonly denied: ReadonlySet<string> = new Set();
  readonly #clock: VirtualClock;
  readonly #trace: Trace;
  readonly #broker: WorkBroker;
  readonly #links: Link[] = [];

  constructor(settings: ClusterSettings, { clock, trace }: { clock: VirtualClock; trace: Trace }) {
    const { shards, layouts, recordBytesMax, ackWaitMs, duplicateWindowMs, topology } = settings;
    this.timersAtRestMax = TIMERS_AT_REST_MAX * Object.values(topology).reduce((sum, count) => sum + count, 0);
    this.#clock = clock;
    this.#trace = trace;
    this.log = createMemoryLog({ shards, recordBytesMax, ...(layouts && { layouts: new Layouts(layouts) }) });
    this.#broker = new WorkBroker(clock, { ...WORK_BOUNDS, ackWaitMs, duplicateWindowMs });
  }

  get openItems(): number {
    return this.#broker.size;
  }

  async open(): Promise<void> {}

  attach(process: VirtualProcess, _slot: string, link: Link): ProcessLog {
    const store = this.log.another();
    this.#links.push(link);
    const log = faultyLog({ clock: this.#clock, process, link, trace: this.#trace, broker: this.#broker, store });
    return {
      open: async () => log,
      // Nothing to do: `link` computes when it is cut.
      cut: () => {},
      mend: () => {},
      breakReads: count => {
        link.brokenReads += count;
      },
      abandon: () => void store.close(),
    };
  }

  loseLive(count: number): void {
    this.log.faults.loseLive += count;
  }

  staleTails(count: number): void {
    this.log.faults.staleTails += count;
  }

  async removeInputs(taskId: string, below: number): Promise<void> {
    this.log.expire('inputs', taskId, below);
  }

  async removeAllInputs(below: number): Promise<void> {
    this.log.expireAll('inputs', below);
  }

  rebuildInputs(firstSeq: number, forMs: number): void {
    this.log.rebuildInputs(firstSeq);
    for (const link of this.#links) link.missingUntil.set('inputs', this.#clock.nowMs + forMs);
  }

  loseFacts(lastSeq: number, group: number): void {
    this.log.loseFacts(lastSeq, group);
  }

  refuseWrites(part: LogPart, group: number | undefined, forMs: number): void {
    const refused = group === undefined ? part : partOf(part, group);
    for (const link of this.#links) link.refusedUntil.set(refused, this.#clock.nowMs + forMs);
  }

  close(): void {
    void this.log.close();
  }
}
