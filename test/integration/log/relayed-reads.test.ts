import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type FactRecord, FORK_KEY, type Owner, readerSubject, readSubject, type TaskCreated } from '@hopline/events';
import { addEnded, type Log, listKeyOf, listPrefixOf, ownerFilters, type StoredFacts } from '@hopline/log';
import { factRecord, inputRecord } from '@hopline/log/test-kit';
import {
  accounts,
  authorization,
  type JetStreamLogOptions,
  type LogEvent,
  type LogUser,
  openJetStreamLog,
  type ServerUser,
  serverUsers,
  userName,
} from '@hopline/log-jetstream';
import { connect, type NatsConnection } from '@nats-io/transport-node';
import { until } from '../../kit/until.ts';
import { startNatsProxy } from '../../support/nats/nats-proxy.ts';
import { type NatsServer, startNats } from '../../support/nats/nats-server.ts';

/** A sub-agent reads its own tasks through relays, and no others. */
const GUIDE = 'agent.guide';
const MIB = 1024 * 1024;
const OWNER: Owner = { tenant: 'a', subject: 'ann' };
const PASSWORDS = new Map<ServerUser, { text: string }>();
for (const user of serverUsers(['guide', 'files'])) PASSWORDS.set(user, { text: user });

const upTo = (newest: number) => Array.from({ length: newest }, (_, n) => n + 1);

/** Time until a relay gets an answer, in which an agent that repeats its request would have done so three times. */
const LATE_MS = 9_000;

type Aggregate = FactRecord['aggregate'];
const CALLED: Partial<Aggregate> = { calls: { c1: { agent: 'guide' } } };

for (const agentAccounts of [false, true]) {
  const form = agentAccounts ? 'where agents have accounts of their own' : 'in one account';
  describe(`reads of a sub-agent, ${form}`, { timeout: 120_000 }, () => readsOf(agentAccounts));
}

