import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type FactRecord, type Role, rawSubject, readSubject, tenantQueueOf } from '@hopline/events';
import { LiveAgents, type Log } from '@hopline/log';
import { inputRecord } from '@hopline/log/test-kit';
import {
  accounts,
  authorization,
  FACTS_STREAM,
  INPUTS_STREAM,
  type JetStreamLogOptions,
  type LogEvent,
  LogNames,
  type LogUser,
  openJetStreamLog,
  permissionsOf,
  type ServerUser,
  serverUsers,
  userName,
  WORK_CONSUMERS_MAX,
  WORK_STREAM,
} from '@hopline/log-jetstream';
import { type JetStreamManager, jetstreamManager, type StreamConfig, type StreamUpdateConfig } from '@nats-io/jetstream';
import { headers, type MsgHdrs, type NatsConnection } from '@nats-io/nats-core';
import { connect } from '@nats-io/transport-node';
import { until } from '../../kit/until.ts';
import { type NatsServer, startNats } from '../../support/nats/nats-server.ts';

/**
 * These tests use the login of one agent, or of an ingress, with the permissions that its service needs, to harm the log that all services share.
 */
const AGENT = 'agent.fair';
const AGENTS = ['fair', 'guide'];
const INBOX = `_INBOX.hopline.${AGENT}`;
const CONSUMERS = 1_100;
/** The limit of nats-server 2.15 for a stream that sets none. */
const SERVER_DEFAULT = 1_000;
const ANSWERS = 260;
const MIB = 1024 * 1024;
const WAIT_MS_MAX = 60_000;
const CHECK_MS = 200;

const PASSWORDS = new Map<ServerUser, { text: string }>();
for (const user of serverUsers(AGENTS)) PASSWORDS.set(user, { text: user });

const taskRecord = (taskId: string) =>
  ({
    v: 1,
    facts: [],
    aggregate: { taskId, contextId: 'c', generation: 1 },
    startSeq: 0,
    startStoredAt: 1,
  }) as unknown as FactRecord;
const work = (taskId: string, text = '') =>
  ({
    v: 1,
    taskId,
    contextId: 'c',
    turn: 1,
    profile: 'default',
    message: { role: 'user', parts: [] },
    metadata: { text },
  }) as never;

/** Headers as any client may write them: nats.js checks only those that are set by name. */
const headersOfText = (text: string) => ({ encode: () => Buffer.from(text) }) as unknown as MsgHdrs;

for (const agentAccounts of [false, true]) {
  const form = agentAccounts ? 'where agents have accounts of their own' : 'in one account';
  describe(`a malicious service, ${form}`, { timeout: 300_000 }, () => attacks(agentAccounts));
}

