import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { createClient } from '@hopline/client';
import { readSubject } from '@hopline/events';
import { inboxOf, LogNames, type LogUser, type ServerUser, userName } from '@hopline/log-jetstream';
import { type JetStreamManager, jetstreamManager } from '@nats-io/jetstream';
import { headers } from '@nats-io/nats-core';
import { connect, type NatsConnection, PermissionViolationError } from '@nats-io/transport-node';
import { until } from '../kit/until.ts';
import { collect, type Frame, frames, textOf } from '../support/cluster/a2a-stream.ts';
import { Cluster } from '../support/cluster/cluster.ts';

/**
 * The attacks of the review of 2026-11-23, with the login of each service against a cluster that works: nothing is reached beyond the tasks of the login, and
 * the tasks of others complete meanwhile. How long they take depends on the machine, so it is not compared.
 */
const HOSTILE = 'agent.hostile';
const LOGINS = [HOSTILE, 'supervisor', 'notifier', 'ingress', 'relay'] as const satisfies readonly LogUser[];
type Login = (typeof LOGINS)[number];
const CANARY = `canary-${randomUUID()}`;
const QUESTIONS = 5;
/** Requests of one flood: what a relay handles at once, several times, and far less than a stream has room for. */
const FLOOD = 1_500;
/** Number of words in a slow answer. */
const WORDS = 80;
const names = new LogNames();

const api = (call: string) => `$JS.API.${call}`;
const READERS: Login[] = ['supervisor', 'notifier', 'ingress', 'relay'];

/** Subjects of requests, and the logins whose own work needs them. `task` is the task of another tenant. */
const ATTACKS: [attack: string, subject: (task: string) => string, permitted: readonly Login[]][] = [
  ['read a fact by its sequence', () => api('STREAM.MSG.GET.A2A_LOG'), READERS],
  ['read facts of a task', task => api(`DIRECT.GET.A2A_LOG.a2a.log.00.${task}`), READERS],
  ['read an input by its sequence', () => api('STREAM.MSG.GET.A2A_RAW'), ['supervisor', 'ingress', 'relay']],
  ['read work by its sequence', () => api('STREAM.MSG.GET.A2A_WORK'), ['supervisor', 'relay']],
  ['read webhooks', () => api('STREAM.MSG.GET.KV_hopline_push_configs'), ['notifier', 'ingress']],
  ['read the task index', () => api('STREAM.MSG.GET.KV_hopline_tasks'), ['ingress', 'relay']],
  ['list the ids of tasks', () => api('STREAM.INFO.A2A_LOG'), READERS],
  ['read as another agent', () => readSubject('echo'), []],
  ['create a consumer of facts', () => api('CONSUMER.CREATE.A2A_LOG.dos'), READERS],
  ['create a consumer of work', () => api('CONSUMER.CREATE.A2A_WORK.agent-echo.a2a.work.agent.echo.*'), ['relay']],
  ['take the work of another agent', () => api('CONSUMER.MSG.NEXT.A2A_WORK.agent-echo'), []],
  ['delete a consumer of work', () => api('CONSUMER.DELETE.A2A_WORK.agent-echo'), ['relay']],
  ['acknowledge the work of another agent', () => '$JS.ACK.A2A_WORK.agent-echo.1.1.1.1.0', []],
  [
    'take the work of another agent with an acknowledgement of its own',
    () => '$JS.ACK.A2A_WORK.agent-echo.A2A_WORK.agent-hostile.1.1.1',
    [],
  ],
  [
    'take the work of the supervisor with an acknowledgement of its own',
    () => '$JS.ACK.A2A_WORK.supervisor.A2A_WORK.agent-hostile.1.1.1',
    ['supervisor'],
  ],
  ['take the work of an agent as its supervisor', () => '$JS.ACK.A2A_WORK.agent-echo.A2A_WORK.supervisor.1.1.1', []],
  ['read facts with an acknowledgement', () => '$JS.ACK.A2A_LOG.warehouse.A2A_WORK.agent-hostile.1.1.1', []],
  ['create a stream', () => api('STREAM.CREATE.OTHER'), []],
  ['delete a stream', () => api('STREAM.DELETE.A2A_LOG'), []],
  ['purge facts', () => api('STREAM.PURGE.A2A_LOG'), []],
  ['purge inputs', () => api('STREAM.PURGE.A2A_RAW'), []],
  ['purge message ids', () => api('STREAM.PURGE.KV_hopline_message_ids'), []],
  ['delete a fact', () => api('STREAM.MSG.DELETE.A2A_LOG'), []],
  ['take a snapshot', () => api('STREAM.SNAPSHOT.A2A_LOG'), []],
  ['forge a fact', task => `a2a.log.00.${task}`, ['relay']],
  ['forge a live record', task => `a2a.live.00.${task}`, []],
  ['forge an input of another agent', task => `a2a.raw.00.${task}.agent.echo`, []],
  ['forge an input of a client', task => `a2a.raw.00.${task}.client`, ['ingress']],
  ['forge an answer to a service', () => `${inboxOf('ingress', names)}.x`, []],
  ['forge an answer to another agent', () => `${inboxOf('agent.echo', names)}.x`, ['relay']],
  ['hold the lease of a shard', () => '$KV.hopline_leases.shard.0', ['relay']],
  ['hold the lease of a notifier', () => '$KV.hopline_leases.notifier-shard.0', ['notifier']],
  ['replace a webhook', task => `$KV.hopline_push_configs.${task}.c`, ['ingress']],
  ['register as another agent', () => '$KV.hopline_agents.echo.1', []],
];
const SUBSCRIPTIONS = ['>', 'a2a.log.>', 'a2a.raw.>', 'a2a.work.>', '_INBOX.>', '$KV.>', '$JS.>', '$SYS.>'];

