import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { DIALECTS, type Message, type Task } from '@hopline/a2a';
import { createA2AServer, runOperation, type ServerRequest } from '@hopline/a2a-server';
import { type FactRecord, SHARDS_DEFAULT } from '@hopline/events';
import { addEnded, type EndedTask, type ListedTask, type Log, listKeyOf, listPrefixOf, type TaskIndexEntry } from '@hopline/log';
import { openJetStreamLog } from '@hopline/log-jetstream';
import { createLogger } from '@hopline/telemetry';
import { connect, type NatsConnection } from '@nats-io/transport-node';
import { type NatsServer, startNats } from '../support/nats/nats-server.ts';

/** More than the newest part of the lists keeps, so that some are in pages, and more than a server answers to one request. */
const TASKS = 3_000;
const OPEN = 5;
const OWNER = { tenant: 't', subject: 'anna' };
/** A caller whose tasks have several records. Their rows are of the previous version and lack what a page shows, so each of these tasks is read. */
const SECOND_OWNER = { tenant: 't', subject: 'ben' };
/** The same test with rows of this version. */
const THIRD_OWNER = { tenant: 't', subject: 'cleo' };
const SECOND_TASKS = 60;
const RECORDS = 5;
const ROLE = 'supervisor';
/** The lists, their pages, and the newest records of the tasks shown together with those of open tasks. */
const REQUESTS_MAX = 3;

/** Bytes that NATS sends for a page: the newest part of each list of the caller, and some of its pages. */
const PAGE_BYTES_MAX = 320 * 1024;
/** The same for a caller with SECOND_TASKS ended tasks, whose rows are all that is read. */
const ROWS_BYTES_MAX = 20 * 1024;

const START_MS = 1_790_000_000_000;
const COMPLETED = 'TASK_STATE_COMPLETED';
const question = (n: number): Message => ({ messageId: `m${n}`, role: 'ROLE_USER', parts: [{ text: 'x' }] });
const taskIdOf = (n: number) => `task-${`${n}`.padStart(6, '0')}`;

function record(n: number, state: Task['status']['state'], owner = OWNER): FactRecord {
  const [taskId, at] = [taskIdOf(n), START_MS + n];
  const status = { state, timestamp: new Date(at).toISOString() };
  const task: Task = { id: taskId, contextId: `c${n % 10}`, status, history: [question(n)] };
  const empty = { messageIds: [], lanes: {}, calls: {}, producers: {} };
  const aggregate = {
    taskId,
    contextId: `c${n % 10}`,
    state,
    generation: 1,
    at,
    role: ROLE,
    profile: 'caipe',
    owner,
  } as const;
  return {
    v: 1,
    facts: [{ kind: 'task.created', at, generation: 1, event: { task }, role: ROLE, profile: 'caipe', owner }],
    aggregate: { ...aggregate, turn: 1, foldedSeq: 1, ...empty },
    startSeq: 0,
    startStoredAt: at,
  };
}

/** Ended tasks and a few open ones of the caller, with the lists that a relay would have written. */
async function fill(log: Log): Promise<void> {
  const lists = new Map<string, EndedTask[]>();
  const writes: Promise<unknown>[] = [];
  for (let n = 0; n < TASKS; n += 1) {
    const [taskId, state] = [taskIdOf(n), n < TASKS - OPEN ? COMPLETED : 'TASK_STATE_WORKING'] as const;
    const stored = record(n, state);
    const { contextId } = stored.aggregate;
    writes.push(log.facts.append(stored, { expected: 0, id: `${taskId}:fill:1` }));
    const entry: TaskIndexEntry = { contextId, role: ROLE, owner: OWNER, state, startSeq: 1, generation: 1, at: START_MS + n };
    if (state !== COMPLETED) {
      writes.push(log.taskLists.put(listKeyOf(taskId, entry, log.layouts), entry));
      continue;
    }
    const prefix = listPrefixOf(taskId, entry, log.layouts);
    lists.set(prefix, [...(lists.get(prefix) ?? []), [taskId, contextId, state, START_MS + n, 1, 0]]);
  }
  for (const [prefix, tasks] of lists)
    for (let at = 0; at < tasks.length; at += 200) await addEnded(log.taskLists, prefix, tasks.slice(at, at + 200));
  await Promise.all(writes);
}

