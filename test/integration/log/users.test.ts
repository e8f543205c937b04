import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { presenceSubject, readSubject, wakeSubject } from '@hopline/events';
import { LogDenied, LogMismatch } from '@hopline/log';
import {
  ANY_AGENT,
  accounts,
  authorization,
  type JetStreamLogOptions,
  type LogUser,
  openJetStreamLog,
  SERVICE_USERS,
  type ServerUser,
  serverUsers,
  userName,
} from '@hopline/log-jetstream';
import { connect, type NatsConnection, PermissionViolationError } from '@nats-io/transport-node';
import { until } from '../../kit/until.ts';
import { isPublishAnswer, startNatsProxy } from '../../support/nats/nats-proxy.ts';
import { type NatsServer, startNats } from '../../support/nats/nats-server.ts';

/** Far shorter than the time limit of a publish or a request, because a missing permission is reported, not waited for. */
const AT_ONCE_MS = 8_000;
const AGENT = 'agent.guide';
const SERVICES = [...SERVICE_USERS, AGENT, ANY_AGENT] as const satisfies readonly LogUser[];
type Service = (typeof SERVICES)[number];
const AGENTS: Service[] = [AGENT, ANY_AGENT];
const NONE: Service[] = [];
const SERVERS: Service[] = ['ingress', ...AGENTS];
const FOLLOWERS: Service[] = ['relay', 'ingress', 'supervisor', 'notifier'];
const READERS: Service[] = [...FOLLOWERS, 'operator'];

const bucket = (name: string) => `KV_hopline_${name}`;
const get = (stream: string) => `$JS.API.STREAM.MSG.GET.${stream}`;
const watch = (name: string) => `$JS.API.CONSUMER.CREATE.${bucket(name)}.hopline-x.$KV.hopline_${name}.>`;
const put = (name: string, key: string) => `$KV.hopline_${name}.${key}`;