for (const agentAccounts of [false, true]) describeAttacks(agentAccounts);

function describeAttacks(agentAccounts: boolean): void {
  const form = agentAccounts ? 'agents have accounts of their own' : 'all users have one account';
  describe(`the login of a service in the hands of an attacker, where ${form}`, { timeout: 300_000 }, () =>
    attacks(agentAccounts),
  );
}

function attacks(agentAccounts: boolean): void {
  let folder: string;
  let cluster: Cluster;
  let adminConnection: NatsConnection;
  let admin: JetStreamManager;
  let task: string;
  const login = (user: ServerUser) => ({ user: userName(user), pass: user });

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'hopline-login-'));
    const path = (name: string) => {
      const file = join(folder, `${name}.mjs`);
      const run = `async *run(turn) { yield "echo "; if (turn.text === 'slowly') for (let i = 0; i < ${WORDS}; i += 1) { yield 'w' + i + ' '; await new Promise(r => setTimeout(r, 25)); } yield turn.text; }`;
      writeFileSync(file, `export default { name: '${name}', description: 'Repeats what it is asked as ${name}', ${run} };`);
      return file;
    };
    cluster = await Cluster.start({
      users: true,
      agentAccounts,
      notifiers: 1,
      agents: ['echo', 'hostile'].map(name => ({ name, adapter: 'module', path: path(name), default: name === 'echo' })),
    });
    adminConnection = await connect({ servers: cluster.nats.url, ...login('admin') });
    admin = await jetstreamManager(adminConnection);
    assert.equal(textOf(await collect(cluster.url, { text: CANARY }), 'streaming_result'), `echo ${CANARY}`);
    const { tasks } = await createClient({ url: `${cluster.url}/` }).list();
    task = tasks[0]!.id;
    // The hostile agent has had work, so it has a consumer that answers.
    assert.equal(textOf(await collect(`${cluster.agents[1]!.url}/`, { text: 'hi' }), 'response'), 'echo hi');
  });
  after(async () => {
    await adminConnection?.close();
    await cluster?.[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  });

  /** Connects as a service. `denied`: what the server does not permit; `received`: what arrives without a request. */
  async function attacker(user: Login) {
    const nc = await connect({ servers: cluster.nats.url, ...login(user), inboxPrefix: inboxOf(user, names) });
    const denied = new Set<string>();
    void (async () => {
      for await (const status of nc.status())
        if (status.type === 'error' && status.error instanceof PermissionViolationError) denied.add(status.error.subject);
    })();
    return { nc, denied };
  }

  async function otherTenantsAsk() {
    const questions = Array.from({ length: QUESTIONS }, (_, n) => `question-${n}`);
    const answers = await Promise.all(
      questions.map(async text => textOf(await collect(cluster.url, { text }), 'streaming_result')),
    );
    assert.deepEqual(
      answers,
      questions.map(text => `echo ${text}`),
    );
  }

  /** The records of the tasks of others, and the configuration of every stream. */
  async function untouched() {
    const facts = await admin.streams.info('A2A_LOG', { subjects_filter: `a2a.log.*.${task}` });
    const configs: unknown[] = [];
    for (const stream of names.allStreams()) configs.push((await admin.streams.info(stream)).config);
    return { facts: facts.state.subjects, configs };
  }

  async function subjectsOf(stream: string, filter: string): Promise<string[]> {
    const { state } = await admin.streams.info(stream, { subjects_filter: filter });
    return Object.keys(state.subjects ?? {});
  }

  for (const user of LOGINS) {
    test(`${user}: requests beyond its work are denied, and tasks of others complete meanwhile`, async t => {
      const before = await untouched();
      const { nc, denied } = await attacker(user);
      t.after(() => nc.close());
      const asking = otherTenantsAsk();
      const forbidden = ATTACKS.filter(([, , permitted]) => !permitted.includes(user));
      // Answers to the requests would go to streams that all share.
      const rollup = headers();
      rollup.set('Nats-Rollup', 'all');
      for (const [, subject] of forbidden) {
        nc.publish(subject(task), '{}', { reply: 'a2a.work.agent.echo.forged' });
        nc.publish(subject(task), '{}', { reply: `a2a.log.00.${task}`, headers: rollup });
      }
      for (const subject of SUBSCRIPTIONS) nc.subscribe(subject, { callback: () => {} });
      await nc.flush();
      await until(() => denied.size >= forbidden.length + SUBSCRIPTIONS.length, 'a request was permitted');
      for (const [attack, subject] of forbidden) assert.ok(denied.has(subject(task)), `${user} may ${attack}`);
      for (const subject of SUBSCRIPTIONS) assert.ok(denied.has(subject), `${user} may subscribe to ${subject}`);
      await asking;
      assert.deepEqual(await untouched(), before);
    });
  }

  test('an agent reads no task of others through relays either, by id, context, list or feed', async t => {
    const { nc } = await attacker(HOSTILE);
    t.after(() => nc.close());
    const inbox = `${inboxOf(HOSTILE, names)}.read`;
    const received: { text: string; isEnd: boolean }[] = [];
    nc.subscribe(`${inbox}.*`, {
      callback: (_, msg) => void received.push({ text: msg.string(), isEnd: msg.headers?.has('Hopline-Answered') === true }),
    });
    const requests = [
      { op: 'newest', task },
      { op: 'newest-of', tasks: [task] },
      { op: 'read', task, from: 1 },
      { op: 'index', task },
      { op: 'input', task, seq: 1 },
      { op: 'lists', owner: {}, filters: ['*.*.*.t.*'] },
      { op: 'stream', stream: 'A2A_LOG', filter: 'a2a.log.>' },
      { op: 'stream', stream: 'A2A_WORK', filter: 'a2a.work.agent.echo.>' },
      { op: 'entry', bucket: 'requeues', key: `agent.echo.${task}.1` },
      { op: 'entry', bucket: 'agents', key: 'echo.1' },
    ];
    for (const [n, request] of requests.entries())
      nc.publish(readSubject('hostile'), JSON.stringify(request), { reply: `${inbox}.${n}` });
    await until(() => received.filter(({ isEnd }) => isEnd).length === requests.length, 'a request was not answered');
    const stored = received.filter(
      ({ text }) => text.includes(CANARY) || text.includes('"facts"') || text.includes('"subjects"'),
    );
    assert.deepEqual(stored, []);
  });

  test('answers of NATS to an agent reach no task of others, and its floods do not stop them', async t => {
    const before = await untouched();
    const { nc, denied } = await attacker(HOSTILE);
    t.after(() => nc.close());
    const asking = otherTenantsAsk();
    const record = JSON.stringify({ v: 1, at: 1, from: HOSTILE, input: { kind: 'text', text: 'x' } });
    for (let n = 0; n < FLOOD; n += 1) {
      // The acknowledgement of an own record, stored as work, as a fact, and instead of a webhook.
      nc.publish(`a2a.raw.00.flood-${n}.${HOSTILE}`, record, { reply: `a2a.work.${HOSTILE}.flood-${n}` });
      nc.publish(`a2a.raw.00.flood-${n}.${HOSTILE}`, record, { reply: `a2a.log.00.flood-${n}` });
      nc.publish(readSubject('hostile'), '{"op":"listed"}', { reply: 'a2a.work.agent.echo.flood' });
      nc.publish(api('CONSUMER.MSG.NEXT.A2A_WORK.agent-hostile'), '{"batch":1,"no_wait":true}', {
        reply: `a2a.work.agent.echo.next-${n}`,
      });
    }
    // As an input, a registry entry and a count of another agent, as a lease, a webhook and a request of the API, and by another kind of pull.
    const forged = ['a2a.raw.00.forged.agent.echo', '$KV.hopline_agents.echo.forged', '$KV.hopline_requeues.agent.echo.forged.1'];
    const more = ['$KV.hopline_leases.forged', '$KV.hopline_push_configs.forged.c', api('STREAM.PURGE.KV_hopline_message_ids')];
    for (const reply of [...forged, ...more]) {
      nc.publish(`a2a.raw.00.forged.${HOSTILE}`, record, { reply });
      nc.publish('$JS.ACK.A2A_WORK.agent-hostile.1.1.1.1.0', '+NXT', { reply });
    }
    await nc.flush();
    assert.deepEqual([...denied], []);
    await asking;
    assert.deepEqual(await untouched(), before);
    // Relays answer to the inbox of the agent only.
    assert.deepEqual(await subjectsOf('A2A_WORK', 'a2a.work.agent.echo.flood'), []);
    await otherTenantsAsk();
    // All inputs are stored, so their acknowledgements have been sent, in the order of the inputs.
    await until(async () => (await subjectsOf('A2A_RAW', `a2a.raw.00.forged.${HOSTILE}`)).length === 1);
    const ofOthers = async () => [
      ...(await subjectsOf('A2A_LOG', 'a2a.log.00.flood-*')),
      // Items of the questions may be there, too.
      ...(await subjectsOf('A2A_WORK', 'a2a.work.agent.*.*')).filter(subject => /\.(?:flood|next|forged)[^.]*$/.test(subject)),
      ...(await subjectsOf('A2A_RAW', forged[0]!)),
      ...(await subjectsOf('KV_hopline_agents', forged[1]!)),
      ...(await subjectsOf('KV_hopline_requeues', forged[2]!)),
      ...(await subjectsOf('KV_hopline_leases', '$KV.hopline_leases.forged')),
      ...(await subjectsOf('KV_hopline_push_configs', '$KV.hopline_push_configs.forged.c')),
    ];
    // In a single account, NATS stores them, and readers skip them.
    if (!agentAccounts) await until(async () => (await ofOthers()).length > FLOOD, 'the attack of the test does nothing');
    else assert.deepEqual(await ofOthers(), []);
  });

  if (agentAccounts)
    test('an agent that is killed in mid-answer continues, and the answer is whole', async () => {
      const all: Frame[] = [];
      let restarted: Promise<void> | undefined;
      const restart = async () => {
        await cluster.agents[0]!.kill('SIGKILL');
        await cluster.agents[0]!.start();
      };
      for await (const frame of frames(cluster.url, { text: 'slowly' })) {
        all.push(frame);
        if (textOf(all, 'streaming_result').includes('w1 ')) restarted ??= restart();
      }
      assert.ok(restarted !== undefined, 'the text began');
      await restarted;
      const words = Array.from({ length: WORDS }, (_, n) => `w${n} `).join('');
      assert.equal(textOf(all, 'streaming_result'), `echo ${words}slowly`);
    });

  test('no service was denied anything', () => {
    for (const { output, spec } of cluster.services)
      assert.doesNotMatch(output, /does not permit|[Pp]ermissions [Vv]iolation/, spec.instance);
  });
}

test('each finding of the review has tests, which exist', () => {
  const root = new URL('../../', import.meta.url);
  const [, section = ''] = readFileSync(new URL('THREATS.md', root), 'utf8').split('### The review of 2026-11-23\n');
  const rows = [...(section.split('\n## ')[0] ?? '').matchAll(/^\| (\d)\. [^|]+\|[^|]+\| ([^|]+) \|$/gm)];
  assert.deepEqual(
    rows.map(([, number]) => Number(number)),
    [1, 2, 3, 4, 5, 6, 7, 8, 9],
  );
  for (const [, number, tests = ''] of rows) {
    const paths = [...tests.matchAll(/`([^`]+)`/g)].map(([, path]) => path!);
    assert.ok(paths.length > 0, `finding ${number}`);
    for (const path of paths)
      assert.ok(path.endsWith('.test.ts') && existsSync(new URL(path, root)), `finding ${number}: ${path}`);
  }
});
