import assert from 'node:assert/strict';
import { test } from 'node:test';
import { operationOf } from './dialect.ts';
import { decodeListTasks } from './dialect-1.0/list-tasks.ts';
import { DIALECTS } from './dialects.ts';
import { A2AError, errorDetails } from './errors.ts';
import { GENERATION_MAX, ID_CHARS_MAX, PARTS_MAX } from './schema/limits.ts';

const { '1.0': v10, '0.3': v03, legacy } = DIALECTS;
const text10 = { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'x' }] };
const text03 = { messageId: 'm', role: 'user', parts: [{ kind: 'text', text: 'x' }] };

type BadRequest = { '@type': string; fieldViolations: { field: string; description: string }[] };

function refusal(decode: () => unknown): A2AError {
  try {
    decode();
  } catch (error) {
    assert(error instanceof A2AError);
    assert.equal(error.code, 'INVALID_PARAMS');
    return error;
  }
  assert.fail('was accepted');
}

/** A message with these bytes, in each dialect. */
function sentBytes(raw: string): (string | undefined)[] {
  const file = { kind: 'file', file: { bytes: raw } };
  const sent = [
    v10.decodeSend({ message: { ...text10, parts: [{ text: 'x' }, { raw }] } }),
    v03.decodeSend({ message: { ...text03, parts: [{ kind: 'text', text: 'x' }, file] } }),
    legacy.decodeSend({
      id: 't',
      message: {
        role: 'user',
        parts: [
          { type: 'text', text: 'x' },
          { ...file, type: 'file' },
        ],
      },
    }),
  ];
  return sent.map(({ message }) => message.parts[1]?.raw);
}

test('a wrong member is named by its path and its rule, in details that each binding has [S4-32]', () => {
  for (const [decode, field, description] of [
    [() => v10.decodeSend({ message: { ...text10, role: 'x' } }), 'message.role', 'must be ROLE_USER or ROLE_AGENT'],
    [() => v10.decodeSend({ message: { ...text10, parts: [{}] } }), 'message.parts[0]', /^must have exactly one of/],
    [() => v10.decodeSend({ message: { ...text10, parts: [{ raw: 'A' }] } }), 'message.parts[0].raw', /whole number of bytes$/],
    [() => decodeListTasks({ statusTimestampAfter: '2026-99-01T00:00:00Z' }), 'statusTimestampAfter', 'must be a valid time'],
    [() => decodeListTasks({ pageSize: 0 }), 'pageSize', 'must be >= 1'],
  ] as [() => unknown, string, string | RegExp][]) {
    const error = refusal(decode);
    const [info, bad, ...rest] = errorDetails(error) as [{ reason: string }, BadRequest, ...unknown[]];
    assert.deepEqual([info.reason, bad['@type'], rest], ['INVALID_PARAMS', 'type.googleapis.com/google.rpc.BadRequest', []]);
    assert.equal(bad.fieldViolations[0]?.field, field);
    assert.equal(error.message, `Invalid params: params.${field} ${bad.fieldViolations[0]?.description}`);
    if (typeof description === 'string') assert.equal(bad.fieldViolations[0]?.description, description);
    else assert.match(bad.fieldViolations[0]?.description ?? '', description);
  }
  assert.equal(errorDetails(refusal(() => v10.decodeSend([]))).length, 1);
});

test('bytes in either alphabet, with or without padding, are kept in standard base64', () => {
  for (let length = 0; length < 9; length += 1) {
    const bytes = Buffer.from([0xfb, 0xff, 0xbf, 0x3e, 0xff, 0xef, 0xbe, 0xfb, 0xff].slice(0, length));
    const standard = bytes.toString('base64');
    for (const written of [standard, bytes.toString('base64url'), standard.replaceAll('=', '')])
      assert.deepEqual(sentBytes(written), [standard, standard, standard], written);
  }
  for (const raw of ['A', 'AAAAA', 'AAAA=A', 'AAAAA==='])
    assert.match(refusal(() => sentBytes(raw)).message, /parts\[1\].*base64/, raw);
});

