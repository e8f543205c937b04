import assert from 'node:assert/strict';
import test from 'node:test';
import type { StoredMsg } from '@nats-io/jetstream';
import { type Msg, MsgHdrsImpl } from '@nats-io/nats-core';
import { MsgImpl } from '@nats-io/nats-core/internal';
import fc from 'fast-check';
import { headersOf, storedHeadersOf } from './message-headers.ts';

/** A message as nats.js creates it: one buffer in which the headers precede the payload. */
function received(headers: string, payload = ''): Msg {
  const bytes = Buffer.from(headers + payload);
  const hdr = headers === '' ? -1 : Buffer.byteLength(headers);
  const frame = { subject: Buffer.from('s'), sid: 1, hdr, size: bytes.length };
  return new MsgImpl(frame, bytes, { publish: () => {} }) as Msg;
}

const name = fc.stringMatching(/^[A-Za-z][A-Za-z-]{0,11}$/);
const value = fc.string({ unit: 'grapheme', maxLength: 12 }).map(text => text.replaceAll(/[\r\n]/g, ' '));

test('a header has the value that nats.js reads, for any names and values, repeated names, and names that begin or end like others', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(name, value), { maxLength: 6 }), name, (sent, other) => {
      const written = new MsgHdrsImpl();
      for (const [key, text] of sent) written.append(key, text);
      const message = received(`${written.size() === 0 ? 'NATS/1.0\r\n\r\n' : written.toString()}`, 'Payload: 1\r\n');
      const known = sent.map(([key]) => key);
      for (const asked of [...known, other, ...known.map(key => key.slice(1)), ...known.map(key => `${key}s`), 'Payload'])
        if (asked !== '') assert.equal(headersOf(message)?.get(asked), message.headers?.get(asked), asked);
      const pairs = [...message.headers!].flatMap(([key, texts]) => texts.map(text => `${key}: ${text}`));
      const read = [...headersOf(message)!].map(([key, [text]]) => `${key}: ${text}`);
      assert.deepEqual(read.sort(), pairs.sort());
    }),
  );
});

test('a message without headers has none, a status has no names, and headers without a last line end are read', () => {
  assert.equal(headersOf(received('', 'Seq: 1')), undefined);
  assert.equal(headersOf(received('NATS/1.0 503\r\n\r\n'))?.get('Seq'), '');
  assert.equal(headersOf(received('NATS/1.0\r\nSeq: 7'))?.get('Seq'), '7');
});

test('the status of an answer is what nats.js reads', () => {
  for (const line of ['', ' 503', ' 408 Request Timeout', ' 100 Idle Heartbeat', '  409  Message Size Exceeds MaxBytes ', ' x']) {
    const message = received(`NATS/1.0${line}\r\nSeq: 1\r\n\r\n`);
    const { code, description } = headersOf(message)!;
    assert.deepEqual([code, description], [message.headers!.code, message.headers!.description], line);
  }
});

test('a header that nats.js refuses does not keep the other headers of its message from being read', () => {
  for (const line of ['x y: 1', 'x\ty: 1', 'x: 1\r2', 'x: 1\n2', ': 1', 'ü: 1', 'x']) {
    const message = received(`NATS/1.0\r\nSeq: 1\r\n${line}\r\nLast: 2\r\n\r\n`);
    assert.deepEqual([headersOf(message)!.get('Seq'), headersOf(message)!.get('Last')], ['1', '2']);
  }
});

test('a stored message with a header that nats.js refuses counts as one without headers', () => {
  const stored = (text: string) =>
    ({
      get header() {
        return MsgHdrsImpl.decode(Buffer.from(text));
      },
    }) as unknown as StoredMsg;
  assert.equal(storedHeadersOf(stored('NATS/1.0\r\nSeq: 3\r\n\r\n'))?.get('Seq'), '3');
  assert.equal(storedHeadersOf(stored('NATS/1.0\r\nx y: 3\r\n\r\n')), undefined);
});

test('a message that does not come from nats.js provides its own headers', () => {
  const headers = MsgHdrsImpl.fromRecord({ Seq: ['3'] });
  assert.equal(headersOf({ headers } as unknown as Msg), headers);
});