function attacks(agentAccounts: boolean): void {
  let server: NatsServer;
  let attacker: NatsConnection;
  let hostileIngress: NatsConnection;
  let admin: JetStreamManager;
  let adminConnection: NatsConnection;
  const logs: Log[] = [];
  const events: LogEvent[] = [];
  const login = (user: ServerUser) => ({ user: userName(user), pass: user });
  const open = async (user: LogUser, more: Partial<JetStreamLogOptions> = {}) => {
    const log = await openJetStreamLog({ servers: server.url, name: 'test', user, credentials: login(user), ...more });
    logs.push(log);
    return log;
  };
  let relay: Log;
  let ingress: Log;

  before(async () => {
    server = await startNats({ config: (agentAccounts ? accounts : authorization)(PASSWORDS) });
    attacker = await connect({ servers: server.url, ...login(AGENT), inboxPrefix: INBOX });
    hostileIngress = await connect({ servers: server.url, ...login('ingress'), inboxPrefix: '_INBOX.hopline.ingress' });
    adminConnection = await connect({ servers: server.url, ...login('admin') });
    admin = await jetstreamManager(adminConnection, { timeout: WAIT_MS_MAX });
    relay = await open('relay');
    ingress = await open('ingress');
  });
  after(async () => {
    await Promise.all(logs.map(log => log.close()));
    await attacker?.close();
    await hostileIngress?.close();
    await adminConnection?.close();
    await server?.stop();
  });

  const createConsumer = async (stream: string, config: { durable_name: string } & Record<string, unknown>) => {
    const { durable_name: name, filter_subject: filter } = config;
    const subject = `$JS.API.CONSUMER.CREATE.${stream}.${name}${filter === undefined ? '' : `.${filter}`}`;
    const request = JSON.stringify({ stream_name: stream, config: { ack_policy: 'none', ...config } });
    const answer = await hostileIngress.request(subject, request, { timeout: WAIT_MS_MAX });
    return answer.json<{ error?: { err_code: number } }>().error?.err_code;
  };
  const consumersOf = async (stream: string) => {
    const names: string[] = [];
    for await (const { name } of admin.consumers.list(stream)) names.push(name);
    return names;
  };
  const removed = (type: 'unknown-consumers' | 'unknown-work') =>
    events.reduce((sum, event) => sum + (event.type === type ? event.count : 0), 0);

  if (!agentAccounts) attacksOfIngress();

  test('answers that NATS gives to an agent are removed from its own queue, and records next to them stay', async () => {
    const removedBefore = removed('unknown-work');
    await open('relay', { removesUnknown: { keptConsumers: [], checkMs: CHECK_MS }, onEvent: event => events.push(event) });
    const agent = await open(AGENT);
    await agent.agents.put('fair.1', { name: 'fair' } as never);
    await relay.work.request(AGENT, work('kept', 'x'.repeat(MIB)), { id: 'kept' });
    // Padding, because a queue is searched only when it fills up.
    for (let index = 0; index < 40; index += 1)
      await relay.work.request(AGENT, work(`padding-${index}`, 'x'.repeat(MIB)), { id: `padding-${index}` });
    const publish = (subject: string, reply: string) => attacker.publish(subject, '{}', { reply });
    for (let index = 0; index < ANSWERS; index += 1) {
      // NATS acknowledges the input of the agent, and answers that there is no consumer.
      publish(`a2a.raw.00.flood-${index}.${AGENT}`, `a2a.work.${AGENT}.stored-${index}`);
      publish('$JS.API.CONSUMER.MSG.NEXT.A2A_WORK.agent-fair', `a2a.work.${AGENT}.next-${index}`);
    }
    publish(`a2a.raw.00.flood.${AGENT}`, `a2a.work.${AGENT}.kept`);
    await attacker.flush();
    const subjects = async () => {
      const { state } = await admin.streams.info(WORK_STREAM, { subjects_filter: `a2a.work.${AGENT}.>` });
      return state.subjects ?? {};
    };
    // All inputs are stored, so they have been acknowledged. Across accounts, no acknowledgement reaches a queue.
    await until(async () => (await admin.streams.info(INPUTS_STREAM)).state.messages > ANSWERS);
    if (!agentAccounts) await until(() => removed('unknown-work') - removedBefore >= ANSWERS, 'the answers were not removed');
    const others = async () => Object.keys(await subjects()).filter(subject => !/\.(kept|padding-\d+)$/.test(subject));
    await until(async () => (await others()).length === 0, 'answers remain');
    const left = await subjects();
    assert.equal(Object.keys(left).length, 41);
    assert.ok(left[`a2a.work.${AGENT}.kept`]! >= 1);
    if (agentAccounts) {
      assert.equal(removed('unknown-work'), removedBefore);
      assert.equal(left[`a2a.work.${AGENT}.kept`], 1);
    }
    await admin.streams.purge(WORK_STREAM, { filter: `a2a.work.${AGENT}.>` });
  });

  /** Subjects of all streams with the number of their messages, except those on which the agent may write. */
  async function subjectsOfOthers(): Promise<Record<string, Record<string, number>>> {
    const found: Record<string, Record<string, number>> = {};
    const own = /\.agent\.fair$|^\$KV\.hopline_(?:agents\.fair|message_ids|contexts|requeues\.agent\.fair)\./;
    for (const stream of new LogNames().allStreams()) {
      const { state } = await admin.streams.info(stream, { subjects_filter: '>' });
      found[stream] = Object.fromEntries(Object.entries(state.subjects ?? {}).filter(([subject]) => !own.test(subject)));
    }
    return found;
  }

  test('an item of the agent itself, delivered in place of a pull, takes an item of another queue in one account only', async t => {
    const supervisor = await open('supervisor');
    const fair = await open(AGENT);
    const taking = (log: Log, role: Role, id: string) => {
      const stop = new AbortController();
      t.after(() => stop.abort());
      let attempts = 0;
      const ended = log.work.take(role, { slots: 1, signal: stop.signal }, async ({ work, attempt }) => {
        if (work.taskId !== id) return;
        attempts = attempt;
        stop.abort();
      });
      return ended.then(() => attempts);
    };
    for (const [log, role] of [
      [supervisor, 'supervisor'],
      [fair, AGENT],
    ] as const) {
      const first = taking(log, role, 'first');
      await relay.work.request(role, work('first'), { id: `first-${role}` });
      await first;
    }
    const info = (consumer: string) => admin.consumers.info(WORK_STREAM, consumer);
    await until(async () => (await info('supervisor')).num_waiting === 0, 'a pull of the supervisor is open');
    const delivered = async (consumer: string) => (await info(consumer)).delivered.consumer_seq;
    const before = { fair: await delivered('agent-fair'), supervisor: await delivered('supervisor') };
    await relay.work.request('supervisor', work('theirs'), { id: 'theirs' });
    await relay.work.request(AGENT, work('own'), { id: 'own' });
    const pull = (consumer: string) => `$JS.API.CONSUMER.MSG.NEXT.${WORK_STREAM}.${consumer}`;
    attacker.publish(pull('agent-fair'), '{"batch":1}', { reply: pull('supervisor') });
    await until(async () => (await delivered('agent-fair')) > before.fair, 'the item was not delivered');
    if (!agentAccounts)
      await until(async () => (await delivered('supervisor')) > before.supervisor, 'the attack of the test does nothing');
    assert.equal(await taking(supervisor, 'supervisor', 'theirs'), agentAccounts ? 1 : 2);
    assert.ok((await taking(fair, AGENT, 'own')) > 1);
  });

  test('an id that an agent has used for an input of its own suppresses no input of others', async () => {
    const taskId = 'own-task';
    const subject = rawSubject(taskId, new LogNames().layouts, AGENT);
    const store = async (id: string) => {
      const forged = headers();
      forged.set('Nats-Msg-Id', id);
      const answer = await attacker.request(subject, '{}', { headers: forged, timeout: WAIT_MS_MAX });
      return answer.json<{ seq: number; duplicate?: boolean }>();
    };
    const [guide, supervisor] = [await open('agent.guide'), await open('supervisor')];
    const ofAgent = (id: string) => ({ ...inputRecord(1), from: { id, agent: 'guide', turn: 1, item: 1, attempt: 1 } }) as never;
    const cancel = { v: 1, at: 1, from: 'client', input: { kind: 'cancel' } } as const;
    const stored: unknown[] = [];
    for (const [log, record] of [
      [ingress, cancel],
      [relay, { v: 1, at: 1, from: 'relay', input: { kind: 'work-gone', turn: 1 } }],
      [supervisor, { ...inputRecord(1), from: { id: 'supervisor', agent: 'supervisor', turn: 1, item: 1, attempt: 1 } }],
      [guide, ofAgent('call-1-1')],
    ] as [Log, never][]) {
      const id: string = `${taskId}:${stored.length}`;
      const { seq } = await store(id);
      // The id under which the input is stored instead can be guessed, too.
      await store(`again:${seq}:${id}`);
      const first = await log.inputs.append(taskId, record, { id });
      assert.equal(first.duplicate, false, id);
      stored.push(record);
    }
    const { seq } = await store(`${taskId}:once`);
    const once = await ingress.inputs.append(taskId, cancel, { id: `${taskId}:once` });
    assert.equal(once.duplicate, false);
    assert.deepEqual(await ingress.inputs.append(taskId, cancel, { id: `${taskId}:once` }), { seq: once.seq, duplicate: true });
    assert.ok(once.seq > seq);
    const records = [];
    for await (const input of relay.inputs.read(taskId)) records.push(input.record);
    assert.deepEqual(records, [...stored, cancel]);
  });

  test('no header of a permitted message reaches a subject, a schedule or a counter of others', async t => {
    const taskId = '01a20b8e-0fb7-7b66-9672-787ed8e47090';
    await relay.facts.append(taskRecord(taskId), { expected: 0, id: `${taskId}:1` });
    const relayConnection = await connect({ servers: server.url, ...login('relay'), inboxPrefix: '_INBOX.hopline.relay' });
    t.after(() => relayConnection.close());
    const received: string[] = [];
    relayConnection.subscribe('_INBOX.hopline.relay.x', { callback: (_error, msg) => void received.push(msg.subject) });
    await relayConnection.flush();
    const before = await subjectsOfOthers();
    const theirs = [
      `a2a.log.00.${taskId}`,
      'a2a.work.agent.guide.forged',
      '$KV.hopline_leases.shard.0',
      '_INBOX.hopline.relay.x',
    ];
    const forged = [
      ...theirs.flatMap(subject => [
        { 'Nats-Trace-Dest': subject },
        { 'Nats-Trace-Dest': subject, 'Nats-Trace-Only': 'true' },
        { 'Nats-Schedule': '@at 2020-01-01T00:00:00Z', 'Nats-Schedule-Target': subject },
        { 'Nats-Schedule': '@every 1s', 'Nats-Schedule-Target': subject, 'Nats-Schedule-Source': subject },
        { 'Nats-Expected-Last-Subject-Sequence': '0', 'Nats-Expected-Last-Subject-Sequence-Subject': subject },
      ]),
      { 'Nats-Rollup': 'sub' },
      { 'Nats-Rollup': 'all' },
      { 'Nats-Incr': '+1' },
      { 'Nats-TTL': '1s' },
      { 'Nats-Batch-Id': 'b', 'Nats-Batch-Sequence': '1', 'Nats-Batch-Commit': '1' },
      { 'Nats-Request-Info': '{"acc":"hopline","svc":"hopline","user":"relay"}' },
      { 'Nats-Expected-Last-Sequence': '1' },
    ];
    const subjects = [
      `a2a.raw.00.forged.${AGENT}`,
      '$KV.hopline_agents.fair.1',
      '$KV.hopline_contexts.forged',
      readSubject('fair'),
    ];
    for (const [n, fields] of forged.entries()) {
      const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
      for (const subject of subjects)
        attacker.publish(subject, '{}', {
          headers: headersOfText(`NATS/1.0\r\n${lines.join('')}\r\n`),
          reply: `${INBOX}.forged-${n}`,
        });
    }
    await attacker.flush();
    // Nothing of the agent is read after an input that is stored later.
    const last = await attacker.request(`a2a.raw.00.last.${AGENT}`, '{}', { timeout: WAIT_MS_MAX });
    assert.ok(last.json<{ seq: number }>().seq > 0);
    await relayConnection.flush();
    assert.deepEqual(await subjectsOfOthers(), before);
    assert.deepEqual(received, []);
  });

  if (agentAccounts)
    test('no subject that a permitted request names for its answer is reached in the account of the log', async t => {
      const before = await subjectsOfOthers();
      const relayConnection = await connect({ servers: server.url, ...login('admin') });
      t.after(() => relayConnection.close());
      const theirs = [
        'a2a.log.00.forged',
        'a2a.log.00.*',
        'a2a.>',
        '>',
        'a2a.live.00.forged',
        'a2a.work.agent.guide.forged',
        'a2a.raw.00.forged.client',
        'a2a.read.guide',
        'a2a.present.relay.a',
        '$KV.hopline_leases.shard.0',
        '_INBOX.hopline.relay.forged',
        '_INBOX.hopline.agent.guide.forged',
        '$JS.API.STREAM.PURGE.A2A_LOG',
        '$SYS.REQ.USER.INFO',
      ];
      const received: string[] = [];
      // Agents that work ask relays on this subject meanwhile.
      for (const subject of theirs.filter(subject => !/[*>]|^a2a\.read/.test(subject)))
        relayConnection.subscribe(subject, { callback: (_error, msg) => void received.push(msg.subject) });
      await relayConnection.flush();
      const requests = [
        `a2a.raw.00.forged.${AGENT}`,
        '$KV.hopline_agents.fair.1',
        '$KV.hopline_contexts.forged',
        '$JS.API.CONSUMER.MSG.NEXT.A2A_WORK.agent-fair',
        '$JS.ACK.A2A_WORK.agent-fair.1.1.1.1.0',
      ];
      for (const reply of theirs)
        for (const subject of requests)
          attacker.publish(subject, subject.includes('NEXT') ? '{"no_wait":true}' : '{}', { reply });
      // An answer to `>` removes every answer that the account of the agent waits for (nats-server 2.15, removeRespServiceImport), also one
      // to a request that would be sent here. The admin is in the account of the log.
      const last = `a2a.raw.00.last-answer.${AGENT}`;
      attacker.publish(last, '{}');
      await attacker.flush();
      await until(() => admin.streams.getMessage(INPUTS_STREAM, { last_by_subj: last }));
      await relayConnection.flush();
      assert.deepEqual(await subjectsOfOthers(), before);
      assert.deepEqual(received, []);
    });

  test('no header of a permitted write empties a bucket', async () => {
    const agent = await open('agent.guide');
    await agent.messageIds.put('message', { taskId: 't' } as never);
    await agent.contexts.put('context', { taskIds: ['t'] } as never);
    const before = await ingress.messageIds.revision();
    const rollup = headers();
    rollup.set('Nats-Rollup', 'all');
    const keys = ['agents.fair.1', 'message_ids.k', 'contexts.k', `requeues.${AGENT}.t.1`];
    for (const key of keys) {
      const answer = await attacker.request(`$KV.hopline_${key}`, '{}', { headers: rollup, timeout: WAIT_MS_MAX });
      assert.match(answer.json<{ error: { description: string } }>().error.description, /rollup not permitted/, key);
    }
    assert.equal(await ingress.messageIds.revision(), before);
    assert.equal((await admin.streams.info('KV_hopline_message_ids')).state.messages, 1);
  });

  test('headers that nats.js refuses stop no reader, on any subject that an agent may publish to', async t => {
    const taskId = '01a20b8e-0fb7-7b66-9672-787ed8e47089';
    const names = new LogNames();
    const entry = (name: string) => ({ name, description: '', url: 'http://a.test', skills: [], heartbeat: 1 });
    const [supervisor, guide, fair] = [await open('supervisor'), await open('agent.guide'), await open(AGENT)];
    const stop = new AbortController();
    t.after(() => stop.abort());
    const lost: unknown[] = [];
    const follow = async ({ agents }: Log) => {
      const live = new LiveAgents(() => performance.now());
      await live.follow(agents, stop.signal, error => lost.push(error));
      return live;
    };
    const followers = await Promise.all([follow(ingress), follow(supervisor)]);
    const taken: string[] = [];
    const taking = fair.work.take(AGENT, { slots: 1, signal: stop.signal }, async job => void taken.push(job.work.taskId));
    let lastRead = 0;
    const reading = (async () => {
      for await (const { seq } of relay.inputs.readShard(
        names.layouts.shardOf(taskId),
        1,
        stop.signal,
        ({ seq }) => (lastRead = seq),
      ))
        lastRead = seq;
    })();

    const malformed = ['x y: 1\r\n', 'x\ty: 1\r\n', 'x: 1\n2\r\n', 'x: 1\r2\r\n', ': 1\r\n', 'ü: 1\r\n', 'x'];
    const permitted = permissionsOf(AGENT, names).publish.filter(subject => !subject.startsWith('$JS.'));
    const payloads = ['', '{}', JSON.stringify(entry('fair'))];
    for (const [n, lines] of malformed.entries())
      for (const payload of payloads)
        for (const subject of permitted) {
          const of = subject.replace(/^a2a\.raw\..*/, rawSubject(taskId, names.layouts, AGENT));
          const to = of.replaceAll(/[*>]/g, `k${n}`);
          attacker.publish(to, payload, { headers: headersOfText(`NATS/1.0\r\n${lines}\r\n`) });
        }
    await attacker.flush();
    const { seq: lastInput } = await ingress.inputs.append(
      taskId,
      { v: 1, at: 1, from: 'client', input: { kind: 'cancel' } },
      { id: 'i' },
    );

    await guide.agents.put('guide.1', entry('guide') as never);
    for (const live of followers) await until(() => live.isLive('guide'), 'a service does not see the agent');
    for (const log of [ingress, supervisor]) assert.ok((await follow(log)).isLive('guide'), 'a service that starts');
    assert.deepEqual(lost, []);
    await until(() => lastRead >= lastInput, 'a relay does not read the inputs of the shard');
    for await (const { seq } of relay.inputs.read(taskId)) assert.ok(seq <= lastInput);
    for (const n of malformed.keys()) {
      assert.deepEqual((await fair.agents.get(`fair.k${n}`))?.value, entry('fair'));
      assert.equal(await ingress.messageIds.get(`k${n}`), undefined);
      assert.equal(await ingress.contexts.get(`k${n}`), undefined);
      assert.ok((await ingress.contexts.create(`k${n}`, { taskIds: [taskId] } as never)) > 0);
    }
    await relay.work.request(AGENT, work('t9'), { id: 't9' });
    await until(() => taken.includes('t9'), 'the agent takes no work');
    stop.abort();
    await Promise.all([taking, reading]);
  });

  /** Services are in the account of the log in both forms. */
  function attacksOfIngress(): void {
    test('with more consumers than a server allows by default, services can still read, and a relay removes the excess', async () => {
      await relay.facts.append(taskRecord('read'), { expected: 0, id: 'read:1' });
      await admin.consumers.add(FACTS_STREAM, { durable_name: 'warehouse' });
      const refused = await Promise.all(
        Array.from({ length: CONSUMERS }, (_, index) => createConsumer(FACTS_STREAM, { durable_name: `dos${index}` })),
      );
      assert.deepEqual(
        refused.filter(code => code !== undefined),
        [],
      );
      const follow = new AbortController();
      for await (const { record } of await ingress.facts.follow('read', 0, follow.signal)) {
        assert.equal(record.aggregate.taskId, 'read');
        follow.abort();
      }
      const filter = '$KV.hopline_tasks.>';
      await createConsumer('KV_hopline_tasks', { durable_name: 'dos', filter_subject: filter });
      const removesUnknown = { keptConsumers: ['warehouse'], checkMs: CHECK_MS };
      await open('relay', { removesUnknown, onEvent: event => events.push(event) });
      await until(() => removed('unknown-consumers') >= CONSUMERS + 1, 'the consumers were not removed');
      assert.deepEqual(
        (await consumersOf(FACTS_STREAM)).filter(name => !name.startsWith('hopline-')),
        ['warehouse'],
      );
      assert.deepEqual(
        (await consumersOf('KV_hopline_tasks')).filter(name => !name.startsWith('hopline-')),
        [],
      );
    });

    test('NATS answers that are stored as work do not block new messages', async () => {
      // With one stored input, a service that may read inputs can make NATS send that input to any subject.
      const input = { v: 1, at: 1, from: 'client', input: { kind: 'message', text: 'x'.repeat(900 * 1024) } };
      await hostileIngress.request('a2a.raw.00.own.client', JSON.stringify(input), { timeout: WAIT_MS_MAX });
      const read = JSON.stringify({ last_by_subj: 'a2a.raw.00.own.client' });
      const answerTo = (reply: string) => hostileIngress.publish('$JS.API.STREAM.MSG.GET.A2A_RAW', read, { reply });
      for (let index = 0; index < ANSWERS; index += 1) answerTo(`a2a.work.agent.absent.${index}`);
      await hostileIngress.flush();
      await until(async () => {
        const { state } = await admin.streams.info(WORK_STREAM);
        return removed('unknown-work') > 0 && state.messages === 0;
      }, 'the answers were not removed');
      await ingress.work.requireRoom('supervisor');
      await relay.work.request('supervisor', work('t1'), { id: 't1' });
      const taken = new AbortController();
      const supervisor = await open('supervisor');
      await supervisor.work.take('supervisor', { slots: 1, signal: taken.signal }, async job => {
        assert.equal(job.work.taskId, 't1');
        taken.abort();
      });
    });

    test('items of an agent without workers stay, even in a full queue', async () => {
      const guide = await open('agent.guide');
      const stop = new AbortController();
      const taking = guide.work.take('agent.guide', { slots: 1, signal: stop.signal }, async () => stop.abort());
      await relay.work.request('agent.guide', work('first'), { id: 'first' });
      await taking;
      assert.ok((await consumersOf(WORK_STREAM)).includes('agent-guide'));
      const waiting = Array.from({ length: 40 }, (_, index) => `w${index}`);
      for (const id of waiting) await relay.work.request('agent.guide', work(id, 'x'.repeat(MIB)), { id });
      // More than an eighth of the queue's bytes are used, so it is searched.
      for (const place of ['absent.t', 'guide.0.0'])
        await adminConnection.request(`a2a.work.agent.${place}`, 'x', { timeout: WAIT_MS_MAX });
      const stored = async () => {
        const { state } = await admin.streams.info(WORK_STREAM, { subjects_filter: 'a2a.work.>' });
        return Object.keys(state.subjects ?? {});
      };
      // The relay's events are not counted: one that belongs to the previous test may arrive after that test has ended.
      await until(async () => (await stored()).length <= waiting.length, 'the other items were not removed');
      assert.deepEqual((await stored()).sort(), waiting.map(id => `a2a.work.agent.guide.${id}`).sort());
    });

    test('a queue has at most 128 items of one task and role', async () => {
      const store = async () =>
        (await adminConnection.request('a2a.work.supervisor.same', 'x', { timeout: WAIT_MS_MAX })).json<{
          error?: { description: string };
        }>();
      const answers = await Promise.all(Array.from({ length: 129 }, store));
      const refused = answers.filter(({ error }) => error !== undefined);
      assert.deepEqual(
        refused.map(({ error }) => error!.description),
        ['maximum messages per subject exceeded'],
      );
    });
  }
}

