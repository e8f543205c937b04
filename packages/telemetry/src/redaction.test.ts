import assert from 'node:assert/strict';
import test from 'node:test';
import {
  LOG_DEPTH_MAX,
  LOG_ENTRIES_MAX,
  LOG_STACK_CHARS_MAX,
  LOG_STRING_CHARS_MAX,
  LOG_VALUES_MAX,
  REDACTED,
  redact,
  redactEntries,
  scrubLine,
} from './redaction.ts';

test('credentials and content are removed at any depth, whatever the spelling of the key [S4-43]', () => {
  const shown = JSON.stringify(
    redactEntries({
      Authorization: 'PLANTED',
      request: { headers: { 'Proxy-Authorization': 'PLANTED', accept: 'kept' }, accessToken: 'PLANTED', access_token: 'PLANTED' },
      credentials: { user: 'PLANTED' },
      message: { parts: [{ text: 'PLANTED' }], role: 'kept' },
      list: [{ apiKey: 'PLANTED', 'x-api-key': 'PLANTED', text: 'PLANTED' }],
    }),
  );
  assert.doesNotMatch(shown, /PLANTED/);
  assert.equal(shown.match(/kept/g)?.length, 2);
  assert.deepEqual(redactEntries({ token: '', tokens: 7, text: undefined }), { token: REDACTED, tokens: 7, text: undefined });
});

test('an error keeps type, message, code, stack and cause, and loses members added by a client library', () => {
  const error = Object.assign(new TypeError('refused', { cause: new Error('inner') }), {
    code: 'ECONNREFUSED',
    config: { headers: { authorization: 'PLANTED' } },
  });
  const shown = redact(error) as Record<string, unknown>;
  assert.deepEqual(Object.keys(shown), ['type', 'message', 'code', 'stack', 'cause']);
  assert.equal((shown.cause as Record<string, unknown>).message, 'inner');
  assert.doesNotMatch(JSON.stringify(shown), /PLANTED/);
});

test('every bound is inclusive', () => {
  assert.equal(redact('x'.repeat(LOG_STRING_CHARS_MAX)), 'x'.repeat(LOG_STRING_CHARS_MAX));
  assert.equal((redact('x'.repeat(LOG_STRING_CHARS_MAX + 1)) as string).length, LOG_STRING_CHARS_MAX + 1);
  assert.equal((redact(new Array(LOG_ENTRIES_MAX + 1).fill(0)) as unknown[]).length, LOG_ENTRIES_MAX);
  const wide = Object.fromEntries(Array.from({ length: LOG_ENTRIES_MAX + 1 }, (_, n) => [`k${n}`, n]));
  assert.equal(Object.keys(redactEntries(wide)).length, LOG_ENTRIES_MAX);
  const nest = (levels: number): unknown => (levels === 0 ? 'bottom' : { in: nest(levels - 1) });
  assert.match(JSON.stringify(redact(nest(LOG_DEPTH_MAX))), /bottom/);
  assert.match(JSON.stringify(redact(nest(LOG_DEPTH_MAX + 1))), /\[deep\]/);
  const error = new Error('x');
  error.stack = 's'.repeat(LOG_STACK_CHARS_MAX + 1);
  assert.equal((redact(error) as { stack: string }).stack.length, LOG_STACK_CHARS_MAX + 1);
});

test('a cyclic object ends at the depth bound', () => {
  const ring: Record<string, unknown> = {};
  ring.self = ring;
  assert.match(JSON.stringify(redact(ring)), /\[deep\]/);
});

test('objects that refer to each other are bounded as a whole', () => {
  const nodes = Array.from({ length: 20 }, (): Record<string, unknown> => ({}));
  for (const node of nodes) for (const [index, other] of nodes.entries()) node[`to${index}`] = other;
  const shown = JSON.stringify(redactEntries({ err: nodes[0], task_id: 'kept' }));
  assert.ok(shown.split(':').length <= 2 * LOG_VALUES_MAX, `${shown.length} characters`);
  assert.match(shown, /\[more\]/);
});

test('an error or object of any form is shown, and none throws', () => {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  const throwing = (target: object, name: string) =>
    Object.defineProperty(target, name, {
      enumerable: true,
      get() {
        throw new Error('PLANTED');
      },
    });
  const fields = {
    message: Object.assign(new Error('x'), { message: { status: 'kept', text: 'PLANTED' } }),
    stack: Object.assign(new Error('kept'), { stack: ['PLANTED'] }),
    unreadable: throwing(new Error('x'), 'message'),
    getter: throwing({}, 'any'),
    proxy,
    bytes: Buffer.from('PLANTED'),
  };
  const shown = redactEntries(fields) as Record<string, Record<string, unknown>>;
  assert.deepEqual(shown.message?.message, { status: 'kept', text: REDACTED });
  assert.deepEqual(shown.stack, { type: 'Error', message: 'kept' });
  const others = [shown.unreadable, shown.getter, shown.proxy, shown.bytes];
  assert.deepEqual(others, ['[unreadable]', '[unreadable]', '[unreadable]', '[7 bytes]']);
  assert.doesNotMatch(JSON.stringify(shown), /PLANTED/);
});

test('credentials recognized by their form are removed from the finished line', () => {
  const line = scrubLine('{"msg":"connect nats://bob:hunter2@nats:4222 failed","x":"bearer eyJ.abc-_","u":"https://h/p@q"}');
  assert.equal(line, `{"msg":"connect nats://${REDACTED}@nats:4222 failed","x":"bearer ${REDACTED}","u":"https://h/p@q"}`);
});
