import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import { test } from 'node:test';
import type { Owner } from '@hopline/events';
import { type Log, type PushConfigEntry, type PushProgressEntry, putWebhookCount, webhookCountKey } from '@hopline/log';
import { createMemoryLog, type MemoryLog } from '@hopline/log/memory';
import { parseSecretsKeys, withSealedWebhooks } from '@hopline/log/webhook-secrets';
import { ROOT_AGENT } from '@hopline/task';
import { agent, StoredScenario } from '@hopline/task/test-kit';
import { createLogger } from '@hopline/telemetry';
import { AllowList } from '@hopline/webhook-guard';
import { listen } from '../../../test/kit/listen.ts';
import { NO_METRICS } from '../../../test/kit/no-metrics.ts';
import { until } from '../../../test/kit/until.ts';
import { createNotifier, type Notifier, type NotifierDeps } from './notifier.ts';
import { TaskFacts } from './task-facts.test-kit.ts';

const logger = createLogger({ service: 'notifier', instance: 'test', level: 'fatal' });
const KEY = `t1.${Buffer.from('cfg').toString('base64url')}`;

type Options = {
  allow?: string;
  workersMax?: number;
  intervalMs?: number;
  bytesPerSecondMax?: number;
  retry?: Partial<NotifierDeps['retry']>;
};

const notifierOn = (
  log: Log,
  { allow = '127.0.0.1', workersMax = 100, intervalMs = 0, bytesPerSecondMax = 1e9, retry = {} }: Options = {},
): Promise<Notifier> =>
  createNotifier({
    log,
    instance: 'n',
    rules: { http: true, allow: new AllowList(allow) },
    limits: { timeoutMs: 5_000, requestsMax: 16, hostRequestsMax: 8, workersMax, intervalMs, bytesPerSecondMax },
    retry: { attemptsMax: 3, retryMsBase: 5, retryMsMax: 20, abandonAfterMs: 60_000, ...retry },
    metrics: NO_METRICS,
    logger,
    leaseMs: 200,
    heartbeatMs: 20,
  });

type Received = { path: string; generation: number; after: number; body: string };

async function webhook(answer: (n: number, path: string) => number | Promise<number> = () => 200) {
  const received: Received[] = [];
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request.setEncoding('utf8')) body += chunk;
    const path = request.url!;
    const [generation, after] = ['x-hopline-cursor', 'x-hopline-after'].map(name =>
      Number.parseInt(String(request.headers[name]), 10),
    );
    received.push({ path, generation: generation!, after: after!, body });
    const status = await answer(received.length, path);
    response.writeHead(status).end();
  });
  const origin = await listen(server);
  const close = async () => {
    server.closeAllConnections();
    server.close();
  };
  return { url: origin, received, [Symbol.asyncDispose]: close };
}

const config = (url: string, more: Partial<PushConfigEntry> = {}): PushConfigEntry => ({
  taskId: 't1',
  id: 'cfg',
  url,
  dialect: '1.0',
  after: 0,
  ...more,
});

const overOf = (log: MemoryLog, key = KEY): Promise<PushProgressEntry> =>
  until(async () => {
    const value = (await log.pushProgress.get(key))?.value;
    return value?.over === undefined ? undefined : value;
  });

async function finished(log: MemoryLog, taskId = 't1', owner?: Owner): Promise<void> {
  const facts = new TaskFacts(log, taskId, owner);
  await facts.create();
  await facts.status('TASK_STATE_WORKING');
  await facts.text('one ');
  await facts.text('two', true);
  await facts.status('TASK_STATE_COMPLETED');
}

test('a configuration for a finished task that is older than the notifier gets the events after its generation', {
  timeout: 120_000,
}, async () => {
  const log = createMemoryLog();
  await using hook = await webhook();
  await finished(log);
  await log.pushConfigs.put(KEY, config(hook.url, { after: 2 }));
  const notifier = await notifierOn(log);
  const { generation, failures } = await overOf(log);
  assert.deepEqual([generation, failures], [5, 0]);
  assert.ok(hook.received[0]!.generation > 2 && hook.received.at(-1)!.generation === 5);
  await notifier.stop();
});

