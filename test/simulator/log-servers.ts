import type { Log } from '@hopline/log';
import type { Link } from './link.ts';
import type { VirtualProcess } from './virtual-clock.ts';

/** A part of the log whose writes a fault may hold or refuse. */
export type LogPart = 'inputs' | 'facts' | 'work' | 'leases' | 'tasks' | 'agents' | 'messageIds' | 'contexts' | 'pushProgress';

/** The log of a run as its processes share it: the servers behind it, and the faults of those servers. */
export interface LogServers {
  /** The log without faults, for verifiers. Undefined until `open` has resolved. */
  readonly log: Log | undefined;
  /** Upper limit of the timers of all idle processes. Timers left behind by tasks and connections would exceed it. */
  readonly timersAtRestMax: number;
  /** How long a request without an answer keeps its timer, in milliseconds. */
  readonly requestMsMax: number;
  /** Work items that no worker has finished. */
  readonly openItems: number;
  /** Requests that a double of a server could not answer. */
  readonly unsupported: readonly string[];
  /** Publishes and subscriptions that the permissions of the services' users refused. */
  readonly denied: ReadonlySet<string>;
  open(): Promise<void>;
  attach(process: VirtualProcess, slot: string, link: Link): ProcessLog;
  /** The next live messages reach no process. */
  loseLive(count: number): void;
  /** The next reads of a task's newest facts are answered by a replica that lacks the newest record. */
  staleTails(count: number): void;
  /** Retention removes the inputs of a task below a sequence. */
  removeInputs(taskId: string, below: number): Promise<void>;
  /** Retention removes the inputs of all tasks below a sequence. */
  removeAllInputs(below: number): Promise<void>;
  /** Loses the stream of inputs. It is created again with this first sequence after `forMs`. */
  rebuildInputs(firstSeq: number, forMs: number): void;
  /** A loss of power: the facts of a stream group after a sequence are gone. */
  loseFacts(lastSeq: number, group: number): void;
  /** A stream or bucket is full; with `group`, only the stream of that group. */
  refuseWrites(part: LogPart, group: number | undefined, forMs: number): void;
  close(): void;
}

/** The log as one process has it. */
export type ProcessLog = {
  open(): Promise<Log>;
  /** The connection is closed, and none can be opened until `mend`. */
  cut(): void;
  mend(): void;
  /** The process does not learn that its connection has ended. */
  forget?(): void;
  /** The servers lose readers. */
  breakReads(count: number): void;
  /** The process is gone: what it has sent still arrives. */
  abandon(): void;
};
