import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Task } from '@hopline/a2a';
import { type Fact, type FactRecord, formatCursor } from '@hopline/events';
import { freePort } from '@hopline/local-cluster';
import { factsId, type Log, TAIL_CHECK_MS } from '@hopline/log';
import { openJetStreamLog } from '@hopline/log-jetstream';
import { connect, type NatsConnection } from '@nats-io/transport-node';
import { frames } from '../support/cluster/a2a-stream.ts';
import { ServiceProcess } from '../support/cluster/service-process.ts';
import { heapBytes, printsHeap } from '../support/held-memory.ts';
import { type NatsServer, startNats } from '../support/nats/nats-server.ts';

/** Clients that come back at once, for example because their ingress was restarted. */
const OF_ONE_TASK = 100;
const OF_TASKS_OF_THEIR_OWN = 40;
/** Records of each task; a client has received those up to the second. */
const RECORDS = 12;
const RECEIVED = 2;
/** The newest record, and all of its records. */
const REQUESTS_PER_TASK_MAX = 2;
/** A client that waits for longer, because the machine is busy, checks its newest record again: `TAIL_CHECK_MS`, less a random quarter. */
const CHECK_MS_MIN = 0.75 * TAIL_CHECK_MS;

const IDLE_VIEWERS = 300;
const WARM_UP_VIEWERS = 50;
/** 7 KiB were measured with 10,000 viewers of one task; 300 vary more. */
const IDLE_VIEWER_BYTES_MAX = 16 * 1024;

/** A read of the newest record of a task. */
const NEWEST = 'the newest record';

const START_MS = 1_790_000_000_000;
const taskIdOf = (n: number) => `viewed-${`${n}`.padStart(6, '0')}`;

/** The `n`-th record of a task that runs, from 1: its creation, then a status each. */
function record(taskId: string, n: number, startSeq: number): FactRecord {
  const at = START_MS + n;
  const contextId = `context-of-${taskId}`;
  const status = {
    state: n === 1 ? 'TASK_STATE_SUBMITTED' : 'TASK_STATE_WORKING',
    timestamp: new Date(at).toISOString(),
  } as const;
  const task: Task = { id: taskId, contextId, status, history: [{ messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'x' }] }] };
  const role = 'supervisor' as const;
  const fact: Fact =
    n === 1
      ? { kind: 'task.created', at, generation: 1, event: { task }, role, profile: 'caipe' }
      : { kind: 'status.changed', at, generation: n, event: { statusUpdate: { taskId, contextId, status } } };
  const aggregate = { taskId, contextId, state: status.state, generation: n, at, role, profile: 'caipe' } as const;
  const empty = { messageIds: [], lanes: {}, calls: {}, producers: {} };
  return { v: 1, facts: [fact], aggregate: { ...aggregate, turn: 1, foldedSeq: n, ...empty }, startSeq, startStoredAt: START_MS };
}

/** Stores a task, and resolves with the cursor of a client that has received its first events. */
async function store(log: Log, taskId: string): Promise<string> {
  const seqs: number[] = [0];
  for (let n = 1; n <= RECORDS; n += 1) {
    const options = { expected: seqs.at(-1)!, id: factsId(taskId, 'filler', n) };
    seqs.push((await log.facts.append(record(taskId, n, seqs[1] ?? 0), options)).seq);
  }
  return formatCursor({ generation: RECEIVED, seq: seqs[RECEIVED]! });
}

