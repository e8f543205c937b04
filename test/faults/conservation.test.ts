import assert from 'node:assert/strict';
import { after, before, type TestContext, test } from 'node:test';
import { isVisible } from '@hopline/events';
import type { Log } from '@hopline/log';
import { openJetStreamLog } from '@hopline/log-jetstream';
import { type Audit, INPUT_KINDS, isBalanced, reportTask } from '@hopline/task-audit';
import { until } from '../kit/until.ts';
import { type RemoteAgent, startRemoteAgent } from '../support/agents/remote-agent.ts';
import { frames, rpc } from '../support/cluster/a2a-stream.ts';
import { Cluster } from '../support/cluster/cluster.ts';

let remote: RemoteAgent;
let cluster: Cluster;
let log: Log;

before(async () => {
  remote = await startRemoteAgent({
    dialect: '0.3',
    script: async function* ({ text, turn }) {
      if (text.includes('fail')) return yield { fail: true, text: 'no' };
      if (text.includes('ask') && turn === 1) return yield { inputRequired: 'Which one?' };
      for (let n = 0; n < 120; n += 1) {
        yield { token: n % 40 === 39 ? '🔧 Calling tool: version_service__version' : `${n} ` };
        yield { pause: text.includes('slow') ? 25 : 2 };
      }
      yield { complete: true };
    },
  });
  cluster = await Cluster.shared({
    agents: [{ name: 'argocd', adapter: 'a2a', url: remote.url }],
    env: { HOPLINE_ACK_WAIT_MS: '1500' },
  });
  log = await openJetStreamLog({ servers: cluster.nats.url, name: 'audit' });
});

after(async () => {
  await log?.close();
  await cluster?.[Symbol.asyncDispose]();
  await remote?.close();
});

/** Starts a task and reads its stream to the end. `act` runs at the first text of the agent. */
async function run(text: string, act: (taskId: string) => Promise<unknown> = async () => {}) {
  let taskId = '';
  let acted: Promise<unknown> | undefined;
  for await (const { event } of frames(cluster.url, { text })) {
    if ('task' in event) taskId = event.task.id;
    if ('artifactUpdate' in event && event.artifactUpdate.artifact.name === 'streaming_result') acted ??= act(taskId);
  }
  await acted;
  return taskId;
}

/** Audits a task, repeatedly until no input is pending. */
async function audited(taskId: string): Promise<Audit> {
  return until(async () => {
    const { audit } = (await reportTask(log, taskId))!;
    return Object.values(audit.tallies).every(({ pending }) => pending === 0) && audit;
  }, `the inputs of ${taskId} are no longer pending`);
}

async function assertConserved(t: TestContext, name: string, taskId: string): Promise<Audit> {
  const audit = await audited(taskId);
  const { tallies, chunks, mergedTokens, unaccounted, differing, incomplete } = audit;
  for (const kind of INPUT_KINDS) {
    const { received, accepted, duplicates, rejected } = tallies[kind];
    if (received === 0) continue;
    const out = kind === 'text' ? `, ${chunks} chunks out, ${mergedTokens} merged` : '';
    t.diagnostic(
      `${name}: ${kind} ${received} in, ${accepted} accepted${out}, ${duplicates} duplicates, rejected ${JSON.stringify(rejected)}, ${unaccounted[kind] ?? 0} unaccounted`,
    );
  }
  assert.deepEqual(
    [unaccounted, differing, incomplete],
    [{ message: 0, open: 0, text: 0, call: 0, ended: 0, step: 0, 'remote-run': 0, 'agent-step': 0 }, [], false],
  );
  assert(isBalanced(audit));
  return audit;
}

test('every input of every kind is delivered, merged, or rejected with a reason: in minus out minus merged is zero [S2-32 S2-13]', {
  timeout: 120_000,
}, async t => {
  const { tallies, mergedTokens } = await assertConserved(t, 'answered', await run('go'));
  assert(mergedTokens > 0);
  for (const kind of ['message', 'open', 'text', 'close', 'artifact', 'status', 'call', 'ended', 'remote-run'] as const) {
    assert(tallies[kind].accepted > 0, `no input of kind ${kind}`);
  }
  await assertConserved(t, 'failed', await run('fail'));
  await assertConserved(t, 'asked', await run('ask'));
});

test('the client receives each stored event [S2-33]', { timeout: 120_000 }, async () => {
  const shown: string[] = [];
  let taskId = '';
  for await (const { id, event } of frames(cluster.url, { text: 'go' })) {
    if ('task' in event) taskId = event.task.id;
    shown.push(id.split('.')[0]!);
  }
  const stored: string[] = [];
  for await (const { record } of log.facts.read(taskId, 1)) {
    stored.push(...record.facts.filter(isVisible).map(({ generation }) => String(generation)));
  }
  assert.deepEqual(shown, stored);
});

test('inputs of a canceled task are rejected and counted [S2-32]', { timeout: 120_000 }, async t => {
  const cancel = (id: string) => rpc(cluster.url, { method: 'tasks/cancel', params: { id } });
  const audit = await assertConserved(t, 'canceled', await run('slow', cancel));
  assert.equal(audit.tallies.cancel.accepted, 1);
});

test('inputs balance after kills of a relay, an agent and the supervisor in mid-stream [S2-32]', {
  timeout: 120_000,
}, async t => {
  const reborn = async (victims: Cluster['relays']) => {
    await Promise.all(victims.map(victim => victim.kill('SIGKILL')));
    await Promise.all(victims.map(victim => victim.start()));
  };
  await assertConserved(t, 'relay killed', await run('slow', () => reborn(cluster.relays)));
  const again = await assertConserved(t, 'agent killed', await run('slow', () => reborn(cluster.agents)));
  assert(again.tallies.open.accepted > 1, 'the second attempt opens the text again');
  await assertConserved(t, 'supervisor killed', await run('slow', () => reborn(cluster.supervisors)));
});

/** The number of inputs of each kind that relays hold, computed from their counters: `received` minus all outcomes. */
async function heldByRelays(): Promise<Record<string, number>> {
  const held: Record<string, number> = {};
  for (const { url } of cluster.relays) {
    const text = await (await fetch(`${url}/metrics`)).text();
    for (const [, labels = '', value] of text.matchAll(/^hopline_inputs_total\{([^}]*)\} (\d+)/gm)) {
      const kind = /kind="([\w-]+)"/.exec(labels)?.[1] ?? '';
      held[kind] = (held[kind] ?? 0) + (labels.includes('outcome="received"') ? Number(value) : -Number(value));
    }
  }
  return held;
}

test('the counters of idle relays balance: no input of any kind is left [S2-32]', {
  timeout: 120_000,
}, async t => {
  await run('go');
  await run('fail');
  await run('slow', id => rpc(cluster.url, { method: 'tasks/cancel', params: { id } }));
  let held: Record<string, number> = {};
  const isIdle = async () => {
    held = await heldByRelays();
    return Object.values(held).every(count => count === 0);
  };
  await until(isIdle, () => `the relays hold nothing, not ${JSON.stringify(held)}`);
  t.diagnostic(`held by the relays: ${JSON.stringify(held)}`);
  assert.ok(Object.keys(held).length >= 8);
});