function readsOf(agentAccounts: boolean): void {
  const config = (agentAccounts ? accounts : authorization)(PASSWORDS);
  let server: NatsServer;
  let relay: Log;
  let guide: Log;
  let files: Log;
  let hostile: NatsConnection;
  const logs: Log[] = [];
  const events: LogEvent[] = [];
  const login = (user: ServerUser) => ({ user: userName(user), pass: user });
  const open = async (user: LogUser, more: Partial<JetStreamLogOptions> = {}) => {
    const log = await openJetStreamLog({ servers: server.url, name: user, user, credentials: login(user), ...more });
    logs.push(log);
    return log;
  };

  before(async () => {
    server = await startNats({ config });
    relay = await open('relay');
    guide = await open(GUIDE, { onEvent: event => events.push(event) });
    files = await open('agent.files');
    hostile = await connect({ servers: server.url, ...login(GUIDE), inboxPrefix: `_INBOX.hopline.${GUIDE}` });
  });
  after(async () => {
    await hostile?.close();
    await Promise.all(logs.map(log => log.close()));
    await server?.stop();
  });

  let tasks = 0;
  const newTask = () => `t${++tasks}`;
  /** Stores the next record of a task. */
  async function store(
    taskId: string,
    aggregate: Partial<Aggregate> = {},
    more: { facts?: FactRecord['facts']; continuesText?: boolean } = {},
  ) {
    const newest = await relay.facts.last(taskId);
    const generation = (newest?.record.aggregate.generation ?? 0) + 1;
    const record = factRecord(taskId, generation, newest?.record.startSeq || newest?.seq || 0);
    Object.assign(record.aggregate, { owner: OWNER }, aggregate);
    if (more.facts) record.facts = [...more.facts];
    const id = `${taskId}:me:${generation}`;
    const { continuesText = false } = more;
    return (await relay.facts.append(record, { expected: newest?.seq ?? 0, id, continuesText })).seq;
  }
  const generations = async (records: AsyncIterable<StoredFacts>) => {
    const found: number[] = [];
    for await (const { record } of records) found.push(record.aggregate.generation);
    return found;
  };
  async function assertHidden(log: Log, taskId: string) {
    assert.equal(await log.facts.last(taskId), undefined);
    assert.deepEqual(await generations(log.facts.read(taskId, 1)), []);
    assert.deepEqual([...(await log.facts.lastOfEach([taskId])).keys()], []);
    assert.equal(await log.facts.isLost({ seq: 1, id: `${taskId}:me:1` }), false);
  }
  if (!agentAccounts) readsOfMany();

  test('tasks that the agent serves, and tasks in which it was called, are read; others look as if they did not exist', async () => {
    const [served, called, others] = [newTask(), newTask(), newTask()];
    await store(served, { role: GUIDE });
    await store(called, CALLED);
    await store(called, CALLED);
    await store(others, { calls: { c1: { agent: 'files' } } });
    assert.equal((await guide.facts.last(served))?.record.aggregate.generation, 1);
    assert.deepEqual(await generations(guide.facts.read(called, 1)), [1, 2]);
    assert.deepEqual([...(await guide.facts.lastOfEach([served, called, others])).keys()].sort(), [served, called].sort());
    await assertHidden(guide, others);
    await assertHidden(files, served);
    assert.equal((await files.facts.last(others))?.record.aggregate.taskId, others);
    await assertHidden(guide, 'no-such-task');
  });

  test('a task in which the agent was called in an earlier turn stays readable, even for a relay that has not seen the call', async () => {
    const taskId = newTask();
    const call = { kind: 'call.started', call: 'c1', agent: 'guide', at: 1, generation: 1 } as never;
    await store(taskId, CALLED, { facts: [call] });
    await store(taskId, { turn: 2, calls: {} });
    assert.equal((await guide.facts.last(taskId))?.record.aggregate.turn, 2);
    await assertHidden(files, taskId);
  });

  test('a call that comes later makes a task readable, and a follower that waited for it goes on', async () => {
    const taskId = newTask();
    await store(taskId);
    await assertHidden(guide, taskId);
    const stop = new AbortController();
    const records = (await guide.facts.follow(taskId, 0, stop.signal))[Symbol.asyncIterator]();
    const first = records.next();
    await store(taskId, CALLED);
    assert.equal((await first).value.record.aggregate.generation, 1);
    assert.equal((await records.next()).value.record.aggregate.generation, 2);
    stop.abort();
  });

  test('earlier tasks of the conversation are read by their path, and nothing else is', async () => {
    const created = (origin?: string): FactRecord['facts'] => [
      {
        kind: 'task.created',
        at: 1,
        generation: 1,
        event: { task: {} },
        role: 'supervisor',
        profile: 'caipe',
        ...(origin && { request: { [FORK_KEY]: { taskId: origin, cursor: '1.1' } } }),
      } as unknown as TaskCreated,
    ];
    const [earlier, origin, beforeOrigin, own, otherOwner, otherContext] = Array.from({ length: 6 }, newTask) as [
      string,
      string,
      string,
      string,
      string,
      string,
    ];
    await store(earlier, { contextId: 'one' });
    await store(otherOwner, { contextId: 'one', owner: { tenant: 'a', subject: 'bob' } });
    await store(otherContext, { contextId: 'three' });
    await store(beforeOrigin, { contextId: 'two' });
    await store(origin, { contextId: 'two' });
    await store(own, { contextId: 'one', ...CALLED }, { facts: created(origin) });
    for (const taskId of [earlier, origin, beforeOrigin, otherOwner, otherContext]) await assertHidden(guide, taskId);
    assert.equal((await guide.facts.last(earlier, [own]))?.record.aggregate.taskId, earlier);
    assert.deepEqual(await generations(guide.facts.read(earlier, 1)), [1], 'a read after it knows the path');
    assert.equal((await guide.facts.last(origin, [own]))?.record.aggregate.taskId, origin);
    assert.equal((await guide.facts.last(beforeOrigin, [own, origin]))?.record.aggregate.taskId, beforeOrigin);
    for (const path of [[own], [own, otherOwner], [origin]]) assert.equal(await guide.facts.last(otherOwner, path), undefined);
    for (const path of [[own], [own, origin], [earlier]]) assert.equal(await guide.facts.last(otherContext, path), undefined);
    assert.equal(await files.facts.last(earlier, [own]), undefined, 'the first task of the path must be its own');
  });

  test('when the relay of a feed is gone, another one sends the rest, even to followers of quiet tasks', async () => {
    const [busy, quiet] = [newTask(), newTask()];
    await store(busy, CALLED);
    await store(quiet, CALLED);
    const other = await open('relay');
    const proxy = await startNatsProxy(server.port);
    const agent = await open(GUIDE, { servers: proxy.url, follow: { tailCheckMs: 100 } });
    const stop = new AbortController();
    const found = { busy: [] as number[], quiet: [] as number[] };
    const follow = async (taskId: string, into: number[]) => {
      for await (const { record } of await agent.facts.follow(taskId, 0, stop.signal)) into.push(record.aggregate.generation);
    };
    const following = Promise.all([follow(busy, found.busy), follow(quiet, found.quiet)]);
    const count = async (taskId: string) => (await relay.facts.last(taskId))!.record.aggregate.generation;
    await until(() => found.busy.length > 0 && found.quiet.length > 0);
    for (let round = 0; round < 3; round += 1) {
      await store(busy, CALLED);
      // In one of the rounds, it does not matter which, the relay that has the feed leaves.
      if (round === 1) await other.close();
      if (round === 2) {
        proxy.cut();
        proxy.mend();
      }
    }
    await store(quiet, CALLED);
    const expected = { busy: upTo(await count(busy)), quiet: upTo(await count(quiet)) };
    await until(() => found.busy.length >= expected.busy.length && found.quiet.length >= expected.quiet.length);
    stop.abort();
    await following;
    assert.deepEqual(found, expected);
    await agent.close();
    await proxy.close();
  });

  test('an input is read by the agent that wrote it', async () => {
    const taskId = newTask();
    const record = { ...inputRecord(1), from: { id: 'c1', agent: 'guide', turn: 1, item: 1, attempt: 1 } } as never;
    const { seq } = await guide.inputs.append(taskId, record, { id: `${taskId}:1` });
    assert.deepEqual(await guide.inputs.recordAt(taskId, seq), record);
    assert.equal(await files.inputs.recordAt(taskId, seq), undefined);
    const supervisor = await open('supervisor');
    const cancel = { v: 1, at: 1, from: 'client', input: { kind: 'cancel' } } as const;
    const ingress = await open('ingress');
    const other = await ingress.inputs.append(taskId, cancel, { id: `${taskId}:2` });
    assert.equal(await guide.inputs.recordAt(taskId, other.seq), undefined);
    assert.deepEqual(await supervisor.inputs.recordAt(taskId, other.seq), cancel);
  });

  test('lists, counts and index entries contain only tasks of the agent', async () => {
    const entry = (role: string) =>
      ({ role, owner: OWNER, contextId: 'c', state: 'TASK_STATE_WORKING', at: 1, generation: 1, startSeq: 1, v: 1 }) as never;
    const [served, others] = [newTask(), newTask()];
    for (const [taskId, role] of [
      [served, GUIDE],
      [others, 'supervisor'],
    ] as const) {
      await relay.taskLists.put(listKeyOf(taskId, { role, owner: OWNER }, relay.layouts), entry(role));
      await relay.tasks.put(taskId, entry(role));
      await addEnded(relay.taskLists, listPrefixOf(taskId, { role, owner: OWNER }, relay.layouts), [
        [`${taskId}-ended`, 'c', 'TASK_STATE_COMPLETED', 1, 1, 1],
      ]);
    }
    const keys = async (filters: string[]) => (await guide.taskLists.match(filters, OWNER)).map(({ key }) => key);
    assert.equal((await keys(ownerFilters(GUIDE, OWNER))).length, 2);
    assert.deepEqual(await keys(ownerFilters('supervisor', OWNER)), []);
    assert.deepEqual(await keys(['*.*.*.t.*', '*.*.*.ended']), []);
    const [open = ''] = ownerFilters(GUIDE, OWNER);
    assert.equal(await guide.taskLists.count(open, OWNER), 1);
    assert.equal(await guide.taskLists.count(ownerFilters('supervisor', OWNER)[0]!, OWNER), 0);
    assert.equal((await guide.tasks.get(served))?.value.role, GUIDE);
    assert.equal(await guide.tasks.get(others), undefined);
  });

  test('relays answer only to the inbox of the agent, and ignore messages that are not requests', async () => {
    const taskId = newTask();
    await store(taskId, CALLED);
    const request = (payload: string, reply: string) => hostile.publish(readSubject('guide'), payload, { reply });
    const other = await connect({ servers: server.url, ...login('agent.files'), inboxPrefix: '_INBOX.hopline.agent.files' });
    const answers: string[] = [];
    other.subscribe('_INBOX.hopline.agent.files.x', { callback: (_error, msg) => void answers.push(msg.string()) });
    await other.flush();
    const before = (await relay.facts.last(taskId))!.seq;
    const asked = JSON.stringify({ op: 'newest', task: taskId });
    for (const reply of [
      `a2a.log.00.${taskId}`,
      'a2a.work.agent.guide.x',
      '_INBOX.hopline.agent.files.x',
      '_INBOX.hopline.relay.x',
    ])
      request(asked, reply);
    const feed = JSON.stringify({ op: 'open', feed: `a2a.log.00.${taskId}` });
    for (const payload of [
      '',
      '{',
      '[]',
      '{"op":"newest"}',
      '{"op":"newest","task":"*"}',
      '{"op":"read","task":"t","from":-1}',
      feed,
    ])
      request(payload, '_INBOX.hopline.agent.guide.x');
    await hostile.flush();
    // Requests are answered in the order of their arrival as far as they need no read of the log.
    assert.equal((await guide.facts.last(taskId))?.seq, before);
    assert.equal((await relay.facts.last(taskId))?.seq, before, 'nothing was stored on the subject of the task');
    await other.flush();
    assert.deepEqual(answers, [], 'another agent received an answer');
    await other.close();
  });

  test('a feed has the records of readable tasks only, whatever a request names', async () => {
    const [own, others] = [newTask(), newTask()];
    await store(own, CALLED);
    await store(others, { calls: { c1: { agent: 'files' } } });
    const inbox = '_INBOX.hopline.agent.guide.feed';
    const received: { task: string; payload: string }[] = [];
    const subscription = hostile.subscribe(inbox, {
      callback: (_error, msg) => void received.push({ task: msg.headers?.get('Hopline-Feed-Task') ?? '', payload: msg.string() }),
    });
    const ask = async (subject: string, request: { op: string } & Record<string, unknown>) =>
      (await hostile.request(subject, JSON.stringify(request), { timeout: request.op === 'keep' ? 500 : 10_000 })).json<{
        reader: string;
        error?: string;
      }>();
    const { reader } = await ask(readSubject('guide'), { op: 'open', feed: inbox });
    const task = (n: number, name: string) => ({ n, task: name, after: 0, watch: true });
    // The same task twice, and the same number for two tasks, must not leave a subscription behind either.
    const tasks = [task(1, own), task(2, others), task(2, own), task(3, others)];
    assert.equal((await ask(readerSubject('guide', reader), { op: 'follow', feed: inbox, tasks })).error, undefined);
    await store(others, { calls: { c1: { agent: 'files' } } });
    await store(own, CALLED);
    await until(() => received.some(one => one.task === '1'));
    subscription.unsubscribe();
    assert.deepEqual([...new Set(received.map(one => one.task).filter(Boolean))], ['1']);
    assert.ok(!received.some(({ payload }) => payload.includes(others)));
    await assert.rejects(ask(readerSubject('guide', reader), { op: 'keep', feed: '_INBOX.hopline.agent.files.feed' }), {
      name: 'TimeoutError',
    });
  });

  test('a relay follows a bounded number of tasks for one agent, and takes others once some have ended', async () => {
    const alone = await startNats({ config });
    const agentTasksMax = 4;
    const bounded = await open('relay', { servers: alone.url, agentTasksMax });
    const connection = await connect({ servers: alone.url, ...login(GUIDE), inboxPrefix: `_INBOX.hopline.${GUIDE}` });
    const ask = async (subject: string, request: object) =>
      (await connection.request(subject, JSON.stringify(request), { timeout: 10_000 })).json<{
        reader: string;
        error?: string;
      }>();
    const feed = (n: number) => `_INBOX.hopline.${GUIDE}.feed-${n}`;
    const tasks = (from: number, count: number) =>
      Array.from({ length: count }, (_, i) => ({ n: from + i, task: `t${from + i}`, after: 0 }));
    const { reader } = await ask(readSubject('guide'), { op: 'open', feed: feed(1) });
    await ask(readSubject('guide'), { op: 'open', feed: feed(2) });
    const follow = async (of: number, from: number, count: number) =>
      (await ask(readerSubject('guide', reader), { op: 'follow', feed: feed(of), tasks: tasks(from, count) })).error;
    const refused = 'the agent follows too many tasks';
    assert.deepEqual(
      [await follow(1, 1, 3), await follow(2, 1, 2), await follow(2, 1, 1), await follow(1, 4, 1)],
      [undefined, refused, undefined, refused],
    );
    assert.equal(await follow(1, 1, 3), undefined, 'the same tasks again');
    await ask(readerSubject('guide', reader), { op: 'leave', feed: feed(1), n: 1 });
    assert.equal(await follow(1, 4, 1), undefined);
    await connection.close();
    await bounded.close();
    await alone.stop();
  });

  test('an agent waits for a relay: its log is not ready without one, and a read ends when one is back', async () => {
    const taskId = newTask();
    await store(taskId, CALLED);
    const alone = await startNats({ config });
    const creator = await open('relay', { servers: alone.url });
    const agent = await open(GUIDE, { servers: alone.url });
    await agent.check();
    await creator.close();
    await assert.rejects(agent.check(), { name: 'LogUnavailable', message: 'no relay answers: start a relay of this version' });
    const read = agent.facts.last(taskId);
    await open('relay', { servers: alone.url });
    assert.equal(await read, undefined);
    await agent.check();
    await agent.close();
    await alone.stop();
  });

  /** Large reads, and their cost: the account of the agent makes no difference. */
  function readsOfMany(): void {
    test('a follower gets each record once, in pages of the history and then live', async () => {
      const taskId = newTask();
      const count = 1_100;
      for (let n = 0; n < 3; n += 1) await store(taskId, CALLED);
      const newest = await relay.facts.last(taskId);
      let seq = newest!.seq;
      for (let n = 4; n <= count; n += 1) {
        const record = factRecord(taskId, n, newest!.record.startSeq);
        Object.assign(record.aggregate, { owner: OWNER }, CALLED);
        ({ seq } = await relay.facts.append(record, { expected: seq, id: `${taskId}:me:${n}` }));
      }
      const stop = new AbortController();
      const found: number[] = [];
      for await (const { record } of await guide.facts.follow(taskId, 0, stop.signal)) {
        found.push(record.aggregate.generation);
        if (found.length === count) await store(taskId, CALLED);
        if (found.length > count) stop.abort();
      }
      assert.deepEqual(found, upTo(count + 1));
    });

    test('a follower without text gets the records between and reads nothing again', async () => {
      const taskId = newTask();
      const first = await store(taskId, CALLED);
      events.length = 0;
      const stop = new AbortController();
      const newest = await guide.facts.last(taskId);
      const records = (await guide.facts.follow(taskId, { newest: first, id: newest?.id, skipsText: true }, stop.signal))[
        Symbol.asyncIterator
      ]();
      const second = records.next();
      // The first record after the start may be read from the log, so it is one with text.
      await store(taskId, CALLED);
      assert.equal((await second).value.record.aggregate.generation, 2);
      const third = records.next();
      for (let n = 0; n < 20; n += 1) await store(taskId, CALLED, { continuesText: true });
      const state = await store(taskId, CALLED);
      const { value } = await third;
      assert.equal(value.seq, state);
      assert.deepEqual(
        events.filter(({ type }) => type === 'reread'),
        [],
      );
      stop.abort();
    });

    test('an agent that starts finds its work, although the list of it is larger than a message of NATS may be', async t => {
      const small = await startNats({ config: `max_payload: ${MIB}\n${config}` });
      t.after(() => small.stop());
      await open('relay', { servers: small.url });
      const requester = await open('supervisor', { servers: small.url });
      const agent = await open(GUIDE, { servers: small.url });
      const request = (taskId: string) =>
        requester.work.request(GUIDE, { v: 1, taskId, contextId: 'c', turn: 1, owner: OWNER, message: {} } as never, {
          id: taskId,
        });
      // As many as may wait for one role. Each takes about 75 bytes of the list.
      for (let n = 0; n < 20_000; n += 500)
        await Promise.all(Array.from({ length: 500 }, (_, m) => request(`${'0'.repeat(30)}-${100_000 + n + m}`)));
      // Otherwise it would still inform the agent that its queue has work.
      await requester.close();
      const stop = new AbortController();
      const taken = Promise.withResolvers<void>();
      const taking = agent.work.take(GUIDE, { slots: 1, signal: stop.signal }, async () => taken.resolve());
      await Promise.race([taken.promise, taking]);
      stop.abort();
      await taking;
    });
  }
}