test('an error names wrong params by path and rule, and never quotes them [S0-43 S4-32]', () => {
  const secret = 'SECRET-VALUE';
  const cases: [() => unknown, RegExp][] = [
    [() => v03.decodeSend(undefined), /params must be object/],
    [() => v03.decodeSend([]), /params must be object/],
    [() => v03.decodeSend({}), /params must have required property 'message'/],
    [() => v03.decodeSend({ message: { ...text03, role: secret } }), /params\.message\.role must be user or agent/],
    [() => v03.decodeSend({ message: { ...text03, parts: [] } }), /params\.message\.parts must NOT have fewer than 1 items/],
    [() => v03.decodeSend({ message: { ...text03, parts: secret } }), /params\.message\.parts must be array/],
    [() => v03.decodeSend({ message: { ...text03, messageId: '' } }), /params\.message\.messageId must be 1 to/],
    [() => v03.decodeSend({ message: { ...text03, messageId: `${secret}\r\nx` } }), /params\.message\.messageId must be 1 to/],
    [() => v03.decodeSend({ message: { ...text03, messageId: 7 } }), /params\.message\.messageId must be/],
    [
      () => v03.decodeSend({ message: { ...text03, contextId: `${secret}\n` } }),
      /params\.message\.contextId must be at most 256 characters without control characters$/,
    ],
    [
      () => v03.decodeSend({ message: { ...text03, parts: [{ kind: 'file', file: { bytes: '***' } }] } }),
      /parts\[0\] must be a text, file or data part; bytes of a file are base64$/,
    ],
    [() => v03.decodeSend({ message: { ...text03, kind: 'task' } }), /params\.message\.kind must be message/],
    [
      () => v03.decodeSend({ message: { ...text03, parts: [{ kind: 'text', text: 7 }] } }),
      /params\.message\.parts\[0\] must be a text, file or data part/,
    ],
    [
      () => v03.decodeSend({ message: { ...text03, parts: [{ kind: secret, text: 'x' }] } }),
      /parts\[0\] must be a text, file or data part/,
    ],
    [
      () => v03.decodeSend({ message: { ...text03, parts: [{ text: 'x', data: {} }] } }),
      /parts\[0\] must be a text, file or data part/,
    ],
    [() => v03.decodeSend({ message: { ...text03, parts: [{ kind: 'file', file: {} }] } }), /parts\[0\] must be/],
    [
      () => v03.decodeSend({ message: text03, configuration: { blocking: 'yes' } }),
      /params\.configuration\.blocking must be boolean/,
    ],
    [
      () => v03.decodeSend({ message: text03, configuration: { historyLength: -1 } }),
      /params\.configuration\.historyLength must be >= 0/,
    ],
    [() => v03.decodeSend({ message: { ...text03, metadata: 'x' } }), /params\.message\.metadata must be object/],
    [() => v10.decodeSend({ message: { ...text10, role: 'user' } }), /params\.message\.role must be ROLE_USER or ROLE_AGENT/],
    [() => v10.decodeSend({ message: { ...text10, parts: [{}] } }), /parts\[0\] must have exactly one of text, raw, url, data/],
    [() => v10.decodeSend({ message: { ...text10, parts: [{ text: 'x', url: 'y' }] } }), /parts\[0\] must have exactly one of/],
    [() => v10.decodeSend({ message: { ...text10, parts: [{ text: 7 }] } }), /parts\[0\]\.text must be string/],
    [() => v10.decodeSend({ message: { ...text10, parts: [{ raw: '%%' }] } }), /parts\[0\]\.raw must be base64/],
    [() => v10.decodeGet({}), /params must have required property 'id'/],
    [() => v10.decodeGet({ id: 'x', historyLength: 1.5 }), /params\.historyLength must be integer/],
    [() => v10.decodeGet({ id: 'x', currentGeneration: -1 }), /params\.currentGeneration must be a whole number from 0 to/],
    [() => v10.decodeGet({ id: 'x', currentGeneration: '1.5' }), /params\.currentGeneration must be a whole number from 0 to/],
    [
      () => v10.decodeSend({ message: text10, configuration: { ifGenerationMatch: GENERATION_MAX + 1 } }),
      /params\.configuration\.ifGenerationMatch must be a whole number from 0 to/,
    ],
    [() => v03.decodeCancel({ id: '' }), /params\.id must be 1 to/],
    [() => v03.decodeSubscribe({ id: null }), /params\.id must be/],
  ];
  for (const [decode, reason] of cases) {
    const error = refusal(decode);
    assert.match(error.message, reason);
    assert.equal(error.message.includes(secret), false);
  }
});

