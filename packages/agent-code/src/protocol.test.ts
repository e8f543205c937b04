import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type AgentEvent, AgentMisuse } from '@hopline/agent';
import { ATTRIBUTE_CHARS_MAX, SPAN_ATTRIBUTES_MAX } from '@hopline/telemetry';
import fc from 'fast-check';
import { ProtocolFault } from './frames.ts';
import {
  boundedThrown,
  FRAME_EVENTS_MAX,
  LOG_LINE_CHARS_MAX,
  readFromHost,
  SPAN_NAME_CHARS_MAX,
  SPANS_PER_FRAME_MAX,
} from './protocol.ts';
import { readEvent } from './read-event.ts';
import { fromThrown, toThrown } from './thrown.ts';

const read = (value: unknown) => readFromHost(Buffer.from(JSON.stringify(value)));
const KINDS = [
  'loaded',
  'refused',
  'events',
  'over',
  'log',
  'shown',
  'run',
  'spans',
  'model-request',
  'answer',
  'skipped',
  'crashed',
  'pong',
];

test('any bytes are a frame of the protocol, or a ProtocolFault', () => {
  const frame = fc.record({
    k: fc.oneof(fc.constantFrom(...KINDS), fc.anything()),
    id: fc.oneof(fc.nat(3), fc.anything()),
    events: fc.oneof(fc.array(fc.anything()), fc.anything()),
    error: fc.oneof(
      fc.record({ name: fc.anything(), message: fc.anything(), stack: fc.string(), text: fc.string() }),
      fc.anything(),
    ),
    line: fc.anything(),
    level: fc.oneof(fc.constantFrom('info', 'toString'), fc.anything()),
    text: fc.anything(),
    name: fc.anything(),
    description: fc.anything(),
  });
  const documents = fc.oneof(
    fc.uint8Array().map(bytes => Buffer.from(bytes)),
    frame.map(value => Buffer.from(stringify(value))),
  );
  fc.assert(
    fc.property(documents, document => {
      try {
        assert.ok(KINDS.includes(readFromHost(document).k));
      } catch (error) {
        assert.ok(error instanceof ProtocolFault, String(error));
      }
    }),
  );
});

/** The compiler finds a type that is missing here. */
const EVENT_TYPES: Record<AgentEvent['type'], true> = {
  text: true,
  working: true,
  'text-end': true,
  step: true,
  snapshot: true,
  tool: true,
  usage: true,
  progress: true,
  artifact: true,
  'auth-required': true,
  interrupted: true,
  done: true,
  failed: true,
};

test('any value is an event, or an AgentMisuse that quotes nothing of it', () => {
  const event = fc.record(
    {
      type: fc.constantFrom(...Object.keys(EVENT_TYPES)),
      text: fc.anything(),
      id: fc.anything(),
      stream: fc.anything(),
      step: fc.anything(),
      reason: fc.anything(),
      message: fc.oneof(
        fc.record({ messageId: fc.anything(), parts: fc.oneof(fc.array(fc.anything()), fc.anything()) }),
        fc.anything(),
      ),
      artifact: fc.anything(),
      usage: fc.oneof(fc.dictionary(fc.string(), fc.oneof(fc.nat(), fc.anything())), fc.anything()),
    },
    { requiredKeys: ['type'] },
  );
  fc.assert(
    fc.property(fc.oneof(event, fc.anything()), value => {
      try {
        const found = readEvent(value);
        if (found.type === 'text') assert.equal(typeof found.text, 'string');
        if (found.type === 'usage')
          for (const tokens of Object.values(found.usage)) assert.ok(Number.isSafeInteger(tokens) && tokens >= 0);
      } catch (error) {
        assert.ok(error instanceof AgentMisuse, String(error));
      }
    }),
  );
});