test('a configuration written after the last event of its task is finished without a delivery', {
  timeout: 120_000,
}, async () => {
  const log = createMemoryLog();
  await using hook = await webhook();
  await finished(log);
  await log.pushConfigs.put(KEY, config(hook.url, { after: 5 }));
  const notifier = await notifierOn(log);
  assert.equal((await overOf(log)).over, 'delivered');
  assert.equal(hook.received.length, 0);
  await notifier.stop();
});

test('a webhook whose task never starts is removed after its time; before that it gets the task if it starts', {
  timeout: 120_000,
}, async () => {
  const log = createMemoryLog();
  await using hook = await webhook();
  const waiting = `t2.${Buffer.from('cfg').toString('base64url')}`;
  const begun = `t3.${Buffer.from('cfg').toString('base64url')}`;
  const hoursAgo = (hours: number) => Date.now() - hours * 3_600_000;
  // These two are stored before the expired one, so they have been idle for at least as long as that one when it ends.
  await log.pushConfigs.put(waiting, config(hook.url, { taskId: 't2', waitsUntil: hoursAgo(0.9) }));
  await log.pushConfigs.put(begun, config(hook.url, { taskId: 't3', waitsUntil: hoursAgo(9) }));
  const bytes = 300;
  await putWebhookCount(log.pushConfigs, webhookCountKey({}, KEY, bytes));
  await log.pushConfigs.put(KEY, config(hook.url, { waitsUntil: hoursAgo(1) - 1, bytes }));
  const facts = new TaskFacts(log, 't3');
  await facts.create();
  const notifier = await notifierOn(log);
  await until(async () => (await log.pushConfigs.get(KEY)) === undefined);
  assert.deepEqual(await log.pushConfigs.get(webhookCountKey({}, KEY, bytes)), undefined);
  assert.equal(await log.pushProgress.get(KEY), undefined);
  await finished(log, 't2');
  await facts.status('TASK_STATE_COMPLETED');
  assert.equal((await overOf(log, waiting)).over, 'delivered');
  assert.equal((await overOf(log, begun)).over, 'delivered');
  await notifier.stop();
});

test('by default a webhook on this machine receives nothing and is abandoned at once', {
  timeout: 120_000,
}, async () => {
  const log = createMemoryLog();
  await using hook = await webhook();
  await finished(log);
  await log.pushConfigs.put(KEY, config(hook.url));
  const notifier = await notifierOn(log, { allow: '' });
  const { over, failures, generation } = await overOf(log);
  assert.deepEqual([over, failures, generation], ['abandoned', 1, 0]);
  assert.equal(hook.received.length, 0);
  await notifier.stop();
});

test('a configuration whose secrets no key opens waits for the key', { timeout: 120_000 }, async () => {
  const log = createMemoryLog();
  await using hook = await webhook();
  await finished(log);
  const keys = parseSecretsKeys(randomBytes(32).toString('base64'), 'KEY');
  await withSealedWebhooks(log, keys).pushConfigs.put(KEY, config(hook.url, { token: 'secret' }));
  const retry = { attemptsMax: 1_000 };
  const without = await notifierOn(log, { retry });
  await until(async () => ((await log.pushProgress.get(KEY))?.value.failures ?? 0) > 0);
  assert.equal(hook.received.length, 0);
  await without.stop();
  const notifier = await notifierOn(withSealedWebhooks(log, keys), { retry });
  assert.equal((await overOf(log)).over, 'delivered');
  await notifier.stop();
});

test('a configuration of an unknown dialect does not affect others: its failures are recorded, and other webhooks of the task continue', {
  timeout: 120_000,
}, async () => {
  const other = `t1.${Buffer.from('other').toString('base64url')}`;
  for (const dialect of ['2.0', 'constructor']) {
    const log = createMemoryLog();
    await using hook = await webhook();
    await finished(log);
    await log.pushConfigs.put(KEY, config(`${hook.url}/unknown`, { dialect: dialect as never }));
    await log.pushConfigs.put(other, config(`${hook.url}/known`, { id: 'other' }));
    const notifier = await notifierOn(log);
    const { over, failures } = await overOf(log);
    assert.deepEqual([over, failures], ['abandoned', 3], 'after all attempts: a later version may know it');
    assert.equal((await overOf(log, other)).over, 'delivered');
    assert.ok(hook.received.every(({ path }) => path === '/known'));
    await notifier.stop();
  }
});