/** Ended tasks of several records, and of a caller. */
async function fillLong(log: Log, owner: typeof OWNER, from: number, listed?: (n: number) => ListedTask): Promise<void> {
  for (let n = from; n < from + SECOND_TASKS; n += 1) {
    const first = record(n, COMPLETED, owner);
    const [taskId, { contextId }] = [taskIdOf(n), first.aggregate];
    let { seq } = await log.facts.append(first, { expected: 0, id: `${taskId}:fill:1` });
    const startSeq = seq;
    for (let generation = 2; generation <= RECORDS; generation += 1) {
      const at = START_MS + n;
      const status = { state: COMPLETED, timestamp: new Date(at).toISOString() } as const;
      const fact = { kind: 'status.changed', at, generation, event: { statusUpdate: { taskId, contextId, status } } } as const;
      const next = { ...first, facts: [fact], aggregate: { ...first.aggregate, generation }, startSeq };
      ({ seq } = await log.facts.append(next, { expected: seq, id: `${taskId}:fill:${generation}` }));
    }
    const prefix = listPrefixOf(taskId, { role: ROLE, owner }, log.layouts);
    const row = [taskId, contextId, COMPLETED, START_MS + n, RECORDS, seq] as const;
    await addEnded(log.taskLists, prefix, [[...row, ...(listed ? ([listed(n)] as const) : ([] as const))]]);
  }
}

