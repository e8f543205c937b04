import assert from 'node:assert/strict';
import { test } from 'node:test';
import { jetstreamManager } from '@nats-io/jetstream';
import type { Msg, MsgHdrs, NatsConnection } from '@nats-io/nats-core';
import type { MsgImpl } from '@nats-io/nats-core/internal';
import { connect } from '@nats-io/transport-node';
import { startNats } from '../support/nats/nats-server.ts';
import { REAL_CLOCK } from './clock.ts';
import { compare } from './comparison.ts';
import { NatsDouble } from './nats-double.ts';
import { connectVirtually, listen, pathOf } from './virtual-network.ts';

/** Runs 201 to 203, two with consumers whose filter changes while they wait for acknowledgements, and one with a purge of one message. */
const RUNS = [
  { seed: 201, operations: 1_200 },
  { seed: 406, operations: 300 },
  { seed: 437, operations: 390 },
  { seed: 478, operations: 190 },
];

test('the double answers random operations as a real nats-server does', async t => {
  const server = await startNats();
  t.after(() => server.stop());
  const double = new NatsDouble({ clock: REAL_CLOCK });
  t.after(() => double.close());
  const real = await connect({ servers: server.url });
  t.after(() => real.close());
  const virtual = await connectVirtually({ servers: listen(double, pathOf(REAL_CLOCK)).url });
  t.after(() => virtual.close());
  for (const run of RUNS) for await (const { difference } of compare(real, virtual, run)) assert.equal(difference, undefined);
  assert.deepEqual(double.unsupported, []);
});

const HEADER_LINES = ['x y: 1\r\n', 'x\ty: 1\r\n', 'x: 1\n2\r\n', 'x: 1\r2\r\n', ': 1\r\n', '\u00fc: 1\r\n', 'x', 'x: 1', ''];

/** Frames that a client receives of messages with these headers: live, as an answer to each kind of get, and from a consumer. */
async function framesOf(nc: NatsConnection): Promise<string[]> {
  const frames: string[] = [];
  const show = (msg: Msg) => {
    const { _msg: frame, _rdata: bytes } = msg as MsgImpl;
    const [header, payload] = [bytes.subarray(0, Math.max(0, frame.hdr)), bytes.subarray(Math.max(0, frame.hdr))];
    const [lines, body] = [header, payload].map(part => Buffer.from(part).toString('latin1'));
    frames.push(`${lines!.replace(/(?<=Nats-Time-Stamp: )[^\r]*/g, 'T')}|${body!.replace(/"time":"[^"]*"/, 'T')}`);
  };
  const jsm = await jetstreamManager(nc);
  const republish = { src: 's.>', dest: 'live.>' };
  await jsm.streams.add({ name: 'S', subjects: ['s.>'], allow_direct: true, republish });
  await jsm.consumers.add('S', { durable_name: 'c', ack_policy: 'explicit' });
  const live = nc.subscribe('live.>', { callback: (_, msg) => show(msg) });
  for (const [n, lines] of HEADER_LINES.entries())
    for (const payload of ['', '{}']) {
      const headers = { encode: () => Buffer.from(`NATS/1.0\r\n${lines}\r\n`) } as unknown as MsgHdrs;
      show(await nc.request(`s.${n}`, payload, { headers, timeout: 5_000 }));
      const last = JSON.stringify({ last_by_subj: `s.${n}` });
      show(await nc.request('$JS.API.STREAM.MSG.GET.S', last));
      // nats.js itself reads the headers of an answer to `request` that has no payload.
      for (const call of ['DIRECT.GET.S', 'CONSUMER.MSG.NEXT.S.c']) {
        const answer = Promise.withResolvers<void>();
        const inbox = `inbox.${n}.${payload.length}.${call}`;
        const callback = (_: Error | null, msg: Msg) => answer.resolve(show(msg));
        const subscription = nc.subscribe(inbox, { callback, max: 1 });
        nc.publish(`$JS.API.${call}`, call.startsWith('DIRECT') ? last : '1', { reply: inbox });
        await answer.promise;
        subscription.unsubscribe();
      }
    }
  await nc.flush();
  live.unsubscribe();
  return frames.sort();
}

test('the double stores and delivers headers that nats.js refuses as a real nats-server does', async t => {
  const server = await startNats();
  t.after(() => server.stop());
  const double = new NatsDouble({ clock: REAL_CLOCK });
  t.after(() => double.close());
  const real = await connect({ servers: server.url });
  t.after(() => real.close());
  const virtual = await connectVirtually({ servers: listen(double, pathOf(REAL_CLOCK)).url });
  t.after(() => virtual.close());
  assert.deepEqual(await framesOf(virtual), await framesOf(real));
});