/** Subjects, and the services that may publish there; no other one may. */
const PUBLISH: [subject: string, permitted: Service[]][] = [
  // Facts and live records.
  ['a2a.log.00.t', ['relay']],
  ['a2a.live.00.t', NONE],
  // Inputs, by their writer.
  ['a2a.raw.00.t', NONE],
  ['a2a.raw.00.t.client', ['ingress']],
  ['a2a.raw.00.t.relay', ['relay']],
  ['a2a.raw.00.t.supervisor', ['supervisor']],
  ['a2a.raw.00.t.agent.guide', AGENTS],
  ['a2a.raw.00.t.agent.files', [ANY_AGENT]],
  // Work.
  ['a2a.work.supervisor.t', ['relay']],
  ['a2a.work.agent.guide.t', ['relay', 'supervisor']],
  ['a2a.work.supervisor.3.0a1b2c3d.t', ['relay']],
  ['a2a.work.agent.guide.3.0a1b2c3d.t', ['relay', 'supervisor']],
  ['a2a.wake.guide', AGENTS],
  ['a2a.wake.files', [ANY_AGENT]],
  ['$JS.API.CONSUMER.MSG.NEXT.A2A_WORK.supervisor', ['supervisor']],
  ['$JS.API.CONSUMER.MSG.NEXT.A2A_WORK.agent-guide', AGENTS],
  ['$JS.API.CONSUMER.MSG.NEXT.A2A_WORK.agent-files', [ANY_AGENT]],
  ['$JS.API.CONSUMER.MSG.NEXT.A2A_WORK.supervisor_7', ['supervisor']],
  ['$JS.API.CONSUMER.MSG.NEXT.A2A_WORK.agent-guide_7', AGENTS],
  ['$JS.API.CONSUMER.CREATE.A2A_WORK.supervisor_7.a2a.work.supervisor.7.*.*', ['supervisor']],
  ['$JS.API.CONSUMER.CREATE.A2A_WORK.agent-guide_7.a2a.work.agent.guide.7.*.*', ['relay']],
  ['$JS.API.CONSUMER.CREATE.A2A_WORK.agent-guide_7.a2a.work.supervisor.7.*.*', NONE],
  ['$JS.ACK.A2A_WORK.agent-guide_7.1.1.1.1.0', AGENTS],
  ['$JS.API.CONSUMER.CREATE.A2A_WORK.supervisor.a2a.work.supervisor.*', ['supervisor']],
  ['$JS.API.CONSUMER.CREATE.A2A_WORK.supervisor.a2a.work.agent.guide.*', ['relay']],
  // Relays create the consumers of agents.
  ['$JS.API.CONSUMER.CREATE.A2A_WORK.agent-guide.a2a.work.agent.guide.*', ['relay']],
  ['$JS.API.CONSUMER.INFO.A2A_WORK.agent-guide', ['relay', 'ingress', 'supervisor']],
  ['$JS.API.CONSUMER.CREATE.A2A_WORK.agent-guide.a2a.work.supervisor.*', NONE],
  ['$JS.API.CONSUMER.CREATE.A2A_WORK.agent-guide', NONE],
  ['$JS.API.CONSUMER.DELETE.A2A_WORK.supervisor', ['relay']],
  ['$JS.ACK.A2A_WORK.supervisor.1.1.1.1.0', ['supervisor']],
  ['$JS.ACK.A2A_WORK.agent-guide.1.1.1.1.0', AGENTS],
  ['$JS.ACK.domain.account.A2A_WORK.supervisor.1.1.1.1.0.x', ['supervisor']],
  ['$JS.ACK.domain.account.A2A_WORK.agent-guide.1.1.1.1.0.x', AGENTS],
  // With a stream and a consumer in the place of numbers, a pattern of the second form would match subjects of the first.
  ['$JS.ACK.A2A_WORK.supervisor.A2A_WORK.agent-guide.1.1.1', ['supervisor']],
  ['$JS.ACK.A2A_WORK.agent-files.A2A_WORK.agent-guide.1.1.1', [ANY_AGENT]],
  ['$JS.ACK.A2A_WORK.agent-files.A2A_WORK.supervisor.1.1.1', [ANY_AGENT]],
  ['$JS.ACK.A2A_LOG.warehouse.A2A_WORK.agent-guide.1.1.1', NONE],
  ['$JS.API.STREAM.LEADER.STEPDOWN.A2A_LOG', ['relay']],
  // Reading inputs and facts.
  // A writer compares a duplicate of its own record.
  [get('A2A_RAW'), ['relay', 'ingress', 'operator', 'supervisor']],
  ['$JS.API.CONSUMER.CREATE.A2A_RAW.hopline-x.a2a.raw.00.>', ['relay', 'ingress', 'operator']],
  ['$JS.API.CONSUMER.MSG.NEXT.A2A_RAW.hopline-x', ['relay', 'ingress', 'operator']],
  // A list of shards.
  ['$JS.API.CONSUMER.CREATE.A2A_RAW.hopline-x', ['relay']],
  ['$JS.API.DIRECT.GET.A2A_RAW.a2a.raw.00.t.client', NONE],
  [get('A2A_LOG'), READERS],
  ['$JS.API.CONSUMER.CREATE.A2A_LOG.hopline-x.a2a.log.00.t', READERS],
  ['$JS.API.DIRECT.GET.A2A_LOG.a2a.log.00.t', FOLLOWERS],
  // A list of subjects to watch; the stream has only tasks, which a follower may read.
  ['$JS.API.CONSUMER.CREATE.A2A_LOG.hopline-x', FOLLOWERS],
  ['$JS.API.DIRECT.GET.A2A_LOG', READERS],
  // Relays read for agents.
  ['a2a.read.guide', AGENTS],
  ['a2a.read.guide.r', AGENTS],
  ['a2a.read.files', [ANY_AGENT]],
  ['a2a.read.files.r', [ANY_AGENT]],
  ['_INBOX.hopline.agent.guide.x', ['relay']],
  // The place of an item in its queue.
  [get('A2A_WORK'), ['relay', 'supervisor']],
  // Buckets.
  [get(bucket('leases')), ['relay', 'notifier', 'ingress']],
  [watch('leases'), ['relay', 'notifier']],
  [put('leases', 'shard.1'), ['relay']],
  [put('leases', 'relay.a'), ['relay']],
  [put('leases', 'notifier-shard.1'), ['notifier']],
  [put('leases', 'notifier.a'), ['notifier']],
  [get(bucket('tasks')), ['relay', 'ingress']],
  [watch('tasks'), ['relay', 'ingress']],
  [put('tasks', 't'), ['relay']],
  [get(bucket('task_lists')), ['relay', 'ingress']],
  [`$JS.API.DIRECT.GET.${bucket('task_lists')}`, ['relay', 'ingress']],
  [watch('task_lists'), ['relay', 'ingress']],
  [put('task_lists', 'tenant.owner.00.t.t'), ['relay', 'ingress']],
  [put('task_lists', 'tenant.owner.00.ended'), ['relay']],
  [put('task_lists', 'tenant.owner.00.ended.1'), ['relay']],
  [`$JS.API.STREAM.PURGE.${bucket('task_lists')}`, ['relay']],
  [get(bucket('agents')), ['relay', 'ingress', 'supervisor']],
  [watch('agents'), ['ingress', 'supervisor']],
  [put('agents', 'guide.1'), AGENTS],
  [put('agents', 'files.1'), [ANY_AGENT]],
  [get(bucket('message_ids')), ['relay', 'ingress']],
  [watch('message_ids'), NONE],
  [put('message_ids', 'k'), SERVERS],
  [get(bucket('contexts')), ['relay', 'ingress']],
  [watch('contexts'), NONE],
  [put('contexts', 'k'), SERVERS],
  [get(bucket('push_configs')), ['ingress', 'notifier']],
  [watch('push_configs'), ['ingress', 'notifier']],
  [put('push_configs', 't.c'), ['ingress']],
  [`$JS.API.STREAM.PURGE.${bucket('push_configs')}`, ['ingress', 'notifier']],
  [`$JS.API.DIRECT.GET.${bucket('push_configs')}.$KV.hopline_push_configs.t.c`, NONE],
  [get(bucket('push_progress')), ['ingress', 'notifier']],
  [watch('push_progress'), ['notifier']],
  [put('push_progress', 't.c'), ['notifier']],
  [`$JS.API.STREAM.PURGE.${bucket('push_progress')}`, ['notifier']],
  [get(bucket('requeues')), ['relay', 'supervisor']],
  [put('requeues', 'supervisor.t.1'), ['supervisor']],
  [put('requeues', 'agent.guide.t.1'), AGENTS],
  [put('requeues', 'agent.files.t.1'), [ANY_AGENT]],
  // Streams.
  ['$JS.API.STREAM.INFO.A2A_LOG', [...SERVICE_USERS]],
  ['$JS.API.INFO', [...SERVICE_USERS]],
  ['$JS.API.STREAM.CREATE.A2A_LOG', ['relay']],
  ['$JS.API.STREAM.CREATE.OTHER', NONE],
  // A relay adds missing limits to existing streams, and removes objects that do not belong to Hopline.
  ['$JS.API.STREAM.UPDATE.A2A_LOG', ['relay']],
  ['$JS.API.STREAM.UPDATE.OTHER', NONE],
  ['$JS.API.STREAM.PURGE.A2A_WORK', ['relay']],
  ['$JS.API.CONSUMER.LIST.A2A_LOG', ['relay']],
  ['$JS.API.CONSUMER.LIST.OTHER', NONE],
  ['$JS.API.CONSUMER.DELETE.KV_hopline_tasks.dos', ['relay', 'ingress']],
  ['$JS.API.CONSUMER.DELETE.A2A_WORK.dos', ['relay']],
  ...['DELETE', 'PURGE', 'SNAPSHOT', 'RESTORE', 'MSG.DELETE', 'PEER.REMOVE'].map((call): [string, Service[]] => [
    `$JS.API.STREAM.${call}.A2A_LOG`,
    NONE,
  ]),
  ['$JS.API.STREAM.LIST', NONE],
  ['$JS.API.STREAM.NAMES', NONE],
  ['$JS.API.CONSUMER.NAMES.A2A_RAW', NONE],
  ['$SYS.REQ.SERVER.PING', NONE],
  ['_INBOX.hopline.relay.x', NONE],
];