test('limits of a message hold at their edges', () => {
  const parts = (count: number) => ({ message: { ...text10, parts: Array(count).fill({ text: 'x' }) } });
  assert.equal(v10.decodeSend(parts(PARTS_MAX)).message.parts.length, PARTS_MAX);
  refusal(() => v10.decodeSend(parts(PARTS_MAX + 1)));
  const id = (chars: number) => ({ message: { ...text10, contextId: 'c'.repeat(chars) } });
  assert.equal(v10.decodeSend(id(ID_CHARS_MAX)).message.contextId?.length, ID_CHARS_MAX);
  refusal(() => v10.decodeSend(id(ID_CHARS_MAX + 1)));
});

test('0.3 accepts requests of older clients: no kind, type for kind, nulls, unknown members', () => {
  const parts = [
    { type: 'text', text: ' a ' },
    { text: 'b' },
    { type: 'application/json', data: { n: 1 } },
    { kind: 'file', file: { uri: 'u', bytes: null, name: null } },
  ];
  const request = v03.decodeSend({
    message: { ...text03, parts, contextId: null, taskId: '', metadata: null, novelty: 1 },
    configuration: { blocking: null, historyLength: null, acceptedOutputModes: [] },
    novelty: true,
  });
  assert.deepEqual(request, {
    message: { messageId: 'm', role: 'ROLE_USER', parts: [{ text: ' a ' }, { text: 'b' }, { data: { n: 1 } }, { url: 'u' }] },
    blocking: true,
  });
});

test('1.0 accepts a part whose other members are null, because some clients write every field', () => {
  const unset = { text: null, raw: null, url: null, data: null, metadata: null, filename: null, mediaType: null };
  const contents = [{ text: 'x' }, { text: '' }, { raw: 'AA==' }, { url: 'u' }, { data: 0 }, { data: { a: null } }];
  const parts = contents.map(content => ({ ...unset, ...content }));
  assert.deepEqual(v10.decodeSend({ message: { ...text10, parts } }).message.parts, contents);
  // null is JSON, and so it can be data.
  for (const part of [{ data: null }, unset])
    assert.deepEqual(v10.decodeSend({ message: { ...text10, parts: [part] } }).message.parts, [{ data: null }]);
  const several = [{ ...unset, text: 'x', data: 0 }, { ...unset, raw: '', url: '' }, { text: null }, { url: null, raw: null }];
  for (const part of several) refusal(() => v10.decodeSend({ message: { ...text10, parts: [part] } }));
});

test('a send blocks by the default of its dialect or by its flag [S1-2 S1-3]', () => {
  assert.equal(v03.decodeSend({ message: text03 }).blocking, true);
  assert.equal(v03.decodeSend({ message: text03, configuration: { blocking: false } }).blocking, false);
  assert.equal(v10.decodeSend({ message: text10 }).blocking, true);
  assert.equal(v10.decodeSend({ message: text10, configuration: { returnImmediately: true } }).blocking, false);
});

test('1.0 also accepts protobuf names; JSON names take precedence, and names inside client-owned objects stay unchanged', () => {
  assert.deepEqual(v10.decodeGet({ id: 'x', history_length: 0 }), { taskId: 'x', historyLength: 0 });
  assert.deepEqual(v10.decodeGet({ id: 'x', history_length: 0, historyLength: 2 }), { taskId: 'x', historyLength: 2 });
  const message = {
    message_id: 'm',
    role: 'ROLE_USER',
    context_id: 'c',
    task_id: 't',
    reference_task_ids: ['r'],
    parts: [
      { raw: 'AA==', media_type: 'a/b' },
      { data: { snake_case: 1 }, metadata: { snake_case: 2 } },
    ],
    metadata: { snake_case: 3 },
  };
  const configuration = { history_length: 1, return_immediately: true, accepted_output_modes: ['a/b'] };
  assert.deepEqual(v10.decodeSend({ message, configuration, metadata: { snake_case: 4 } }), {
    message: {
      messageId: 'm',
      role: 'ROLE_USER',
      contextId: 'c',
      taskId: 't',
      referenceTaskIds: ['r'],
      parts: [
        { raw: 'AA==', mediaType: 'a/b' },
        { data: { snake_case: 1 }, metadata: { snake_case: 2 } },
      ],
      metadata: { snake_case: 3 },
    },
    blocking: false,
    historyLength: 1,
    acceptedOutputModes: ['a/b'],
    metadata: { snake_case: 4 },
  });
  refusal(() => v10.decodeGet({ id: 'x', history_length: -1 }));
  refusal(() => v03.decodeSend({ message: { ...text03, messageId: undefined, message_id: 'm' } }));
});