test('a read that the relay itself is waiting for is not sent to relays repeatedly', { timeout: 120_000 }, async t => {
  const server = await startNats({ config: authorization(PASSWORDS) });
  t.after(() => server.stop());
  const proxy = await startNatsProxy(server.port);
  t.after(() => proxy.close());
  const login = (user: ServerUser) => ({ user: userName(user), pass: user });
  const open = (user: LogUser, servers: string) => openJetStreamLog({ servers, name: user, user, credentials: login(user) });
  const relay = await open('relay', proxy.url);
  t.after(() => relay.close());
  const agent = await open(GUIDE, server.url);
  t.after(() => agent.close());
  const record = factRecord('task', 1, 0);
  Object.assign(record.aggregate, CALLED);
  await relay.facts.append(record, { expected: 0, id: 'task:me:1' });
  const nc = await connect({ servers: server.url, ...login('relay'), inboxPrefix: '_INBOX.hopline.relay' });
  t.after(() => nc.close());
  let requests = 0;
  nc.subscribe(readSubject('guide'), {
    callback: () => {
      requests += 1;
    },
  });
  await nc.flush();
  let isLate = false;
  const beganMs = performance.now();
  // The relay reads again after 2, 6 and 10 s.
  proxy.lose = ({ header }) => {
    const losesThis = header.includes('\r\nNats-Subject: ') && performance.now() - beganMs < LATE_MS;
    isLate ||= losesThis;
    return losesThis;
  };
  assert.equal((await agent.facts.last('task'))?.record.aggregate.generation, 1);
  await nc.flush();
  assert.ok(isLate, 'the relay has read the record at once: the test proves nothing');
  assert.ok(requests >= 1 && requests <= 2, `${requests} requests`);
});