/** Subjects, and the services that may subscribe to them; no other one may. */
const SUBSCRIBE: [subject: string, permitted: Service[]][] = [
  ['_INBOX.hopline.relay.x', ['relay']],
  ['_INBOX.hopline.ingress.x', ['ingress']],
  ['_INBOX.hopline.supervisor.x', ['supervisor']],
  ['_INBOX.hopline.notifier.x', ['notifier']],
  ['_INBOX.hopline.operator.x', ['operator']],
  ['_INBOX.hopline.agent.guide.x', AGENTS],
  ['_INBOX.hopline.agent.files.x', [ANY_AGENT]],
  ['a2a.live.00.t', FOLLOWERS],
  ['a2a.live.*.*', FOLLOWERS],
  ['a2a.wake.guide', AGENTS],
  ['a2a.wake.files', [ANY_AGENT]],
  ['a2a.read.guide', ['relay']],
  ['a2a.read.guide.r', ['relay']],
  ...['>', '_INBOX.>', '_INBOX.hopline.>', 'a2a.>', 'a2a.raw.>', 'a2a.log.>', 'a2a.work.>', '$KV.>', '$JS.>', '$SYS.>'].map(
    (subject): [string, Service[]] => [subject, NONE],
  ),
];

const PASSWORDS = new Map<ServerUser, { text: string }>();
for (const user of [...serverUsers(['guide']), ANY_AGENT] as const) PASSWORDS.set(user, { text: user });