test('notifications of a configuration keep their interval; text that waits is merged, not lost', {
  timeout: 120_000,
}, async () => {
  for (const dialect of ['1.0', '0.3'] as const) {
    const log = createMemoryLog();
    const at: number[] = [];
    await using hook = await webhook(() => {
      at.push(performance.now());
      return 200;
    });
    const facts = new TaskFacts(log, 't1');
    await facts.create();
    await log.pushConfigs.put(KEY, config(hook.url, { dialect }));
    const notifier = await notifierOn(log, { intervalMs: 100 });
    await facts.status('TASK_STATE_WORKING');
    const pieces = Array.from({ length: 60 }, (_, index) => `${index} `);
    for (const piece of pieces) await facts.text(piece);
    await facts.status('TASK_STATE_COMPLETED');
    await overOf(log);
    await notifier.stop();
    // A timer may end a millisecond early.
    for (const [index, time] of at.entries()) assert.ok(index === 0 || time - at[index - 1]! >= 95, `${time - at[index - 1]!}`);
    assert.ok(hook.received.length < pieces.length, `${hook.received.length}`);
    const bodies = hook.received.map(({ body }) => JSON.parse(body));
    const textOf = (artifact: { parts: { text: string }[] }) => artifact.parts.map(part => part.text).join('');
    const text =
      dialect === '1.0'
        ? bodies.map(body => (body.artifactUpdate ? textOf(body.artifactUpdate.artifact) : '')).join('')
        : textOf(bodies.at(-1).artifacts[0]);
    assert.equal(text, pieces.join(''));
  }
});

test('0.3 posts the whole task: even with a long text and failed attempts, a webhook’s byte rate is respected', {
  timeout: 120_000,
}, async () => {
  for (const refused of [0, 1]) {
    const log = createMemoryLog();
    await using hook = await webhook(n => (n <= refused ? 500 : 200));
    const facts = new TaskFacts(log, 't1');
    await facts.create();
    await log.pushConfigs.put(KEY, config(hook.url, { dialect: '0.3' }));
    const bytesPerSecondMax = 64 * 1024;
    const beganMs = performance.now();
    const notifier = await notifierOn(log, { bytesPerSecondMax });
    await facts.status('TASK_STATE_WORKING');
    const piece = 'x'.repeat(8 * 1024);
    for (let n = 0; n < 12; n += 1) {
      await facts.text(piece);
      const seen = hook.received.length;
      // Without merging, each piece would be delivered as a whole task.
      await new Promise(resolve => setTimeout(resolve, seen === 0 ? 20 : 5));
    }
    await facts.status('TASK_STATE_COMPLETED');
    await overOf(log);
    await notifier.stop();
    const bodies = hook.received.map(({ body }) => JSON.parse(body));
    assert.equal(bodies.at(-1).status.state, 'completed');
    assert.equal(
      bodies
        .at(-1)
        .artifacts[0].parts.map((part: { text: string }) => part.text)
        .join(''),
      piece.repeat(12),
    );
    const sizes = hook.received.map(({ body }) => body.length);
    const sent = sizes.reduce((sum, size) => sum + size, 0);
    // The last body does not count, because it is sent before its time has passed.
    const bound = ((performance.now() - beganMs) / 1_000 + 1) * bytesPerSecondMax + sizes.at(-1)!;
    assert.ok(sent <= bound, `${sent} bytes, bound ${bound}`);
  }
});

test('the count of failures outlives the notifier: the next one continues it [S3-25]', { timeout: 120_000 }, async () => {
  const log = createMemoryLog();
  await using hook = await webhook(() => 500);
  await finished(log);
  await log.pushConfigs.put(KEY, config(hook.url));
  const first = await notifierOn(log, { retry: { attemptsMax: 1_000 } });
  await until(async () => ((await log.pushProgress.get(KEY))?.value.failures ?? 0) >= 2);
  const before = hook.received.length;
  await first.stop();
  const { failures = 0 } = (await log.pushProgress.get(KEY))?.value ?? {};
  const second = await notifierOn(log, { retry: { attemptsMax: failures + 2 } });
  const end = await overOf(log);
  assert.deepEqual([end.over, end.failures, end.generation], ['abandoned', failures + 2, 0]);
  assert.ok(hook.received.length >= before + 2);
  assert.equal(new Set(hook.received.map(({ body }) => body)).size, 1);
  await second.stop();
});