test('unknown methods and methods of another dialect are refused with a hint [S4-31]', () => {
  const all = Object.values(DIALECTS);
  assert.equal(operationOf(v03, 'message/stream', all), 'stream');
  assert.equal(operationOf(v10, 'SubscribeToTask', all), 'subscribe');
  const code = (dialect: typeof v10, method: string) => {
    try {
      operationOf(dialect, method, all);
    } catch (error) {
      assert(error instanceof A2AError);
      return `${error.code} ${error.message}`;
    }
    return 'accepted';
  };
  const { legacy } = DIALECTS;
  const push = ['createPush', 'getPush', 'listPush', 'deletePush', 'extendedCard'] as const;
  for (const operation of push) {
    for (const dialect of [v10, v03]) assert.equal(operationOf(dialect, dialect.methods[operation]!, all), operation);
  }
  assert.equal(operationOf(legacy, 'tasks/pushNotification/set', all), 'createPush');
  assert.equal(operationOf(legacy, 'tasks/pushNotification/get', all), 'getPush');
  assert.match(code(v03, 'SendMessage'), /^METHOD_NOT_FOUND .*requires A2A-Version: 1\.0$/);
  assert.match(code(v03, 'ListTasks'), /^METHOD_NOT_FOUND .*requires A2A-Version: 1\.0$/);
  assert.match(code(v10, 'message/send'), /^METHOD_NOT_FOUND .*requires A2A-Version: 0\.3, or no such header$/);
  assert.match(code(v10, 'tasks/send'), /^METHOD_NOT_FOUND .*requires A2A-Version: 0\.1, or no such header$/);
  assert.match(code(v03, 'tasks/sendSubscribe'), /^METHOD_NOT_FOUND .*requires A2A-Version: 0\.1, or no such header$/);
  for (const unknown of ['tasks/fly', 'constructor'])
    assert.match(code(v10, unknown), /^METHOD_NOT_FOUND Method not found: A2A 1\.0 has SendMessage, SendStreamingMessage, /);
  assert.match(
    code(v10, 'tasks/pushNotificationConfig/get'),
    /^METHOD_NOT_FOUND .*requires A2A-Version: 0\.3, or no such header$/,
  );
  const known = /^METHOD_NOT_FOUND Method not found: A2A 0\.3 has message\/send, .*tasks\/resubscribe/;
  assert.match(code(v03, 'tasks/pushNotificationConfig/fly'), known);
});

test('generations of the draft 1.1 are numbers or decimal strings in 1.0, and unknown members in 0.3', () => {
  for (const [given, expected] of [
    [7, 7],
    ['7', 7],
    [0, 0],
    [GENERATION_MAX, GENERATION_MAX],
    [String(GENERATION_MAX), GENERATION_MAX],
    [null, undefined],
  ]) {
    const configuration = { ifGenerationMatch: given };
    assert.equal(v10.decodeSend({ message: text10, configuration }).ifGenerationMatch, expected);
    assert.equal(v10.decodeGet({ id: 'x', currentGeneration: given }).currentGeneration, expected);
    assert.equal(v10.decodeGet({ id: 'x', current_generation: given }).currentGeneration, expected);
  }
  assert.deepEqual(v10.decodeGet({ id: 'x', timelineLength: 3 }), { taskId: 'x', timelineLength: 3 });
  assert.deepEqual(v03.decodeGet({ id: 'x', currentGeneration: 'other' }), { taskId: 'x' });
  const { ifGenerationMatch } = v03.decodeSend({ message: text03, configuration: { ifGenerationMatch: 'other' } });
  assert.equal(ifGenerationMatch, undefined);
});
