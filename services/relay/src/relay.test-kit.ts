import { Fold } from '@hopline/a2a';
import { type AgentInput, type Fact, type FactRecord, isVisible, type Owner, type Role } from '@hopline/events';
import { InputWriter, readTask, type StoredFacts } from '@hopline/log';
import type { MemoryLog } from '@hopline/log/memory';
import { createLogger } from '@hopline/telemetry';
import { collect } from '../../../test/kit/collect.ts';
import { NO_METRICS } from '../../../test/kit/no-metrics.ts';
import { until } from '../../../test/kit/until.ts';
import { createRelay, type Relay, type RelayDeps } from './relay.ts';

/** The task for every function below that does not name one. */
const TASK = 't';
/** Time limit of a wait for records. */
const PATIENCE_MS = 60_000;

/** Settings that store every token as it arrives. */
export const COALESCE = { eventCostMs: 0, holdMsMax: 100, chunkBytesMax: 32_768 };
export const logger = createLogger({ service: 'relay', instance: 'test', level: 'fatal' });

/** A relay whose lease is short, so that its successor takes over soon. */
export const relayOn = (log: MemoryLog, deps: Partial<RelayDeps> = {}): Promise<Relay> =>
  createRelay({
    log,
    instance: 'relay',
    coalesce: COALESCE,
    metrics: NO_METRICS,
    logger,
    leaseMs: 120,
    heartbeatMs: 30,
    ...deps,
  });

/** Closes the relay's log mid-operation, then stops its timers, which must not outlive the test. */
export async function kill(processLog: MemoryLog, relay: Relay): Promise<void> {
  await processLog.close();
  void relay.stop().catch(() => {});
}

type Sent = { messageId?: string; text?: string; role?: Role; creates?: true; id?: string; owner?: Owner };

/** Stores a message of the client. */
export async function sendMessage(
  log: MemoryLog,
  taskId = TASK,
  { messageId = 'm', text = 'hello', role = 'agent.echo', creates, id = `${taskId}:msg:${messageId}`, owner }: Sent = {},
): Promise<{ seq: number }> {
  const message = { messageId, role: 'ROLE_USER' as const, parts: [{ text }] };
  const optional = { ...(creates && { creates }), ...(owner && { owner }) };
  const begun = { contextId: 'c', role, profile: 'transparent', ...optional } as const;
  const input = { kind: 'message', message, ...begun } as const;
  return log.inputs.append(taskId, { v: 1, at: Date.now(), from: 'client', input }, { id });
}

type Attempt = { taskId?: string; turn?: number; item?: number; attempt?: number };

/** The writer of the agent that received the message. */
export function writerOf(log: MemoryLog, { taskId = TASK, turn = 1, item, attempt = 1 }: Attempt = {}): InputWriter {
  const producer = { id: 'agent', agent: 'echo', turn, ...(item !== undefined && { item }), attempt };
  return new InputWriter(log.inputs, { taskId, producer });
}

export async function write(writer: InputWriter, ...inputs: AgentInput[]): Promise<void> {
  for (const input of inputs) writer.add(input);
  await writer.flush();
}

/** The first stored record that meets a condition. */
export async function storedWhen(log: MemoryLog, met: (record: FactRecord) => boolean, taskId = TASK): Promise<StoredFacts> {
  const patience = AbortSignal.timeout(PATIENCE_MS);
  for await (const stored of await log.facts.follow(taskId, 0, patience)) if (met(stored.record)) return stored;
  throw new Error(`task ${taskId} has no record with ${met} within ${PATIENCE_MS} ms`);
}

export async function newestOf(log: MemoryLog, taskId = TASK): Promise<StoredFacts> {
  return (await log.facts.last(taskId))!;
}

/** All facts of a task, even if it was copied forward. */
export async function factsOf(log: MemoryLog, taskId = TASK): Promise<Fact[]> {
  const facts: Fact[] = [];
  for await (const { record } of readTask(log.facts, await newestOf(log, taskId))) facts.push(...record.facts);
  return facts;
}

export function foldOf(records: readonly FactRecord[]): Fold {
  const fold = new Fold();
  for (const { facts } of records) for (const fact of facts.filter(isVisible)) fold.add(fact.event);
  return fold;
}

/** The records of a task that the log still has. */
export function recordsOf(log: MemoryLog, taskId = TASK): Promise<StoredFacts[]> {
  return collect(log.facts.read(taskId, 1));
}

/** Resolves with the task as a client sees it, as soon as the task meets a condition. */
export async function shownWhen(log: MemoryLog, met: (fold: Fold) => boolean, taskId = TASK): Promise<Fold> {
  let fold = new Fold();
  await until(
    async () => {
      fold = foldOf((await recordsOf(log, taskId)).map(({ record }) => record));
      return met(fold);
    },
    () => `task ${taskId} with ${met}; it shows ${JSON.stringify(fold.task)}`,
  );
  return fold;
}