describe('clients that come back at once', () => {
  let nats: NatsServer;
  let log: Log;
  let ingress: ServiceProcess;
  let observer: NatsConnection;
  const requests: string[] = [];
  const cursors: string[] = [];

  before(async () => {
    nats = await startNats();
    log = await openJetStreamLog({ servers: nats.url, name: 'fill', shards: 4 });
    for (let n = 0; n < OF_TASKS_OF_THEIR_OWN; n += 1) cursors.push(await store(log, taskIdOf(n)));
    ingress = new ServiceProcess({ service: 'ingress', instance: 'ingress-1', env: { NATS_URL: nats.url } }, await freePort());
    await ingress.start();
    observer = await connect({ servers: nats.url });
    const isAboutTasks = /^(DIRECT\.GET|STREAM\.MSG\.GET|CONSUMER\.[A-Z.]+)\.A2A_LOG(\.|$)/;
    const callback = (_error: unknown, { subject, data }: { subject: string; data: Uint8Array }) => {
      const call = subject.slice('$JS.API.'.length);
      // A direct get of the newest message has its subject in that of the request.
      const isNewest = Buffer.from(data).includes('"last_by_subj"') || call.startsWith('DIRECT.GET.A2A_LOG.');
      if (isAboutTasks.test(call)) requests.push(isNewest ? NEWEST : call);
    };
    observer.subscribe('$JS.API.>', { callback });
    await observer.flush();
  });
  after(async () => {
    await observer?.close();
    await ingress?.kill();
    await log?.close();
    await nats?.stop();
  });

  /** Resumes and reads the rest of a task; resolves with the ids of the frames. */
  async function resume(n: number): Promise<string[]> {
    const request = { dialect: '1.0' as const, method: 'SubscribeToTask', params: { id: taskIdOf(n) }, lastEventId: cursors[n]! };
    const ids: string[] = [];
    for await (const { id } of frames(ingress.url, request)) if (ids.push(id) === RECORDS - RECEIVED) break;
    return ids;
  }

  /** Requests from the return of the viewers until all of them have received the rest, and how long that took. */
  async function counted(viewers: readonly number[]): Promise<{ seen: string[]; ms: number }> {
    await ingress.kill();
    await ingress.start();
    await observer.flush();
    requests.length = 0;
    const startMs = performance.now();
    const received = await Promise.all(viewers.map(resume));
    const ms = performance.now() - startMs;
    for (const ids of received) assert.equal(ids.length, RECORDS - RECEIVED, 'exactly what follows the cursor');
    // The answer to this flush has arrived, so the server has passed on the copies of all earlier requests.
    await observer.flush();
    return { seen: [...requests], ms };
  }

  test(`${OF_ONE_TASK} clients of one task cause one read of it, share the reads of its newest record, and cause no consumer`, async () => {
    const { seen } = await counted(Array.from({ length: OF_ONE_TASK }, () => 0));
    assert.deepEqual(
      seen.filter(call => call !== NEWEST),
      ['DIRECT.GET.A2A_LOG'],
    );
    // How many of them meet in one read depends on the machine.
    assert.ok(seen.length < OF_ONE_TASK, `${seen.length}`);
  });

  test(`a client of a task of its own causes at most ${REQUESTS_PER_TASK_MAX} requests to NATS, and no consumer`, async () => {
    const { seen, ms } = await counted(cursors.map((_, n) => n));
    const perTask = REQUESTS_PER_TASK_MAX + Math.floor(ms / CHECK_MS_MIN);
    assert.ok(seen.length <= OF_TASKS_OF_THEIR_OWN * perTask, `${seen.length} in ${ms} ms: ${seen.slice(0, 12).join()}`);
    assert.deepEqual(
      seen.filter(call => call.startsWith('CONSUMER.')),
      [],
    );
  });

  test(`an idle viewer holds at most ${IDLE_VIEWER_BYTES_MAX} bytes of heap`, { timeout: 120_000 }, async () => {
    await ingress.kill();
    const env = { NATS_URL: nats.url, NODE_OPTIONS: printsHeap() };
    ingress = new ServiceProcess({ service: 'ingress', instance: 'ingress-2', env }, await freePort());
    await ingress.start();
    /** Viewers that have received the newest events and receive no more. */
    const watch = async (count: number) => {
      const left = new AbortController();
      const open = async () => {
        const request = { dialect: '1.0' as const, method: 'SubscribeToTask', params: { id: taskIdOf(0) }, signal: left.signal };
        const viewer = frames(ingress.url, request)[Symbol.asyncIterator]();
        await viewer.next();
        viewer.next().catch(() => {});
      };
      for (let n = 0; n < count; n += 50) await Promise.all(Array.from({ length: 50 }, open));
      return left;
    };
    (await watch(WARM_UP_VIEWERS)).abort();
    const before = await heapBytes(ingress);
    const left = await watch(IDLE_VIEWERS);
    const bytes = ((await heapBytes(ingress)) - before) / IDLE_VIEWERS;
    left.abort();
    assert.ok(bytes <= IDLE_VIEWER_BYTES_MAX, `${bytes} bytes`);
  });
});