for (const agentAccounts of [false, true]) {
  const form = agentAccounts ? 'where agents have accounts of their own' : 'in one account';
  describe(`the users of the log on a real server, ${form}`, { timeout: 120_000 }, () => usersOnServer(agentAccounts));
}

function usersOnServer(agentAccounts: boolean): void {
  let server: NatsServer;
  const as = (user: ServerUser) => ({ user: userName(user), pass: user });
  const open = (user: LogUser, more: Partial<JetStreamLogOptions> = {}) =>
    openJetStreamLog({ servers: server.url, name: 'test', user, credentials: as(user), ...more });
  const atOnce = async (rejected: Promise<unknown>, error: typeof LogDenied | typeof LogMismatch, message: RegExp) => {
    const began = performance.now();
    await assert.rejects(rejected, thrown => thrown instanceof error && message.test(thrown.message));
    assert.ok(performance.now() - began < AT_ONCE_MS);
  };

  before(async () => {
    server = await startNats({ config: (agentAccounts ? accounts : authorization)(PASSWORDS) });
    await (await open('relay')).close();
  });
  after(() => server?.stop());

  /** Operations of `act` that the server did not permit. */
  async function violations(user: ServerUser, act: (nc: NatsConnection) => void): Promise<Set<string>> {
    const nc = await connect({ servers: server.url, ...as(user) });
    const found = new Set<string>();
    const watching = (async () => {
      for await (const status of nc.status())
        if (status.type === 'error' && status.error instanceof PermissionViolationError) found.add(status.error.subject);
    })();
    act(nc);
    await nc.flush();
    await nc.close();
    await watching;
    return found;
  }

  for (const user of SERVICES) {
    test(`${user} may publish what it needs and nothing else`, async () => {
      const denied = await violations(user, nc => {
        for (const [subject] of PUBLISH) nc.publish(subject, '');
      });
      // The processes of one agent must be in one account.
      const isElsewhere = (subject: string) =>
        agentAccounts && user === ANY_AGENT && `${subject}.`.startsWith(`${readSubject('guide')}.`);
      for (const [subject, permitted] of PUBLISH)
        assert.equal(!denied.has(subject), permitted.includes(user) && !isElsewhere(subject), subject);
    });

    test(`${user} may subscribe to what it needs and nothing else`, async () => {
      const denied = await violations(user, nc => {
        for (const [subject] of SUBSCRIBE) nc.subscribe(subject, { callback: () => {} });
      });
      for (const [subject, permitted] of SUBSCRIBE) assert.equal(!denied.has(subject), permitted.includes(user), subject);
    });
  }

  test('the admin may edit, purge and delete streams', async () => {
    const denied = await violations('admin', nc => {
      for (const call of ['UPDATE', 'PURGE', 'DELETE']) nc.publish(`$JS.API.STREAM.${call}.OTHER`, '');
      nc.subscribe('>', { callback: () => {} });
    });
    assert.deepEqual([...denied], []);
  });

  test('a write, a read and a subscription without permission are rejected at once, with user and subject', async () => {
    const log = await open('operator');
    const aggregate = { taskId: 't', generation: 1 } as never;
    const record = { v: 1, facts: [], aggregate, startSeq: 0, startStoredAt: 1 } as const;
    const appended = log.facts.append({ ...record, facts: [] }, { expected: 0, id: 'x' });
    await atOnce(appended, LogDenied, /^NATS does not permit user operator to publish to a2a\.log\.\w\w\.t: .*infra\/nats/);
    const read = log.pushConfigs.get('t.c');
    await atOnce(read, LogDenied, /user operator to publish to \$JS\.API\.STREAM\.MSG\.GET\.KV_hopline_push_configs/);
    for (const after of [0, 'new', { newest: 1 }] as const) {
      const followed = log.facts.follow('t', after, new AbortController().signal).then(async records => {
        for await (const _record of records) assert.fail('nothing is stored');
      });
      await atOnce(followed, LogDenied, /user operator to subscribe to a2a\.live\.\w\w\.t/);
    }
    await log.close();
  });

  test('a publish without permission does not affect others in flight, which are stored', async t => {
    const proxy = await startNatsProxy(server.port);
    t.after(() => proxy.close());
    const log = await open('ingress', { servers: proxy.url, ackTimeoutMs: 250 });
    t.after(() => log.close());
    let isLost = false;
    proxy.lose = frame => {
      const isAnswer = isPublishAnswer(frame);
      isLost ||= isAnswer;
      return isAnswer;
    };
    const permitted = log.inputs.append('t', { v: 1, at: 1, from: 'client', input: { kind: 'cancel' } }, { id: 't:cancel' });
    const aggregate = { taskId: 't', generation: 1 } as never;
    const record = { v: 1, facts: [], aggregate, startSeq: 0, startStoredAt: 1 } as const;
    await atOnce(log.facts.append({ ...record, facts: [] }, { expected: 0, id: 'x' }), LogDenied, /to publish to a2a\.log\./);
    // The denial may precede the answer, which takes a write to the disk.
    await until(() => isLost);
    proxy.lose = undefined;
    assert.equal((await permitted).duplicate, true);
  });

  test('a service with the user of another one does not start', async () => {
    const opening = open('ingress', { credentials: as('relay') });
    await atOnce(opening, LogMismatch, /does not permit user relay to subscribe to _INBOX\.hopline\.ingress\./);
  });

  test('a missing permission is reported as an event of the log, with its subject', async () => {
    const events: string[] = [];
    const log = await open('operator', {
      onEvent: event => 'message' in event && events.push(`${event.type}: ${event.message}`),
    });
    log.wakeUps.wake('guide', 'key');
    await until(() => events.length > 0, 'the denial is reported', AT_ONCE_MS);
    assert.match(events[0] ?? '', /^denied: NATS does not permit user operator to publish to a2a\.wake\.guide/);
    await log.close();
  });
}

