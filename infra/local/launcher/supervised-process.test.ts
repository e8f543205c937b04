import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { until } from '../../../test/kit/until.ts';
import { Cluster, waitReady } from './cluster.ts';
import { type ProcessEvents, type ProcessSpec, restartDelay, SupervisedProcess } from './supervised-process.ts';

type Note = { event: string; instance: string; waitMs?: number | null };

/** Records the events of supervision; `next` waits for an event. */
function recorder() {
  const notes: Note[] = [];
  const waiting: { event: string; resolve: (note: Note) => void }[] = [];
  const report = (note: Note) => {
    notes.push(note);
    const index = waiting.findIndex(({ event }) => event === note.event);
    if (index >= 0) waiting.splice(index, 1)[0]?.resolve(note);
  };
  const events: ProcessEvents = {
    changed: () => {},
    restarting: ({ spec }, ending, waitMs) => report({ event: ending, instance: spec.instance, waitMs }),
    restarted: ({ spec }) => report({ event: 'restarted', instance: spec.instance }),
  };
  const next = (event: string) => new Promise<Note>(resolve => waiting.push({ event, resolve }));
  return { events, notes, next };
}

function scratch(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'hopline-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

function spec(folder: string, service: string, script: string): ProcessSpec {
  const prepare = async () => ({
    command: [process.execPath, '-e', script],
    env: { ...process.env, FOLDER: folder },
    url: 'http://x',
  });
  return { service, instance: `${service}-1`, cwd: folder, logPath: join(folder, `${service}.log`), prepare };
}

const STAYS = `console.log('up'); setInterval(() => {}, 1000);`;
const NOTES_SIGTERM = (name: string) =>
  `process.on('SIGTERM', () => { require('fs').appendFileSync(process.env.FOLDER + '/order', '${name} '); process.exit(0); }); ${STAYS}`;

/** Waits for the first output: the process installs its signal handlers before it. */
async function printedSomething(path: string): Promise<void> {
  await until(() => readFileSync(path, 'utf8') !== '');
}

test('a process can be killed on request as if by a fault, and the messages of its next run are received as well', async t => {
  const { events, next } = recorder();
  const received: unknown[] = [];
  const answered = new EventEmitter();
  const echo = `process.on('message', message => process.send({ echo: message }));`;
  const child = new SupervisedProcess(
    { ...spec(scratch(t), 'console', echo), exchangesMessages: true },
    {
      ...events,
      connected: (_process, send) => send({ token: 'a' }),
      message: (_process, message) => {
        received.push(message);
        answered.emit('message');
      },
    },
  );
  t.after(() => child.kill());
  assert.equal(await child.crash(), false);
  const first = once(answered, 'message');
  await child.start();
  await first;
  const before = child.pid;
  const again = once(answered, 'message');
  const restarted = next('restarted');
  assert.equal(await child.crash(), true);
  await restarted;
  await again;
  assert.notEqual(child.pid, before);
  assert.deepEqual(received, [{ echo: { token: 'a' } }, { echo: { token: 'a' } }]);
  await child.stop(1_000);
  assert.equal(await child.crash(), false);
});

test('a killed process restarts with a new id; a stopped one does not', async t => {
  const { events, next, notes } = recorder();
  const child = new SupervisedProcess(spec(scratch(t), 'relay', STAYS), events);
  t.after(() => child.kill());
  await child.start();
  const before = child.pid as number;
  process.kill(before, 'SIGKILL');
  assert.equal((await next('SIGKILL')).waitMs, 200);
  assert.equal(child.pid, null);
  await next('restarted');
  assert.notEqual(child.pid, before);
  assert.equal(await child.stop(5000), false);
  assert.equal(child.pid, null);
  assert.equal(notes.length, 2);
});

test('a process that exits at once restarts with growing delays, and the fault quotes its log', async t => {
  const { events, notes } = recorder();
  const child = new SupervisedProcess(spec(scratch(t), 'relay', `console.error('no such stream'); process.exit(3)`), events);
  await child.start();
  t.after(() => child.kill());
  const fault = await waitReady(child, async () => false, 10_000);
  assert.match(fault ?? '', /^relay-1 cannot start \(exit code 3\): no such stream \(log: .*relay\.log\)$/);
  await child.stop(1000);
  assert.deepEqual(
    notes.filter(({ event }) => event === 'exit code 3').map(({ waitMs }) => waitMs),
    [200, 400, 800],
  );
});

test('a process with invalid settings is not restarted', async t => {
  const { events, notes } = recorder();
  const child = new SupervisedProcess(
    spec(scratch(t), 'relay', `console.error('HOPLINE_PORT must be …'); process.exit(78)`),
    events,
  );
  await child.start();
  assert.match((await waitReady(child, async () => false, 10_000)) ?? '', /^HOPLINE_PORT must be …$/);
  assert.deepEqual(notes, [{ event: 'exit code 78', instance: 'relay-1', waitMs: null }]);
});

test('a process that is not ready in time is reported with the time limit', async t => {
  const child = new SupervisedProcess(spec(scratch(t), 'relay', STAYS), recorder().events);
  t.after(() => child.kill());
  await child.start();
  assert.match((await waitReady(child, async () => false, 100)) ?? '', /^relay-1 is not ready after 0.1 s: /);
});

test('output for the author of an agent is reported, and stays out of the agent’s log', async t => {
  const folder = scratch(t);
  const seen = Promise.withResolvers<string>();
  const events = { ...recorder().events, authorText: (_process: SupervisedProcess, text: string) => seen.resolve(text) };
  const script = `console.log('in the log'); require('fs').writeSync(3, 'a secret of the agent\\n'); ${STAYS}`;
  const child = new SupervisedProcess({ ...spec(folder, 'sub-agent', script), writesForAuthor: true }, events);
  t.after(() => child.kill());
  await child.start();
  assert.equal(await seen.promise, 'a secret of the agent\n');
  assert.doesNotMatch(readFileSync(child.spec.logPath, 'utf8'), /secret/);
});

test('a missing program is retried like a process that exits', async t => {
  const { events, next } = recorder();
  const folder = scratch(t);
  const missing: ProcessSpec = {
    ...spec(folder, 'relay', ''),
    prepare: async () => ({ command: ['/nowhere/program'], env: {}, url: '' }),
  };
  const child = new SupervisedProcess(missing, events);
  const reported = next('spawn /nowhere/program ENOENT');
  await child.start();
  assert.equal((await reported).waitMs, 200);
  await child.stop(100);
});

test('a process that ignores SIGTERM is killed after the grace period', async t => {
  const { events } = recorder();
  const folder = scratch(t);
  const child = new SupervisedProcess(spec(folder, 'relay', `process.on('SIGTERM', () => {}); ${STAYS}`), events);
  await child.start();
  await printedSomething(child.spec.logPath);
  assert.equal(await child.stop(200), true);
  assert.equal(child.pid, null);
});

test('a cluster drains ingress, supervisor, sub-agents, relay, notifier and nats in this order', async t => {
  const folder = scratch(t);
  const cluster = new Cluster(recorder().events);
  t.after(() => cluster.kill());
  for (const service of ['nats', 'notifier', 'relay', 'sub-agent', 'supervisor', 'ingress']) {
    const { spec: started } = await cluster.run(spec(folder, service, NOTES_SIGTERM(service)));
    await printedSomething(started.logPath);
  }
  assert.deepEqual(
    cluster
      .list()
      .map(({ instance }) => instance)
      .sort(),
    ['ingress-1', 'nats-1', 'notifier-1', 'relay-1', 'sub-agent-1', 'supervisor-1'],
  );
  await cluster.drain(instance => assert.fail(`${instance} was killed`));
  assert.equal(readFileSync(join(folder, 'order'), 'utf8'), 'ingress supervisor sub-agent relay notifier nats ');
  assert.deepEqual(
    cluster.list().filter(({ pid }) => pid !== null),
    [],
  );
});

test('the restart delay doubles from 0.2 s to 5 s and starts over after 30 s', () => {
  const waits: number[] = [];
  for (let wait = 0; waits.length < 7; ) {
    wait = restartDelay(wait, 10);
    waits.push(wait);
  }
  assert.deepEqual(waits, [200, 400, 800, 1600, 3200, 5000, 5000]);
  assert.equal(restartDelay(5000, 29_999), 5000);
  assert.equal(restartDelay(5000, 30_000), 200);
});