test('150 agents start at one server: their logins, registry entries, workers and watches', { timeout: 300_000 }, async t => {
  const server = await startNats();
  const names = Array.from({ length: 150 }, (_, index) => `a${index}`);
  const relay = await openJetStreamLog({ servers: server.url, name: 'relay' });
  const stop = new AbortController();
  const agents: Log[] = [];
  t.after(async () => {
    stop.abort();
    await Promise.all([relay, ...agents].map(log => log.close()));
    await server.stop();
  });
  const answered = new Set<string>();
  const workers: Promise<void>[] = [];
  for (const name of names) {
    const log = await openJetStreamLog({ servers: server.url, name });
    agents.push(log);
    await log.agents.put(`${name}.1`, {} as never);
    const done = async () => void answered.add(name);
    workers.push(log.work.take(`agent.${name}`, { slots: 1, signal: stop.signal }, done));
  }
  for (const name of names) await relay.work.request(`agent.${name}`, work(`t-${name}`), { id: name });
  await until(() => answered.size === names.length, 'not every agent took its work');
  const nc = await connect({ servers: server.url });
  t.after(() => nc.close());
  const jsm = await jetstreamManager(nc);
  const consumers = async () => (await jsm.streams.info(WORK_STREAM)).state.consumer_count;
  assert.equal(await consumers(), names.length, 'one for each agent');
  // Each agent gets work in every queue of tenants, and each queue needs a consumer: together more than a server allows by default.
  const owners = new Map(Array.from({ length: 100 }, (_, n) => ({ tenant: `${n}` })).map(owner => [tenantQueueOf(owner), owner]));
  for (const name of names)
    for (const owner of owners.values()) {
      const id = `${name}-${owner.tenant}`;
      await relay.work.request(`agent.${name}`, Object.assign(work(id), { owner }), { id });
    }
  await until(async () => (await consumers()) > SERVER_DEFAULT, 'the queues of tenants have no consumers');
  stop.abort();
  await Promise.all(workers);
});

