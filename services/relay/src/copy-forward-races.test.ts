import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AgentInput, ClientInput, FactRecord, RelayInput } from '@hopline/events';
import { createInputWriter, type InputWriter, type StoredFacts } from '@hopline/log';
import { createMemoryLog, type MemoryLog } from '@hopline/log/memory';
import { createLogger, type HopMetrics } from '@hopline/telemetry';
import { createRelay, type Relay } from './relay.ts';

const CARRY_AFTER_MS = 300;
/** Longer than a part. */
const LONG = 'x'.repeat(100 * 1024);
const logger = createLogger({ service: 'relay', instance: 'test', level: 'fatal' });

type Taken = Map<string, number>;

/** `taken`: counts the inputs that have come to their task, by kind. */
function relayOn(
  log: MemoryLog,
  { copyForwardAfterMs, taken }: { copyForwardAfterMs?: number; taken?: Taken } = {},
): Promise<Relay> {
  const add = (count: number, { kind, reason }: { kind?: string; reason?: string } = {}) => {
    if (kind !== undefined && reason === 'received') taken?.set(kind, (taken.get(kind) ?? 0) + count);
  };
  const metrics = new Proxy({}, { get: () => ({ add, recordMs() {} }) }) as HopMetrics;
  const coalesce = { eventCostMs: 0, holdMsMax: 100, chunkBytesMax: 262_144 };
  return createRelay({ log, instance: 'relay', coalesce, metrics, logger, leaseMs: 120, heartbeatMs: 30, copyForwardAfterMs });
}

async function say(log: MemoryLog, from: 'client' | 'relay', input: ClientInput | RelayInput, id: string): Promise<void> {
  await log.inputs.append('t', { v: 1, at: Date.now(), from, input } as Parameters<typeof log.inputs.append>[1], { id });
}

const message = (messageId: string): ClientInput => ({
  kind: 'message',
  message: { messageId, role: 'ROLE_USER', parts: [{ text: 'hello' }] },
  contextId: 'c',
  role: 'agent.echo',
  profile: 'transparent',
});

function agent(log: MemoryLog, turn: number): InputWriter {
  return createInputWriter(log.inputs, { taskId: 't', producer: { id: 'agent', agent: 'echo', turn, attempt: 1 } });
}

async function agentSays(writer: InputWriter, ...inputs: AgentInput[]): Promise<void> {
  for (const input of inputs) writer.add(input);
  await writer.flush();
}

const OPENS = { kind: 'open', lane: 'a', artifact: { name: 'a' } } as const;
const ASKS = { kind: 'status', state: 'TASK_STATE_INPUT_REQUIRED' } as const;
const COMPLETES = { kind: 'status', state: 'TASK_STATE_COMPLETED' } as const;

async function reached(met: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await met())) await new Promise(resolve => setTimeout(resolve, 5));
}

async function until(log: MemoryLog, met: (record: FactRecord) => boolean): Promise<StoredFacts> {
  for await (const stored of await log.facts.follow('t', 0, new AbortController().signal)) if (met(stored.record)) return stored;
  throw new Error('the log ended');
}

const carriedAfter = (log: MemoryLog, since: number) =>
  until(log, ({ copied: carried, startStoredAt: carriedAt = 0 }) => carried?.last === true && carriedAt > since);

/** Begins a task of several parts that waits for its client, without a relay left. Resolves with `since`. */
async function waitingTask(log: MemoryLog): Promise<number> {
  const relay = await relayOn(log.another());
  await say(log, 'client', message('m1'), 't:msg:m1');
  const texts = [LONG, LONG, LONG].map(token => ({ kind: 'text' as const, lane: 'a', tokens: [token] }));
  await agentSays(agent(log, 1), OPENS, ...texts, ASKS);
  await reached(async () => (await log.tasks.get('t'))?.value.state === 'TASK_STATE_INPUT_REQUIRED');
  await relay.stop();
  return (await log.facts.last('t'))!.record.startStoredAt!;
}

async function die(own: MemoryLog, relay: Relay): Promise<void> {
  await own.close();
  void relay.stop().catch(() => {});
}

