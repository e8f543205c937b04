import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Exchange } from './exchange.ts';
import { runs } from './fuzz-settings.ts';
import { type Outcome, rpcOutcome } from './invariants.ts';
import { type MemoryServers, openMemoryServers } from './memory-servers.ts';
import { filled, filledBytes, PLANTED } from './placeholders.ts';
import { type FuzzedRpc, fuzzedRpc, goldenParams, goldenRpc, RPC_METHODS } from './rpc-requests.ts';

const RUNS_OF_A_METHOD = 30;

/** The id that JSON-RPC requires in the response; undefined when the body does not determine it. */
function idOf(body: Uint8Array): unknown {
  try {
    const { id } = JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body)) as { id?: unknown };
    return id === 7 || id === 'the-id' ? id : undefined;
  } catch {
    return undefined;
  }
}

/** Asserts that a rejected request wrote nothing, and that the other replica rejects it alike. */
async function judge(
  { replicas, known: tasks, writes }: MemoryServers,
  exchange: Exchange,
  request: FuzzedRpc,
): Promise<Outcome> {
  const known = await tasks();
  const body = filledBytes(request.body, known);
  const about = `${request.path} ${JSON.stringify(request.headers)} ${Buffer.from(body).toString('latin1').slice(0, 2_000)}`;
  const sent = { method: 'POST', path: request.path, headers: request.headers, body };
  const before = writes();
  const first = await exchange.send(replicas[0].url, sent);
  const outcome = await rpcOutcome(first, idOf(body), about);
  if (outcome.accepted) return outcome;
  assert.equal(writes(), before, `rejected with ${outcome.reason} after a write: ${about}`);
  const second = await exchange.send(replicas[1].url, sent);
  assert.deepEqual([second.status, (await rpcOutcome(second, idOf(body), about)).reason], [first.status, outcome.reason], about);
  return outcome;
}

test('nearly valid params for each method of each dialect cause no fault and no leak, and rejected ones change nothing [S4-32 S4-33]', async t => {
  const servers = await openMemoryServers(t);
  const exchange = new Exchange();
  t.after(() => exchange.close());
  const seen = new Map<string, Set<string>>();
  for (const { name, operation } of RPC_METHODS) {
    const reasons = new Set<string>();
    seen.set(`${name} ${operation}`, reasons);
    await fc.assert(
      fc.asyncProperty(fuzzedRpc(name, operation), async request => {
        const { reason = 'accepted' } = await judge(servers, exchange, request);
        reasons.add(reason);
      }),
      runs(RUNS_OF_A_METHOD),
    );
  }
  await servers.settled();
  for (const { lines } of servers.replicas) {
    const written = JSON.stringify(lines, (_name, value) => (value instanceof Error ? `${value.message} ${value.stack}` : value));
    assert.equal(written.includes(PLANTED), false);
    assert.doesNotMatch(written, /request failed/);
  }
});

test('each golden request is accepted, or rejected for the state of its task, so that the fuzzers start from valid requests', async t => {
  const { replicas, known } = await openMemoryServers(t);
  const exchange = new Exchange();
  t.after(() => exchange.close());
  const states = ['TASK_NOT_FOUND', 'TASK_NOT_CANCELABLE', 'UNSUPPORTED_OPERATION', 'EXTENDED_AGENT_CARD_NOT_CONFIGURED'];
  for (const { name, operation } of RPC_METHODS) {
    for (const params of goldenParams(name, operation)) {
      const body = filled(goldenRpc(name, operation, params), await known());
      const version = { '1.0': '1.0', '0.3': '0.3', legacy: '0.1' }[name];
      const headers = { 'content-type': 'application/json', 'a2a-version': version };
      const { accepted, reason } = await rpcOutcome(
        await exchange.send(replicas[0].url, { method: 'POST', path: '/', headers, body }),
        'the-id',
        body,
      );
      assert(accepted || states.includes(reason!), `${name} ${operation}: ${reason} ${body}`);
    }
  }
});
