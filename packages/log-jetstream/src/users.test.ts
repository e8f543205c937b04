import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LogNames } from './names.ts';
import { ADMIN, authorization, passwordVariable, serverUsers, userName } from './server-configuration.ts';
import { ANY_AGENT, exchangeOf, inboxOf, type LogUser, permissionsOf, SERVICE_USERS, writerOfUser } from './users.ts';

const names = new LogNames();
const USERS: LogUser[] = [...SERVICE_USERS, 'agent.guide', ANY_AGENT];

/** Whether two subjects or filters could match the same message. */
function overlaps(one: string, other: string): boolean {
  const [a, b] = [one.split('.'), other.split('.')];
  for (let index = 0; index < Math.max(a.length, b.length); index++) {
    const [x, y] = [a[index], b[index]];
    if (x === '>' || y === '>') return true;
    if (x === undefined || y === undefined) return false;
    if (x !== y && x !== '*' && y !== '*') return false;
  }
  return true;
}

/** Filters of the messages that a user can have delivered unchanged. */
function delivered(user: LogUser): string[] {
  return permissionsOf(user, names).publish.flatMap(subject => {
    const match = /^\$JS\.API\.(?:CONSUMER\.CREATE\.[^.]+\.[^.]+|DIRECT\.GET\.[^.]+)\.(.+)$/.exec(subject);
    return match?.[1] === undefined ? [] : [match[1]];
  });
}

test('agents and the supervisor cannot have messages delivered that they themselves can write, because NATS delivers to any subject named in a request', () => {
  for (const user of ['supervisor', 'agent.guide', ANY_AGENT] as const) {
    const written = permissionsOf(user, names).publish.filter(subject => /^(?:a2a|\$KV)\./.test(subject));
    for (const filter of delivered(user)) assert.ok(!written.some(subject => overlaps(subject, filter)), `${user}: ${filter}`);
  }
});

test('facts have exactly one writer, and every input subject has at most one', () => {
  const writersOf = (subject: string) =>
    USERS.filter(user => permissionsOf(user, names).publish.some(allowed => overlaps(allowed, subject)));
  assert.deepEqual(writersOf('a2a.log.00.t'), ['relay']);
  assert.deepEqual(writersOf('a2a.raw.00.t.client'), ['ingress']);
  assert.deepEqual(writersOf('a2a.raw.00.t.relay'), ['relay']);
  assert.deepEqual(writersOf('a2a.raw.00.t.supervisor'), ['supervisor']);
  assert.deepEqual(writersOf('a2a.raw.00.t.agent.guide'), ['agent.guide', ANY_AGENT]);
  assert.deepEqual(writersOf('a2a.raw.00.t.agent.files'), [ANY_AGENT]);
});

test('every subject of a cluster with a prefix has the prefix, which separates clusters in one account', () => {
  const blue = new LogNames('blue');
  for (const user of USERS) {
    const subjects = [permissionsOf(user, blue).publish, permissionsOf(user, blue).subscribe].flat();
    for (const subject of subjects) assert.ok(subject === '$JS.API.INFO' || /(?:^|[._])blue[._]/.test(subject), subject);
  }
  assert.equal(inboxOf('agent.guide', blue), '_INBOX.blue_hopline.agent.guide');
  assert.equal(userName('agent.guide', 'blue'), 'blue.agent.guide');
});

test('the permissions for several stream groups are those for one group, repeated with the names of the other streams', () => {
  // The chart makes them so from a file with the permissions for one group.
  const repeated = (subject: string) =>
    /A2A_(RAW|LOG)/.test(subject)
      ? ['', '_1', '_2'].map(suffix => subject.replace(/A2A_(RAW|LOG)/, name => `${name}${suffix}`))
      : [subject];
  for (const user of USERS) {
    const { publish, ...others } = permissionsOf(user, names.with(3));
    const one = permissionsOf(user, names);
    assert.deepEqual(publish.sort(), one.publish.flatMap(repeated).sort(), user);
    assert.deepEqual(others, { publishDenied: one.publishDenied, subscribe: one.subscribe });
  }
});

test('each user has its own inbox and its own writer of inputs', () => {
  const inboxes = SERVICE_USERS.map(user => inboxOf(user, names));
  assert.equal(new Set(inboxes).size, SERVICE_USERS.length);
  assert.deepEqual(
    [...SERVICE_USERS, 'agent.guide' as const].map(user => writerOfUser(user)),
    ['relay', 'client', 'supervisor', undefined, undefined, 'agent.guide'],
  );
});