test('a notification that may have been received is repeated with the same events, although later events could be added', {
  timeout: 120_000,
}, async () => {
  const log = createMemoryLog();
  await using hook = await webhook();
  const from = agent(ROOT_AGENT);
  const task = new StoredScenario(log.facts, 't1').message('hi', 'm', 'agent.argocd', 'transparent').open(from, 'a');
  for (const word of ['one ', 'two ', 'three']) task.text(from, 'a', word);
  // Uses one record, so that the notifier has read every event before it sends any.
  await task.input(from, { kind: 'status', state: 'TASK_STATE_COMPLETED' }).store();
  const [first, second] = task.facts.flatMap(fact => (fact.kind === 'artifact.updated' ? fact.generation : []));
  await log.pushConfigs.put(KEY, config(hook.url));
  const { revision } = (await log.pushConfigs.get(KEY))!;
  const failed = { config: revision, generation: first! - 1, seq: task.newest!.seq, failures: 1, sending: second! };
  await log.pushProgress.put(KEY, failed);
  const notifier = await notifierOn(log);
  const { generation } = await overOf(log);
  await notifier.stop();
  assert.equal(hook.received[0]?.generation, second);
  assert.equal(hook.received.at(-1)?.generation, generation);
  const before = [first! - 1, ...hook.received.map(one => one.generation)];
  assert.deepEqual(
    hook.received.map(one => one.after),
    before.slice(0, -1),
    'each body begins where the one before it ended',
  );
  const texts = hook.received.flatMap(({ body }) => JSON.parse(body).artifactUpdate?.artifact.parts[0].text ?? []);
  assert.deepEqual([texts[0], texts.join('')], ['one two ', 'one two three']);
});

test('a retry recorded by a fast clock waits for its own delay, not for that clock [S3-25]', {
  timeout: 120_000,
}, async () => {
  const log = createMemoryLog();
  await using hook = await webhook();
  await finished(log);
  const revision = await log.pushConfigs.put(KEY, config(hook.url));
  const inAnHour = Date.now() + 3_600_000;
  const progress = {
    config: revision,
    generation: 0,
    seq: 0,
    failures: 1,
    failingSince: inAnHour,
    retryAt: inAnHour,
    retryMs: 50,
  };
  await log.pushProgress.create(KEY, progress);
  const notifier = await notifierOn(log);
  assert.equal((await overOf(log)).over, 'delivered');
  await notifier.stop();
});

test('a new configuration of an abandoned webhook starts at its own generation', {
  timeout: 120_000,
}, async () => {
  const log = createMemoryLog();
  let status = 410;
  await using hook = await webhook(() => status);
  await finished(log);
  await log.pushConfigs.put(KEY, config(hook.url));
  const notifier = await notifierOn(log);
  assert.equal((await overOf(log)).over, 'abandoned');
  assert.equal(hook.received.length, 1, '410 is not retried');
  status = 200;
  await log.pushConfigs.put(KEY, config(hook.url, { after: 1 }));
  await until(() => hook.received.at(-1)?.generation === 5);
  assert.ok(hook.received[1]!.generation >= 2);
  await until(async () => (await log.pushProgress.get(KEY))?.value.over === 'delivered');
  await notifier.stop();
});

test('deleting a configuration cancels its delivery in flight, and nothing is sent or stored afterwards', {
  timeout: 120_000,
}, async () => {
  const log = createMemoryLog();
  const held = Promise.withResolvers<number>();
  await using hook = await webhook(() => held.promise);
  const notifier = await notifierOn(log);
  await log.pushConfigs.put(KEY, config(hook.url));
  await finished(log);
  await until(() => hook.received.length === 1);
  const { revision } = (await log.pushProgress.get(KEY))!;
  await log.pushConfigs.delete(KEY);
  held.resolve(200);
  await log.pushConfigs.put('t2.eA', config(hook.url, { taskId: 't2', id: 'x' }));
  await finished(log, 't2');
  await overOf(log, 't2.eA');
  assert.equal((await log.pushProgress.get(KEY))!.revision, revision);
  await notifier.stop();
});

