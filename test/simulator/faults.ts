import type { AgentInput, AgentRecord, ClientRecord } from '@hopline/events';
import type { Log } from '@hopline/log';
import type { Client } from './client.ts';
import type { Cluster } from './cluster.ts';
import type { LogPart } from './log-servers.ts';
import type { NatsServers } from './nats-servers.ts';
import type { Trace } from './trace.ts';
import type { VirtualClock } from './virtual-clock.ts';
import type { WebhookReceiver } from './webhook-receiver.ts';

/**
 * `slot`: the fault affects the process in it when it begins; `relay-*` stands for all relays, `*` for all processes. Times are milliseconds of the
 * run.
 */
export type Fault = { at: number } & (
  | /** SIGKILL, and a new process after `forMs`. */ { kind: 'kill'; slot: string; forMs: number }
  | /** SIGTERM, and a new process `forMs` after the end. */ { kind: 'stop'; slot: string; forMs: number }
  | /** SIGSTOP until SIGCONT. */ { kind: 'freeze'; slot: string; forMs: number }
  | /** Nothing passes, and nothing is lost unless a server cuts the process off. */ {
      kind: 'stall';
      slot: string;
      forMs: number;
    }
  | /** Everything sent is lost. */ { kind: 'cut'; slot: string; forMs: number }
  | { kind: 'lose acks'; slot: string; forMs: number }
  | { kind: 'slow'; slot: string; forMs: number; delayMs: number }
  | { kind: 'hold writes'; slot: string; part: LogPart; forMs: number }
  | { kind: 'break reads'; slot: string; count: number }
  | /** A write breaks off after its first inputs, and the connection ends `endsAfterMs` later, so that some acknowledgements are lost. */ {
      kind: 'break a write';
      slot: string;
      first: number;
      endsAfterMs: number;
      forMs: number;
    }
  | { kind: 'set clock'; slot: string; byMs: number }
  | /** Messages of different parts of the log overtake each other. */ {
      kind: 'reorder';
      slot: string;
      forMs: number;
      delayMs: number;
    }
  | /** Subscriptions are served by a replica that lags behind. */ { kind: 'lag'; slot: string; forMs: number; lagMs: number }
  | /** SIGTERM, and a process of a later version, or of the earlier one again. */ {
      kind: 'upgrade' | 'downgrade';
      slot: string;
      forMs: number;
    }
  | /** A stream or bucket is full; with `group`, only the stream of that group. */ {
      kind: 'refuse writes';
      part: LogPart;
      group?: number;
      forMs: number;
    }
  | /** The leaders of a stream group cannot be reached. */ { kind: 'group away'; group: number; forMs: number }
  | { kind: 'lose live messages'; count: number }
  | /** A replica without the newest record answers followers. */ { kind: 'stale tails'; count: number }
  | /** While no relay is running, retention removes inputs of running tasks: up to the last one of a producer, or all. */ {
      kind: 'outlast retention';
      forMs: number;
      removes: 'up to the last' | 'all';
    }
  | /** The stream of inputs is lost, and created again after `forMs`. */ { kind: 'rebuild inputs'; forMs: number }
  | /** A loss of power: the facts that a stream group stored in the last `forMs` are gone, and everything that waits for the log is sent again. */ {
      kind: 'lose facts';
      group?: number;
      forMs: number;
    }
  | { kind: 'poison'; payload: 'unknown agent input' | 'unknown client input' | 'token without text' }
  | /** All servers are started again. */ { kind: 'restart servers' }
  | /** The servers forget the ids of what they have stored. */ { kind: 'forget ids' }
  | /** The servers forget how often they have delivered what is not acknowledged. */ { kind: 'forget deliveries' }
  | /** The leaders of all streams lose their followers, which elect others after `electionMs`. The old ones still answer this process. */ {
      kind: 'deposed leader';
      slot: string;
      electionMs: number;
      forMs: number;
    }
  | /** The process does not learn that its connection has ended. */ { kind: 'half open'; slot: string }
  | /** The process reads nothing from its connection. A server cuts it off if enough waits to be read. */ {
      kind: 'slow consumer';
      slot: string;
      forMs: number;
    }
  | /** A loss of power after `forMs`: each of these parts of the log is again as it was `ms` before. */ {
      kind: 'lose tails';
      tails: { part: LogPart; ms: number }[];
      forMs: number;
    }
  | /** Requests to some parts of the log are lost, while the others are answered. */ {
      kind: 'partial partition';
      slot: string;
      parts: LogPart[];
      forMs: number;
    }
  | { kind: 'webhooks down'; forMs: number }
  | { kind: 'lose webhook answers'; forMs: number }
);

type FaultTargets = {
  clock: VirtualClock;
  trace: Trace;
  cluster: Cluster;
  receiver: WebhookReceiver;
  clients: readonly Client[];
};

export function schedule(faults: readonly Fault[], targets: FaultTargets): void {
  for (const fault of faults) targets.clock.after(fault.at, () => void begin(fault, targets));
}