test('a service whose permissions are removed and given back continues without a restart', { timeout: 180_000 }, async t => {
  const permitted = authorization(PASSWORDS);
  const without = (text: string, ...subjects: string[]) =>
    subjects.reduce((config, subject) => config.replaceAll(`"${subject}"`, '"removed.>"'), text);
  const removed = without(permitted, '_INBOX.hopline.relay.>', presenceSubject('relay.*'), wakeSubject('guide'));
  const server = await startNats({ config: permitted });
  const open = (user: LogUser, servers = server.url, onEvent?: JetStreamLogOptions['onEvent']) =>
    openJetStreamLog({
      servers,
      name: 'test',
      user,
      credentials: { user: userName(user), pass: user },
      ...(onEvent && { onEvent }),
    });
  const denials = new Map<string, number>();
  const relay = await open('relay', server.url, event => {
    if (event.type === 'denied') denials.set(event.message, (denials.get(event.message) ?? 0) + 1);
  });
  const agent = await open(AGENT);
  const other = await open('relay');
  const stop = new AbortController();
  t.after(async () => {
    stop.abort();
    await Promise.all([relay.close(), agent.close(), other.close()]);
    await server.stop();
  });
  const woken: string[] = [];
  agent.wakeUps.listen('guide', key => woken.push(key), stop.signal);
  relay.presence.enter('relay.a', stop.signal);
  await relay.leases.put('relay.a', {} as never);

  const proxy = await startNatsProxy(server.port);
  const unanswered = await open('relay', proxy.url);
  proxy.lose = isPublishAnswer;
  const inFlight = assert.rejects(unanswered.leases.put('relay.b', {} as never), LogDenied);

  await server.reload(removed);
  const reloadedAt = performance.now();
  await inFlight;
  assert.ok(performance.now() - reloadedAt < AT_ONCE_MS, 'a write in flight waits for an answer that cannot arrive');
  await unanswered.close();
  await proxy.close();
  const isDenied = (error: unknown) => error instanceof LogDenied;
  const write = () =>
    relay.leases.put('relay.a', {} as never).then(
      () => 'written' as const,
      error => error as Error,
    );
  await until(async () => isDenied(await write()), 'the write was not denied');
  const began = performance.now();
  assert.ok(isDenied(await write()), 'a later write waits for an answer that cannot arrive');
  assert.ok(performance.now() - began < AT_ONCE_MS);
  // Each subscription, of acknowledgements and of the member, was made again and denied again.
  await until(async () => {
    const again = [...denials].filter(([message, count]) => message.includes('to subscribe to') && count > 1);
    return again.length === 2;
  }, 'the subscriptions were not tried again');

  await server.reload(permitted);
  await until(async () => (await write()) === 'written', 'the writer stays denied');
  await until(async () => !(await other.presence.isGone('relay.a')), 'the member stays gone');
  await until(async () => {
    agent.wakeUps.wake('guide', 'key-1');
    return woken.length > 0;
  }, 'the agent is not woken');
});

test('services wait for a relay to create the streams, and end with a clear error when none does', {
  timeout: 120_000,
}, async t => {
  const server = await startNats();
  t.after(() => server.stop());
  const options = { servers: server.url, name: 'test' };
  await assert.rejects(openJetStreamLog({ ...options, user: 'supervisor', openTimeoutMs: 1_000 }), {
    name: 'LogUnavailable',
    message: 'A2A_RAW: the stream does not exist: a relay creates it when it starts, or within 15 s if it runs',
  });
  const opening = openJetStreamLog({ ...options, user: 'supervisor' });
  const relay = await openJetStreamLog({ ...options, user: 'relay' });
  const supervisor = await opening;
  await supervisor.check();
  await Promise.all([relay.close(), supervisor.close()]);
});