test('a webhook receives nothing of a task with another owner: owners are compared at each record', {
  timeout: 120_000,
}, async () => {
  const log = createMemoryLog();
  await using hook = await webhook();
  const notifier = await notifierOn(log);
  const [mine, theirs] = [
    { tenant: 'a', subject: 'me' },
    { tenant: 'a', subject: 'you' },
  ];
  await log.pushConfigs.put(KEY, config(hook.url, { owner: mine }));
  await log.pushConfigs.put(
    `t1.${Buffer.from('anonymous').toString('base64url')}`,
    config(`${hook.url}/anonymous`, { id: 'anonymous' }),
  );
  await log.pushConfigs.put('t1.dGhlaXJz', config(`${hook.url}/theirs`, { id: 'theirs', owner: theirs }));
  await finished(log, 't1', theirs);
  assert.equal((await overOf(log)).over, 'abandoned');
  assert.equal((await overOf(log, `t1.${Buffer.from('anonymous').toString('base64url')}`)).over, 'abandoned');
  assert.equal((await overOf(log, 't1.dGhlaXJz')).over, 'delivered');
  assert.deepEqual([...new Set(hook.received.map(({ path }) => path))], ['/theirs']);
  await notifier.stop();
});

test('more webhooks than workers take turns, and a webhook whose task is silent does not block others', {
  timeout: 120_000,
}, async () => {
  const log = createMemoryLog();
  await using hook = await webhook();
  const notifier = await notifierOn(log, { workersMax: 1 });
  const silent = new TaskFacts(log, 't1');
  await silent.create();
  await log.pushConfigs.put(KEY, config(hook.url));
  await until(() => hook.received.length === 1);
  await log.pushConfigs.put('t2.eA', config(hook.url, { taskId: 't2', id: 'x' }));
  await finished(log, 't2');
  assert.equal((await overOf(log, 't2.eA')).over, 'delivered');
  await silent.status('TASK_STATE_CANCELED');
  assert.equal((await overOf(log)).over, 'delivered');
  await notifier.stop();
});

test('if two notifiers both believe that they own a shard, a receiver that deduplicates by cursor gets every event once', {
  timeout: 120_000,
}, async () => {
  const log = createMemoryLog();
  await using hook = await webhook(async () => {
    await new Promise(resolve => setTimeout(resolve, 2));
    return 200;
  });
  // Each notifier has leases of its own and owns every shard during the whole test, which is worse than any takeover.
  const other = createMemoryLog();
  const twin: MemoryLog = Object.assign(log.another(), { leases: other.leases });
  const notifiers = [await notifierOn(log.another()), await notifierOn(twin)];
  const facts = new TaskFacts(log, 't1');
  await facts.create();
  await log.pushConfigs.put(KEY, config(hook.url));
  // Lasts longer than two restarts of a notifier whose write failed.
  for (let n = 0; n < 150; n += 1) {
    await facts.text(`${n} `);
    await new Promise(resolve => setTimeout(resolve, 10));
  }
  await facts.status('TASK_STATE_COMPLETED');
  await overOf(log);
  let last = 0;
  let text = '';
  const bodies = new Map<number, string>();
  for (const { generation, body } of hook.received) {
    assert.equal(bodies.get(generation) ?? body, body, `generation ${generation} has two bodies`);
    bodies.set(generation, body);
    if (generation <= last) continue;
    last = generation;
    text += JSON.parse(body).artifactUpdate?.artifact.parts[0].text ?? '';
  }
  assert.equal(text, Array.from({ length: 150 }, (_, n) => `${n} `).join(''));
  await Promise.all(notifiers.map(notifier => notifier.stop()));
});

test('a notification is on record before it is sent, so that a notifier that has lost its shard sends nothing', {
  timeout: 120_000,
}, async () => {
  const log = createMemoryLog();
  const processLog = log.another();
  const create = processLog.pushProgress.create.bind(processLog.pushProgress);
  // A notifier that does not wait for the record would have sent by then.
  processLog.pushProgress.create = async (...args) => {
    await new Promise(resolve => setTimeout(resolve, 100));
    return create(...args);
  };
  const recorded: (number | undefined)[] = [];
  await using hook = await webhook(async () => {
    recorded.push((await log.pushProgress.get(KEY))?.value.sending);
    return 200;
  });
  await finished(log);
  await log.pushConfigs.put(KEY, config(hook.url));
  const notifier = await notifierOn(processLog);
  await overOf(log);
  assert.ok(recorded.length > 0);
  assert.deepEqual(
    recorded,
    hook.received.map(({ generation }) => generation),
  );
  await notifier.stop();
});