/** The type of an update lacks the members that servers before 2.15 refuse to change. */
const bounds = (config: Partial<StreamConfig>): Partial<StreamUpdateConfig> => config;

/** Streams as a version without bounds created them. */
async function withoutBounds(jsm: JetStreamManager, url: string): Promise<void> {
  await (await openJetStreamLog({ servers: url, name: 'created' })).close();
  for await (const { config } of jsm.streams.list()) {
    const isBucket = config.name.startsWith('KV_');
    const numbers = isBucket ? {} : { max_msgs_per_subject: -1, discard_new_per_subject: false };
    await jsm.streams.update(
      config.name,
      bounds({ max_consumers: -1, max_msg_size: -1, allow_rollup_hdrs: isBucket, ...numbers }),
    );
  }
}

const boundsOf = ({ max_consumers, max_msg_size, max_msgs_per_subject, allow_rollup_hdrs, ...rest }: StreamConfig) => {
  const { discard_new_per_subject = false } = rest;
  return [max_consumers, max_msg_size, max_msgs_per_subject, allow_rollup_hdrs, discard_new_per_subject];
};

test('a relay gives existing streams the bounds that they lack, and leaves what an operator has raised', async t => {
  const server = await startNats();
  const nc = await connect({ servers: server.url });
  t.after(async () => {
    await nc.close();
    await server.stop();
  });
  const jsm = await jetstreamManager(nc);
  await withoutBounds(jsm, server.url);
  await jsm.streams.update(FACTS_STREAM, bounds({ max_consumers: 70_000 }));
  const payload = nc.info!.max_payload;
  await (await openJetStreamLog({ servers: server.url, name: 'relay' })).close();
  const read = async (stream: string) => boundsOf((await jsm.streams.info(stream)).config);
  assert.deepEqual(await read(FACTS_STREAM), [70_000, -1, -1, false, false]);
  assert.deepEqual(await read(INPUTS_STREAM), [2_500, -1, -1, false, false]);
  assert.deepEqual(await read(WORK_STREAM), [WORK_CONSUMERS_MAX, payload, 128, false, true]);
  for await (const { config } of jsm.streams.list())
    if (config.name.startsWith('KV_')) assert.deepEqual(boundsOf(config), [2_500, -1, 1, false, false], config.name);
});

