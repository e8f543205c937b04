import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import fc from 'fast-check';
import { userMessage } from '../kit/user-message.ts';
import { type RemoteAgent, startRemoteAgent } from '../support/agents/remote-agent.ts';
import { Cluster } from '../support/cluster/cluster.ts';
import { Exchange, type Received, type Sent } from './exchange.ts';
import { ANSWER_MS_MAX, runs } from './fuzz-settings.ts';
import { type Outcome, restOutcome, rpcOutcome } from './invariants.ts';
import { LogState } from './log-state.ts';
import { type Described, OpenApiDocument } from './openapi-document.ts';
import { filled, filledBytes, type Known, PLANTED } from './placeholders.ts';
import { fuzzedRest } from './rest-requests.ts';
import { fuzzedRest03 } from './rest-requests-03.ts';
import { fuzzedRpc, RPC_METHODS } from './rpc-requests.ts';

const RUNS = 100;
/** The log counts as idle after this time without a write, if no task is unfinished. */
const QUIET_MS = 120;
/** Parameters of long polls. */
const WAITS = new Set(['currentGeneration', 'live']);

let agent: RemoteAgent;
let cluster: Cluster;
let log: LogState;
const exchange = new Exchange();

before(async () => {
  agent = await startRemoteAgent({ dialect: '1.0', script: () => [{ inputRequired: 'Which one?' }] });
  const agents = [{ name: 'counter', adapter: 'a2a', url: agent.url }];
  cluster = await Cluster.start({ agents, ingresses: 2, env: { HOPLINE_PUSH: 'true' } });
  log = await LogState.open(cluster.nats.url);
});

after(async () => {
  exchange.close();
  await log?.close();
  await cluster?.[Symbol.asyncDispose]();
  await agent?.close();
});

type Task = { id: string; status: { state: string } };

async function rest(method: string, path: string, body?: object): Promise<{ tasks: Task[]; task: Task; totalSize: number }> {
  const headers = { 'a2a-version': '1.0', 'content-type': 'application/json' };
  const { status, text } = await exchange.send(cluster.url, { method, path, headers, body: body && JSON.stringify(body) });
  assert.equal(status, 200, text);
  return JSON.parse(text);
}

async function ask(): Promise<Task> {
  const { task } = await rest('POST', '/message:send', {
    message: userMessage('x'),
  });
  assert.equal(task.status.state, 'TASK_STATE_INPUT_REQUIRED');
  return task;
}

/** Waits until the cluster has processed all accepted requests, so that both replicas see the same tasks. */
async function settled(): Promise<void> {
  for (const until = Date.now() + ANSWER_MS_MAX; ; ) {
    await log.quiet(QUIET_MS);
    const pages = ['SUBMITTED', 'WORKING'].map(state => rest('GET', `/tasks?status=TASK_STATE_${state}`));
    const left = (await Promise.all(pages)).flatMap(({ tasks }) => tasks);
    if (left.length === 0) return;
    assert(Date.now() < until, `${left.length} tasks are unfinished: ${JSON.stringify(left).slice(0, 1_000)}`);
  }
}

async function knownTasks(): Promise<Known> {
  const [waiting, ended] = [await ask(), await ask()];
  await rest('POST', `/tasks/${ended.id}:cancel`);
  return { waiting: waiting.id, ended: ended.id };
}

type Fuzzed = Sent & { kind: 'rpc' | 'rest' };

async function outcomeOf(kind: Fuzzed['kind'], received: Received, about: string): Promise<Outcome> {
  return kind === 'rpc' ? rpcOutcome(received, undefined, about) : restOutcome(received, about);
}

/** A valid long poll waits for 20 s. The servers of rest.test.ts wait for a shorter time. */
function withoutWaits({ operation, ...one }: Described): Described {
  return { ...one, operation: { ...operation, parameters: operation.parameters.filter(({ name }) => !WAITS.has(name)) } };
}

async function anyRequest(): Promise<fc.Arbitrary<Fuzzed>> {
  const { text } = await exchange.send(cluster.url, { method: 'GET', path: '/openapi.json' });
  const document = new OpenApiDocument(text);
  const rpc = fc.oneof(...RPC_METHODS.map(({ name, operation }) => fuzzedRpc(name, operation)));
  const described = fc.oneof(...document.operations.map(one => fuzzedRest(document, withoutWaits(one))));
  return fc.oneof(
    rpc.map((one): Fuzzed => ({ kind: 'rpc', method: 'POST', ...one })),
    fc
      .oneof({ weight: 2, arbitrary: described }, { weight: 1, arbitrary: fuzzedRest03 })
      .map((one): Fuzzed => ({ kind: 'rest', ...one })),
  );
}

test('a rejected request writes nothing to the cluster, and both replicas reject it in the same way [S4-33]', async t => {
  const empty = (await log.ofServers()).split('\n');
  let known = await knownTasks();
  await settled();
  let written = await log.ofServers();
  // These messages name no context and no webhook, so they add only inputs.
  const unwritten = written.split('\n').filter(line => empty.includes(line));
  assert.equal(unwritten.length, empty.length - 1, `accepted requests were not written: ${unwritten}`);
  const outcomes = new Map<string, number>();
  await fc.assert(
    fc.asyncProperty(await anyRequest(), async ({ kind, ...request }) => {
      const path = filled(request.path, known);
      const body = request.body && filledBytes(request.body as Uint8Array, known);
      const sent = { ...request, path, body };
      const about = `${sent.method} ${path} ${JSON.stringify(sent.headers)} ${Buffer.from(body ?? [])
        .toString('latin1')
        .slice(0, 1_000)}`;
      const first = await exchange.send(cluster.url, sent);
      if (sent.method === 'HEAD') return assert(first.status < 500, about);
      const { accepted, reason = 'accepted' } = await outcomeOf(kind, first, about);
      outcomes.set(reason, (outcomes.get(reason) ?? 0) + 1);
      if (accepted) {
        await settled();
        const { status } = (await rest('GET', `/tasks/${known.waiting}`)) as unknown as Task;
        if (status.state === 'TASK_STATE_CANCELED') {
          known = { ...known, waiting: (await ask()).id };
          await settled();
        }
        written = await log.ofServers();
        return;
      }
      assert.equal(await log.ofServers(), written, `rejected with ${reason} after a write: ${about}`);
      const second = await exchange.send(cluster.ingresses[1]!.url, sent);
      assert.deepEqual([second.status, (await outcomeOf(kind, second, about)).reason], [first.status, reason], about);
      assert.equal(await log.ofServers(), written, `the other replica rejected with ${reason} after a write: ${about}`);
    }),
    runs(RUNS),
  );
  t.diagnostic(JSON.stringify(Object.fromEntries(outcomes)));
});

test('after the fuzzing no task is left unfinished, all services run, a question is answered, and no secret was logged [S4-33]', async () => {
  await settled();
  await ask();
  for (const { spec, pid, output } of cluster.services) {
    process.kill(pid, 0);
    assert.equal(output.includes(PLANTED), false, spec.instance);
    assert.doesNotMatch(output, /request failed|uncaught|unhandled|"level":"?(fatal|60)/i, spec.instance);
  }
});