/** When the last fault is over. */
export function endOfFaults(faults: readonly Fault[]): number {
  return Math.max(0, ...faults.map(fault => fault.at + ('forMs' in fault ? fault.forMs : 0)));
}

/** A stopping service drains first. This is longer than the simulator lets it drain (STOP_MS_MAX of cluster.ts). */
const DRAIN_MS_MAX = 25_000;

/** The time at which each fault is in effect, in milliseconds of the run. */
export function timesOf(faults: readonly Fault[]): { startedAt: number; endedAt: number }[] {
  return faults.map(fault => {
    const drainMs = fault.kind === 'stop' || fault.kind === 'upgrade' || fault.kind === 'downgrade' ? DRAIN_MS_MAX : 0;
    return { startedAt: fault.at, endedAt: fault.at + drainMs + ('forMs' in fault ? fault.forMs : 0) };
  });
}

/** Whether the fault affects the process in this slot. */
function isAt(fault: Fault, slot: string): boolean {
  if (!('slot' in fault)) return false;
  return fault.slot.endsWith('*') ? slot.startsWith(fault.slot.slice(0, -1)) : fault.slot === slot;
}

async function begin(fault: Fault, targets: FaultTargets): Promise<void> {
  const { clock, trace, cluster, receiver } = targets;
  const { at: _at, ...what } = fault;
  trace.add('fault', ...Object.entries(what).map(([name, value]) => `${name}=${value}`));
  if ('slot' in fault) {
    const begun = cluster.slots.filter(slot => isAt(fault, slot)).map(slot => beginAt({ ...fault, slot }, targets));
    await Promise.all(begun);
    return;
  }
  switch (fault.kind) {
    case 'refuse writes':
      cluster.servers.refuseWrites(fault.part, fault.group, fault.forMs);
      break;
    case 'group away':
      for (const slot of cluster.slots) cluster.at(slot)?.link.awayUntil.set(fault.group, clock.nowMs + fault.forMs);
      break;
    case 'lose live messages':
      cluster.servers.loseLive(fault.count);
      break;
    case 'outlast retention': {
      const relays = cluster.slots.filter(slot => slot.startsWith('relay'));
      for (const relay of relays) cluster.kill(relay);
      await clock.sleep(fault.forMs);
      if (fault.removes === 'all') await removeUnfoldedInputs(targets);
      else for (const client of targets.clients) await removeFoldableInputs(cluster, client.taskId);
      for (const relay of relays) cluster.start(relay);
      break;
    }
    case 'rebuild inputs':
      await rebuildInputs(fault.forMs, targets);
      break;
    case 'lose facts': {
      const { group = 0 } = fault;
      const { log, servers } = cluster;
      // Over the wire, the streams of a later layout appear during the run.
      if (group >= log.layouts.groups) break;
      const { lastSeq } = (await log.facts.extent()).ofShard(log.layouts.shardsOf(group)[0]!);
      await clock.sleep(fault.forMs);
      servers.loseFacts(lastSeq, group);
      break;
    }
    case 'lose tails': {
      const servers = natsOf(cluster);
      for (const { part, ms } of fault.tails) clock.after(fault.forMs - ms, () => servers.sync(part));
      clock.after(fault.forMs, () => servers.losePower());
      break;
    }
    case 'stale tails':
      cluster.servers.staleTails(fault.count);
      break;
    case 'restart servers':
      natsOf(cluster).restart();
      break;
    case 'forget ids':
      natsOf(cluster).forgetIds();
      break;
    case 'forget deliveries':
      natsOf(cluster).forgetDeliveries();
      break;
    case 'poison':
      await poison(fault.payload, targets);
      break;
    case 'webhooks down':
      receiver.downUntil = clock.nowMs + fault.forMs;
      break;
    case 'lose webhook answers':
      receiver.answersLostUntil = clock.nowMs + fault.forMs;
  }
}