for (const shards of [4, SHARDS_DEFAULT])
  describe(`the requests to NATS that a list of tasks causes, in a log of ${shards} shards`, () => {
    let nats: NatsServer;
    let log: Log;
    let observer: NatsConnection;
    const requests: string[] = [];
    /** Bytes of all answers of NATS. */
    let answered = 0;

    before(async () => {
      nats = await startNats();
      log = await openJetStreamLog({ servers: nats.url, name: 'fill', shards });
      await fill(log);
      await fillLong(log, SECOND_OWNER, TASKS);
      await fillLong(log, THIRD_OWNER, TASKS + SECOND_TASKS, n => ({
        messages: 1,
        history: [question(n)],
        answer: `answer ${n}`,
        agents: ['guide'],
      }));
      observer = await connect({ servers: nats.url });
      observer.subscribe('_INBOX.>', {
        callback: (_error, { data }) => {
          answered += data.length;
        },
      });
      observer.subscribe('$JS.API.>', { callback: (_error, msg) => void requests.push(msg.subject.slice('$JS.API.'.length)) });
      await observer.flush();
    });
    after(async () => {
      await observer?.close();
      await log?.close();
      await nats?.stop();
    });

    async function list(own: Log, params: object, caller = OWNER) {
      const logger = createLogger({ service: 'test', instance: 'test', level: 'fatal' });
      const server = createA2AServer({ log: own, role: ROLE, profile: 'caipe', logger, authenticate: async () => caller });
      const request = {
        binding: 'jsonrpc',
        dialect: DIALECTS['1.0'],
        params,
        bytes: 2,
        headers: {},
        isClientGone: () => false,
        closed: new AbortController().signal,
      };
      const encode = (answer: unknown) => Buffer.from(JSON.stringify(answer));
      const answer = await runOperation(server, 'list', { ...request, encode } as unknown as ServerRequest);
      server.close();
      return JSON.parse(`${answer}`) as { tasks: Task[]; nextPageToken: string; totalSize?: number };
    }

    /** The requests of one list by a process that has read nothing before. */
    async function counted(params: object, caller = OWNER) {
      const log = await openJetStreamLog({ servers: nats.url, name: 'list', shards });
      await observer.flush();
      requests.length = 0;
      const answeredBefore = answered;
      try {
        const page = await list(log, params, caller);
        // The answer to this flush has arrived, so the server has passed on the copies of all earlier requests.
        await observer.flush();
        return { page, seen: [...requests], bytes: answered - answeredBefore };
      } finally {
        await log.close();
      }
    }

    const BESIDES = ['STREAM.INFO.A2A_LOG', 'DIRECT.GET.KV_hopline_leases'];

    for (const [name, params] of [
      ['the first page', {}],
      ['a page of one context', { contextId: 'c7' }],
      ['a page of one state', { status: COMPLETED }],
      ['a page near the end', { pageToken: Buffer.from(`${START_MS + 60}.task-000060`).toString('base64url') }],
    ] as const)
      test(`${name} of a cold process takes at most ${REQUESTS_MAX} requests, and no consumer`, async () => {
        const { page, seen, bytes } = await counted(params);
        assert.equal(page.tasks.length, 50);
        assert.ok(bytes > 0 && bytes <= PAGE_BYTES_MAX, `${bytes} bytes`);
        assert.deepEqual(
          seen.filter(call => BESIDES.includes(call)).sort(),
          [...BESIDES].sort(),
          'once in seconds, not for each page',
        );
        const ofList = seen.filter(call => !BESIDES.includes(call));
        assert.ok(ofList.length <= REQUESTS_MAX, ofList.join());
        assert.deepEqual(
          ofList.filter(call => !call.startsWith('DIRECT.GET.')),
          [],
          'no consumer and no other call',
        );
      });

    for (const [name, params] of [
      ['a page', {}],
      ['a page of one state', { status: COMPLETED }],
      ['a page of one text', { text: 'ANSWER' }],
      ['a page of one agent', { agent: 'guide' }],
      ['a page with one message of each task', { historyLength: 1 }],
    ] as const)
      test(`${name} of ended tasks reads rows instead of tasks: one request for a cold process`, async () => {
        const { page, seen, bytes } = await counted(params, THIRD_OWNER);
        assert.equal(page.tasks.length, 50);
        assert.ok(bytes > 0 && bytes <= ROWS_BYTES_MAX, `${bytes} bytes`);
        const newest = TASKS + 2 * SECOND_TASKS - 1;
        const status = { state: COMPLETED, timestamp: new Date(START_MS + newest).toISOString() };
        const shown = { id: taskIdOf(newest), contextId: `c${newest % 10}`, status };
        assert.deepEqual(page.tasks[0], { ...shown, history: [question(newest)] });
        assert.deepEqual(
          seen.filter(call => !BESIDES.includes(call)),
          ['DIRECT.GET.KV_hopline_task_lists'],
        );
      });

    test('a page with artifacts reads each of its tasks', async () => {
      const { page, seen } = await counted({ includeArtifacts: true }, THIRD_OWNER);
      assert.ok(page.tasks.every(({ artifacts, history }) => artifacts?.length === 0 && history?.length === 1));
      assert.ok(seen.filter(call => call === 'DIRECT.GET.A2A_LOG').length > page.tasks.length, seen.join());
    });

    test('a page of rows of the previous version takes one more request for each task of several records, and no consumer', async () => {
      const { page, seen } = await counted({}, SECOND_OWNER);
      assert.equal(page.tasks.length, 50);
      assert.ok(page.tasks.every(({ history }) => history?.length === 1));
      const ofList = seen.filter(call => !BESIDES.includes(call));
      assert.deepEqual(
        ofList.filter(call => !call.startsWith('DIRECT.GET.')),
        [],
      );
      assert.ok(ofList.length <= REQUESTS_MAX + page.tasks.length, `${ofList.length}`);
    });

    test('all pages together have every task once, newest first, and each page has the right total', async () => {
      const found: string[] = [];
      let pageToken = '';
      do {
        const page = await list(log, { pageSize: 100, pageToken });
        assert.equal(page.totalSize, TASKS);
        found.push(...page.tasks.map(({ id }) => id));
        pageToken = page.nextPageToken;
      } while (pageToken !== '');
      assert.deepEqual(
        found,
        Array.from({ length: TASKS }, (_, n) => taskIdOf(TASKS - 1 - n)),
      );
    });
  });