test('a relay without the permission to change streams reports that, starts, and changes them once it is permitted', async t => {
  const permissions = authorization(PASSWORDS).replaceAll('"$JS.API.STREAM.UPDATE.A2A_WORK"', '"removed"');
  const server = await startNats({ config: permissions });
  const admin = { user: 'admin', pass: 'admin' };
  const nc = await connect({ servers: server.url, ...admin });
  t.after(async () => {
    await nc.close();
    await server.stop();
  });
  const jsm = await jetstreamManager(nc);
  const bare = await openJetStreamLog({ servers: server.url, name: 'created', credentials: admin });
  await bare.close();
  await jsm.streams.update(WORK_STREAM, bounds({ max_consumers: -1 }));
  const events: LogEvent[] = [];
  const credentials = { user: 'relay', pass: 'relay' };
  const onEvent = (event: LogEvent) => events.push(event);
  const relay = await openJetStreamLog({ servers: server.url, name: 'relay', user: 'relay', credentials, onEvent });
  t.after(() => relay.close());
  await relay.check();
  const refused = () => events.filter(({ type }) => type === 'bounds-refused');
  assert.deepEqual(refused(), [{ type: 'bounds-refused', stream: WORK_STREAM }]);
  // An upgrade replaces the relays before the last NATS node has the permissions of the new version.
  await server.reload(authorization(PASSWORDS));
  await server.restart();
  await until(async () => {
    const found = await jsm.streams.info(WORK_STREAM).catch(() => undefined);
    return found?.config.max_consumers === WORK_CONSUMERS_MAX;
  }, 'the stream has its bound');
  assert.equal(refused().length, 1);
});