test('a relay that dies after a carry, before the index knows of it, leaves the next carry to be due all the same [S4-44]', {
  timeout: 20_000,
}, async () => {
  const log = createMemoryLog();
  const since = await waitingTask(log);
  const own = log.another();
  own.tasks.put = () => new Promise(() => {});
  const dead = await relayOn(own, { copyForwardAfterMs: CARRY_AFTER_MS });
  const { record } = await carriedAfter(log, since);
  await die(own, dead);
  const relay = await relayOn(log.another(), { copyForwardAfterMs: CARRY_AFTER_MS });
  await carriedAfter(log, record.startStoredAt!);
  await relay.stop();
});

test('what is stored with a carry does not say that the carry has happened: who takes over does it [S4-44]', {
  timeout: 20_000,
}, async () => {
  const log = createMemoryLog();
  const since = await waitingTask(log);
  const own = log.another();
  const append = own.facts.append.bind(own.facts);
  const held = Promise.withResolvers<void>();
  const died = Promise.withResolvers<void>();
  own.facts.append = async (record, options) => {
    if (record.copied === undefined) {
      await held.promise;
      return append(record, options);
    }
    died.resolve();
    return new Promise(() => {});
  };
  const taken: Taken = new Map();
  const dead = await relayOn(own, { taken });
  // While the message is stored, the carry and what the agent says wait together.
  await say(log, 'client', message('m2'), 't:msg:m2');
  await say(log, 'relay', { kind: 'copy-forward', startStoredAt: since }, `t:copy-forward:${since}`);
  await agentSays(agent(log, 2), OPENS, { kind: 'text', lane: 'a', tokens: ['more'] });
  await reached(() => taken.get('text') === 1);
  held.resolve();
  await died.promise;
  await die(own, dead);
  const relay = await relayOn(log.another());
  await carriedAfter(log, since);
  await relay.stop();
});

test('promise 1: half of a surrogate pair waits for its other half while something comes that changes nothing', {
  timeout: 20_000,
}, async () => {
  const log = createMemoryLog();
  const taken: Taken = new Map();
  const relay = await relayOn(log.another(), { taken });
  await say(log, 'client', message('m1'), 't:msg:m1');
  const writer = agent(log, 1);
  const [high, low] = ['\ud83d', '\ude00'];
  await agentSays(writer, OPENS, { kind: 'text', lane: 'a', tokens: [high] });
  await reached(() => taken.get('text') === 1);
  const { startStoredAt: since } = (await log.facts.last('t'))!.record;
  await say(log, 'relay', { kind: 'copy-forward', startStoredAt: since! }, `t:copy-forward:${since}`);
  await say(log, 'relay', { kind: 'timeout', request: 1 }, 't:timeout:1');
  await say(log, 'client', message('m1'), 'said once more, after the duplicate window');
  await reached(() => taken.get('message') === 2);
  await agentSays(writer, { kind: 'text', lane: 'a', tokens: [low] }, COMPLETES);
  await until(log, ({ aggregate }) => aggregate.state === 'TASK_STATE_COMPLETED');
  const texts: string[] = [];
  for await (const { record } of log.facts.read('t', 1))
    for (const fact of record.facts)
      if (fact.kind === 'artifact.updated') texts.push(fact.event.artifactUpdate.artifact.parts[0]!.text!);
  assert.equal(texts.join(''), '😀');
  assert.ok(texts.every(text => text.isWellFormed()));
  await relay.stop();
});

test('a relay that has let its shard go carries no further part of a task that is somebody else’s now', {
  timeout: 20_000,
}, async () => {
  const log = createMemoryLog();
  await waitingTask(log);
  const own = log.another();
  const append = own.facts.append.bind(own.facts);
  const stopped = Promise.withResolvers<void>();
  const parts: number[] = [];
  let relay: Relay | undefined;
  own.facts.append = async (record, options) => {
    const stored = await append(record, options);
    if (record.copied === undefined) return stored;
    parts.push(record.copied.part);
    if (record.copied.part === 1) await relay!.stop().then(stopped.resolve);
    return stored;
  };
  relay = await relayOn(own, { copyForwardAfterMs: CARRY_AFTER_MS });
  await stopped.promise;
  await new Promise(resolve => setTimeout(resolve, 50));
  assert.deepEqual(parts, [1]);
});