test('a record of a quiet task that is stored while its feed is lost reaches the follower with the next feed', {
  timeout: 120_000,
}, async t => {
  const server = await startNats({ config: authorization(PASSWORDS) });
  t.after(() => server.stop());
  const proxy = await startNatsProxy(server.port);
  t.after(() => proxy.close());
  const open = async (user: LogUser, servers: string) => {
    const credentials = { user: userName(user), pass: user };
    // The follower checks no tail by itself within this test.
    const log = await openJetStreamLog({ servers, name: user, user, credentials, follow: { tailCheckMs: 600_000 } });
    t.after(() => log.close());
    return log;
  };
  const recordOf = (generation: number, startSeq: number) => {
    const record = factRecord('task', generation, startSeq);
    Object.assign(record.aggregate, CALLED);
    return record;
  };
  const relay = await open('relay', proxy.url);
  const agent = await open(GUIDE, server.url);
  const { seq } = await relay.facts.append(recordOf(1, 0), { expected: 0, id: 'task:me:1' });
  const found: number[] = [];
  const stop = new AbortController();
  const following = (async () => {
    for await (const { record } of await agent.facts.follow('task', 0, stop.signal)) found.push(record.aggregate.generation);
  })();
  await until(() => found.length > 0);
  // The agent notices that the feed is lost once it has been silent for seconds.
  const other = await open('relay', server.url);
  proxy.cut();
  await other.facts.append(recordOf(2, seq), { expected: seq, id: 'task:me:2' });
  await until(() => found.length > 1);
  stop.abort();
  await following;
  assert.deepEqual(found, [1, 2]);
  proxy.mend();
});