test('an agent asks the JetStream API for its work and for nothing else, because NATS stores answers wherever a request asks for them', () => {
  for (const user of ['agent.guide', ANY_AGENT] as const) {
    const api = permissionsOf(user, names).publish.filter(subject => subject.startsWith('$JS.API.'));
    assert.deepEqual(
      api.filter(subject => !subject.startsWith('$JS.API.CONSUMER.MSG.NEXT.A2A_WORK.')),
      [],
    );
    assert.ok(api.length > 0);
  }
});

test('an acknowledgement reaches no consumer but those of its user, in either form of its subject', () => {
  // As nats-server 2.15 subscribes, for any domain and account.
  const acksOf = (stream: string, consumer: string) => [
    `$JS.ACK.${stream}.${consumer}.*.*.*.*.*`,
    `$JS.ACK.*.*.${stream}.${consumer}.*.*.*.*.>`,
  ];
  const ofOthers = [...acksOf('A2A_WORK', 'agent-files'), ...acksOf('A2A_LOG', 'warehouse')];
  const ofSupervisor = acksOf('A2A_WORK', 'supervisor');
  const ofGuide = acksOf('A2A_WORK', 'agent-guide');
  for (const [user, others, own] of [
    ['agent.guide', [...ofOthers, ...ofSupervisor], ofGuide],
    ['supervisor', [...ofOthers, ...ofGuide], ofSupervisor],
    [ANY_AGENT, acksOf('A2A_LOG', 'warehouse'), acksOf('A2A_WORK', '*')],
  ] as const) {
    const permitted = permissionsOf(user, names).publish.filter(subject => subject.startsWith('$JS.ACK.'));
    for (const subject of permitted)
      for (const other of others) assert.ok(!overlaps(subject, other), `${user}: ${subject} and ${other}`);
    for (const acks of own) assert.ok(permitted.includes(acks), `${user}: ${acks}`);
  }
  const { publishDenied } = permissionsOf(ANY_AGENT, names);
  for (const acks of ofSupervisor) assert.ok(publishDenied.includes(acks), acks);
});

test('agents of an earlier version have the permissions that they need, if the configuration grants them, and no other user has more', () => {
  const earlier = (user: LogUser) => {
    const { publish } = permissionsOf(user, names);
    const all = permissionsOf(user, names, { earlierAgents: true });
    assert.deepEqual(
      publish.filter(subject => !all.publish.includes(subject)),
      [],
    );
    return all.publish.filter(subject => !publish.includes(subject));
  };
  for (const user of SERVICE_USERS) assert.deepEqual(earlier(user), []);
  const api = earlier('agent.guide');
  for (const call of ['STREAM.INFO.A2A_RAW', 'STREAM.MSG.GET.KV_hopline_requeues', 'CONSUMER.INFO.A2A_WORK.agent-guide_7'])
    assert.ok(api.includes(`$JS.API.${call}`), call);
  assert.ok(api.includes('$JS.API.CONSUMER.CREATE.A2A_WORK.agent-guide.a2a.work.agent.guide.*'));
});

test('between the accounts of an agent and of the log exactly those subjects pass that its user may use, except those between the agent’s processes', () => {
  for (const user of ['agent.guide', ANY_AGENT] as const) {
    const { services, toLog, fromLog } = exchangeOf(user, names);
    const { publish, subscribe } = permissionsOf(user, names);
    const of = user.slice('agent.'.length);
    assert.deepEqual(
      publish.filter(subject => !services.includes(subject) && !toLog.includes(subject)),
      [`a2a.wake.${of}`, `a2a.worker.${user}`, `a2a.worker.${user}.>`],
    );
    assert.deepEqual(
      subscribe.filter(subject => !fromLog.includes(subject)),
      [`a2a.wake.${of}`, `a2a.worker.${user}.>`],
    );
    assert.deepEqual(toLog, [`a2a.read.${of}`, `a2a.read.${of}.*`]);
    assert.equal(services.length + toLog.length + 3, publish.length);
  }
});

test('passwords in a server configuration are quoted text or variables', () => {
  assert.deepEqual(serverUsers(['web-search']), [ADMIN, ...SERVICE_USERS, 'agent.web-search']);
  for (const name of ['*', '>', 'a.b', 'B x', '']) assert.throws(() => serverUsers([name]), TypeError, name);
  assert.equal(passwordVariable('agent.guide'), 'NATS_AGENT_GUIDE_PASSWORD');
  assert.equal(passwordVariable('agent.web-search'), 'NATS_AGENT_WEB_SEARCH_PASSWORD');
  const text = authorization(
    new Map([
      [ADMIN, { text: 'a"b' }],
      ['relay', { variable: passwordVariable('relay') }],
    ]),
  );
  assert.match(text, /\{ user: "admin", password: "a\\"b" \}/);
  assert.match(text, /\{ user: "relay", password: \$NATS_RELAY_PASSWORD, permissions: \{/);
});