test('lists and texts of a frame are bounded', () => {
  assert.equal(read({ k: 'events', id: 1, events: Array(FRAME_EVENTS_MAX).fill('') }).k, 'events');
  const tooMany: unknown[] = [
    { k: 'events', id: 1, events: Array(FRAME_EVENTS_MAX + 1).fill('') },
    { k: 'log', id: 1, level: 'info', line: 'x'.repeat(LOG_LINE_CHARS_MAX + 1) },
    { k: 'log', id: 1, level: 'fatal', line: '' },
    { k: 'events', id: 1.5, events: [] },
    { k: 'crashed', text: 'x'.repeat(9_000) },
    { k: '__proto__' },
    null,
    [],
  ];
  for (const frame of tooMany) assert.throws(() => read(frame), ProtocolFault, JSON.stringify(frame)?.slice(0, 40));
});

test('a span has only plain members within their bounds', () => {
  const span = {
    spanId: 'b7ad6b7169203331',
    name: 'n',
    kind: 0,
    startTime: [1, 2],
    endTime: [1, 3],
    attributes: { rows: 3 },
    status: { code: 0 },
    scope: 's',
  };
  const spans = (count: number, one: object = span) => ({ k: 'spans', id: 1, spans: Array(count).fill(one) });
  assert.equal(read(spans(SPANS_PER_FRAME_MAX)).k, 'spans');
  const attributes = Object.fromEntries(Array.from({ length: SPAN_ATTRIBUTES_MAX + 1 }, (_, n) => [`a${n}`, n]));
  const refused: object[] = [
    spans(SPANS_PER_FRAME_MAX + 1),
    spans(1, { ...span, spanId: 'B7AD6B7169203331' }),
    spans(1, { ...span, parentSpanId: '' }),
    spans(1, { ...span, name: 'x'.repeat(SPAN_NAME_CHARS_MAX + 1) }),
    spans(1, { ...span, kind: 5 }),
    spans(1, { ...span, endTime: [1, 1_000_000_000] }),
    spans(1, { ...span, status: { code: 0, message: 'x'.repeat(ATTRIBUTE_CHARS_MAX + 1) } }),
    spans(1, { ...span, attributes: { nested: {} } }),
    spans(1, { ...span, attributes }),
    spans(1, { ...span, attributes: { text: 'x'.repeat(ATTRIBUTE_CHARS_MAX + 1) } }),
  ];
  for (const frame of refused) assert.throws(() => read(frame), ProtocolFault, JSON.stringify(frame).slice(0, 200));
});

test('a request to a model has numbers, and names within their bounds', () => {
  const request = { model: 'm', at: 1, ms: 1.5, failure: 'silent', usage: { inputTokens: 1 } };
  const frame = (more: object) => ({ k: 'model-request', id: 1, request: { ...request, ...more } });
  assert.deepEqual(read(frame({})), frame({}));
  const refused = [
    { model: 'm'.repeat(257) },
    { at: -1 },
    { ms: -1 },
    { ms: '1' },
    { failure: 1 },
    { failure: 'x'.repeat(65) },
    { usage: undefined },
    { usage: { inputTokens: 1.5 } },
    { usage: { inputTokens: -1 } },
  ];
  for (const more of refused) assert.throws(() => read(frame(more)), ProtocolFault, JSON.stringify(more));
});

test('an error keeps its class, its place and its text for the author', () => {
  const thrown = new RangeError('secret', { cause: new Error('deeper') });
  const again = fromThrown(boundedThrown(toThrown(thrown)));
  assert.equal(again.name, 'RangeError');
  assert.equal(again.stack, thrown.stack);
  assert.ok(fromThrown(toThrown(new AgentMisuse('a rule'))) instanceof AgentMisuse);
  assert.equal(fromThrown(toThrown('text')).name, 'string');
  const inspected = toThrown(thrown).text;
  assert.match(inspected, /secret[\s\S]*deeper/);
});

function stringify(value: unknown): string {
  try {
    return JSON.stringify(value, (_, member: unknown) => (typeof member === 'bigint' ? String(member) : member)) ?? 'null';
  } catch {
    return 'null';
  }
}