async function beginAt(fault: Extract<Fault, { slot: string }>, { clock, cluster }: FaultTargets): Promise<void> {
  const incarnation = cluster.at(fault.slot);
  if (incarnation === undefined) return;
  const { process, link, log } = incarnation;
  const until = clock.nowMs + ('forMs' in fault ? fault.forMs : 0);
  switch (fault.kind) {
    case 'kill':
      cluster.kill(fault.slot);
      clock.after(fault.forMs, () => cluster.start(fault.slot));
      break;
    case 'stop':
      await cluster.stop(fault.slot);
      await clock.sleep(fault.forMs);
      cluster.start(fault.slot);
      break;
    case 'freeze':
      clock.freeze(process);
      clock.after(fault.forMs, () => clock.thaw(process));
      break;
    case 'stall':
      link.stalledUntil = until;
      break;
    case 'cut':
      log.cut();
      link.cutUntil = until;
      clock.after(fault.forMs, () => log.mend());
      break;
    case 'lose acks':
      link.acksLostUntil = until;
      break;
    case 'slow':
      link.slowUntil = until;
      link.slowMsMax = fault.delayMs;
      break;
    case 'hold writes':
      link.heldUntil.set(fault.part, until);
      break;
    case 'break reads':
      log.breakReads(fault.count);
      break;
    case 'break a write': {
      const cut = () => {
        log.cut();
        link.cutUntil = clock.nowMs + fault.forMs;
        clock.after(fault.forMs, () => log.mend());
      };
      link.brokenWrite = { first: fault.first, end: () => clock.as(undefined, () => clock.after(fault.endsAfterMs, cut)) };
      break;
    }
    case 'reorder':
      link.reorderedUntil = until;
      link.reorderMsMax = fault.delayMs;
      break;
    case 'lag':
      link.lagUntil = until;
      link.lagMs = fault.lagMs;
      break;
    case 'deposed leader':
      natsOf(cluster).depose(fault.slot, fault.electionMs, fault.forMs);
      break;
    case 'half open':
      log.forget?.();
      break;
    case 'slow consumer':
      link.unreadUntil = until;
      break;
    case 'partial partition':
      for (const part of fault.parts) link.partedUntil.set(part, until);
      break;
    case 'upgrade':
    case 'downgrade':
      if (fault.kind === 'upgrade') cluster.upgradedSlots.add(fault.slot);
      else cluster.upgradedSlots.delete(fault.slot);
      await cluster.stop(fault.slot);
      await clock.sleep(fault.forMs);
      cluster.start(fault.slot);
      break;
    case 'set clock':
      process.wallClockOffsetMs = fault.byMs;
  }
}

function natsOf({ servers }: Cluster): NatsServers {
  if (!('restart' in servers)) throw new Error('this fault needs --log nats');
  return servers as NatsServers;
}

/**
 * Removes inputs that no relay has folded, but keeps the newest record of some producer, so that a relay finds each gap when it reads that
 * record. (If all records of a producer were removed and it wrote no more, there would be no trace of it.) Messages of clients are kept.
 */
async function removeFoldableInputs({ log, servers }: Cluster, taskId: string | undefined): Promise<void> {
  if (taskId === undefined) return;
  const folded = (await log.facts.last(taskId))?.record.aggregate.foldedSeq ?? 0;
  const newest = new Map<string, number>();
  for await (const { seq, record } of log.inputs.read(taskId))
    if (seq > folded && record.from === 'client') return;
    else if (seq > folded && record.from !== 'relay') newest.set((record as AgentRecord).from.id, seq);
  if (newest.size > 0) await servers.removeInputs(taskId, Math.min(...newest.values()));
}

/**
 * Retention removes every input up to the first message of a client that no relay has folded: acknowledged messages that are lost with
 * it are not promised (docs/reference/failures.md).
 */
async function removeUnfoldedInputs({ cluster: { log, servers }, clients }: FaultTargets): Promise<void> {
  const messages = await unfoldedMessages(log, clients);
  await servers.removeAllInputs(Math.min(...messages, (await log.inputs.extent()).lastSeq + 1));
}

/** Sequences of messages that no relay has folded. */
async function unfoldedMessages(log: Log, clients: readonly Client[]): Promise<number[]> {
  const unfolded: number[] = [];
  for (const { taskId } of clients) {
    if (taskId === undefined) continue;
    const folded = (await log.facts.last(taskId))?.record.aggregate.foldedSeq ?? 0;
    for await (const { seq, record } of log.inputs.read(taskId)) if (seq > folded && record.from === 'client') unfolded.push(seq);
  }
  return unfolded;
}

const REBUILD_TRIES_MAX = 200;

/**
 * Loses the stream when every message of a client is folded, because unfolded messages in it are not promised. A service that starts
 * creates the stream again, with a first sequence above all earlier ones (ADR 41).
 */
async function rebuildInputs(forMs: number, { clock, cluster, clients, trace }: FaultTargets): Promise<void> {
  for (let tries = 1; (await unfoldedMessages(cluster.log, clients)).length > 0; tries++) {
    if (tries > REBUILD_TRIES_MAX) return;
    await clock.sleep(10);
  }
  trace.add('fault', 'inputs are rebuilt');
  cluster.servers.rebuildInputs(Date.now() * 1_000, forMs);
}

/** A record of a broken or newer producer arrives at a running task. */
async function poison(payload: Extract<Fault, { kind: 'poison' }>['payload'], targets: FaultTargets): Promise<void> {
  const { cluster, clients, clock } = targets;
  const taskId = clients.find(client => client.taskId !== undefined && !client.isDone)?.taskId;
  if (taskId === undefined) return;
  const agentRecord = (input: unknown): AgentRecord => ({
    v: 1,
    at: Date.now(),
    from: { id: 'broken', agent: 'broken', turn: 1, attempt: 1 },
    n: 1,
    inputs: [input as AgentInput],
  });
  const record =
    payload === 'unknown agent input'
      ? agentRecord({ kind: 'sings' })
      : payload === 'token without text'
        ? agentRecord({ kind: 'text', lane: 'broken', tokens: [5] })
        : ({ v: 1, at: Date.now(), from: 'client', input: { kind: 'pause' } } as unknown as ClientRecord);
  await cluster.log.inputs.append(taskId, record, { id: `${taskId}:poison:${clock.nowMs}` });
}
