import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type InputRecord, rawSubject } from '@hopline/events';
import type { RejectedInput, StoredInput } from '@hopline/log';
import { openJetStreamLog } from '@hopline/log-jetstream';
import { jetstream } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { startNats } from '../../support/nats/nats-server.ts';

/** A read that yields too little ends after this time, and its test fails. */
const PATIENCE_MS = 30_000;

const cancel: InputRecord = { v: 1, at: 1, from: 'client', input: { kind: 'cancel' } };

/** The first input of an iteration. */
async function first(inputs: AsyncIterable<StoredInput>): Promise<StoredInput | undefined> {
  for await (const input of inputs) return input;
  return undefined;
}

test('an input under the subject of a writer that may not append it is rejected', { timeout: 120_000 }, async t => {
  const nats = await startNats();
  t.after(() => nats.stop());
  const log = await openJetStreamLog({ servers: nats.url, name: 'inputs' });
  t.after(() => log.close());
  const nc = await connect({ servers: nats.url });
  t.after(() => nc.close());
  const from = { id: 'supervisor', agent: 'supervisor', turn: 1, attempt: 1 };
  const forged: InputRecord = { v: 1, at: 1, from, n: 1, inputs: [{ kind: 'status', state: 'TASK_STATE_COMPLETED' }] };
  await jetstream(nc).publish(rawSubject('t', log.layouts, 'agent.argocd'), JSON.stringify(forged));
  await log.inputs.append('t', cancel, { id: 't:cancel' });
  const rejected: RejectedInput[] = [];
  const signal = AbortSignal.timeout(PATIENCE_MS);
  const read = await first(log.inputs.readShard(log.layouts.shardOf('t'), 1, signal, input => rejected.push(input)));
  assert.deepEqual([read?.writer, rejected.map(({ fault }) => fault)], ['client', ['wrong writer']]);
});

test('a reader whose next sequence is far beyond the end of the stream reads the stream from its beginning', {
  timeout: 120_000,
}, async t => {
  const nats = await startNats();
  t.after(() => nats.stop());
  const log = await openJetStreamLog({ servers: nats.url, name: 'inputs' });
  t.after(() => log.close());
  const { seq } = await log.inputs.append('t', cancel, { id: 't:cancel' });
  const read = await first(log.inputs.readShard(log.layouts.shardOf('t'), 1_000, AbortSignal.timeout(PATIENCE_MS)));
  assert.equal(read?.seq, seq);
});
