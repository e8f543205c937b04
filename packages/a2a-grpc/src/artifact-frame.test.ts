import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Artifact, DIALECTS, type Part, type StreamResponse } from '@hopline/a2a';
import { testBothWays } from '@hopline/a2a/test-kit';
import { generationForm } from '@hopline/a2a-server';
import { DRAFT_EXTENSION_URI, RESUME_EXTENSION_URI } from '@hopline/agent-card';
import fc from 'fast-check';
import { artifactFrameEncoder } from './artifact-frame.ts';
import { lengthPrefixed } from './call-stream.ts';
import { frameEncoder } from './grpc-sink.ts';
import { clientOf } from './procedures.test-kit.ts';
import { SERVICE_0_3, SERVICE_1_0 } from './services.ts';

const VERSIONS = [
  { version: '1.0', service: SERVICE_1_0 },
  { version: '0.3', service: SERVICE_0_3 },
] as const;

/** Text whose length is around those at which a length field grows by one byte, with characters of one to four bytes. */
const text = fc
  .tuple(
    fc.constantFrom(0, 1, 20, 42, 63, 64, 126, 127, 128, 5_461, 16_383, 16_384, 70_000),
    fc.constantFrom('a', 'é', '€', '😀'),
  )
  .map(([length, character]) => character.repeat(length));
const any = fc.oneof(fc.string(), fc.string({ unit: 'binary' }), text);
const key = fc.oneof(any, fc.constantFrom('generation', '__proto__', '0', 'task_id', 'artifact_id'));
const json = fc.oneof(fc.jsonValue(), fc.double(), fc.integer(), fc.constantFrom(null, -0, 1e300, undefined, []));
const metadata = fc.dictionary(key, fc.oneof(json, fc.dictionary(key, json, { maxKeys: 3 })), { maxKeys: 3 });
/** Absent, empty, undefined and mistyped values: the fast writer leaves them to the library. */
const odd = fc.constantFrom<unknown>(undefined, null, 7, '', 'x', [], {});
const sometimes = <T>(value: fc.Arbitrary<T>): fc.Arbitrary<T> =>
  fc.oneof({ weight: 12, arbitrary: value }, { weight: 1, arbitrary: odd as fc.Arbitrary<T> });
const part = fc.oneof(
  { weight: 4, arbitrary: fc.record({ text: any, metadata: sometimes(metadata) }, { requiredKeys: ['text'] }) },
  {
    weight: 1,
    arbitrary: fc.record(
      { text: any, raw: fc.constant('AAE='), data: json, filename: any, mediaType: any, other: json },
      { requiredKeys: [] },
    ),
  },
) as fc.Arbitrary<Part>;
const artifact = fc.record(
  {
    artifactId: sometimes(any),
    name: sometimes(any),
    description: sometimes(any),
    parts: sometimes(fc.array(part, { maxLength: 3 })),
    metadata: sometimes(metadata),
    extensions: fc.array(any, { maxLength: 2 }),
    unknown: json,
  },
  { requiredKeys: ['artifactId', 'parts'] },
) as fc.Arbitrary<Artifact>;
const event = fc.record(
  {
    taskId: sometimes(any),
    contextId: sometimes(any),
    artifact,
    append: sometimes(fc.boolean()),
    lastChunk: sometimes(fc.boolean()),
    metadata: sometimes(metadata),
    unknown: json,
  },
  { requiredKeys: ['taskId', 'contextId', 'artifact'] },
) as fc.Arbitrary<Extract<StreamResponse, { artifactUpdate: unknown }>['artifactUpdate']>;

/** The value, or 'refused' if `make` throws. */
function attempt<T>(make: () => T): T | 'refused' {
  try {
    return make();
  } catch {
    return 'refused';
  }
}

for (const { version, service } of VERSIONS) {
  const dialect = DIALECTS[version];
  const { procedure } = clientOf(service, 'SendStreamingMessage');
  const byLibrary = (value: StreamResponse) => lengthPrefixed(procedure.response(dialect.encodeEvent(value)));

  testBothWays(`gRPC ${version}: a frame has the bytes that the library writes`, (_t, isOn) => {
    fc.assert(
      fc.property(event, fc.subarray([RESUME_EXTENSION_URI, DRAFT_EXTENSION_URI]), (artifactUpdate, extensions) => {
        const plain = { artifactUpdate };
        const form = generationForm(extensions);
        const expected = attempt(() => byLibrary(form === undefined ? plain : form.event(plain, 7)));
        const found = attempt(() => frameEncoder(dialect, form).encode(plain, 0, 7));
        assert.deepEqual(found, expected);
      }),
      // Without fast paths the library writes both frames.
      { numRuns: isOn ? 2_000 : 200 },
    );
  });

  test(`gRPC ${version}: chunks of text bypass the library, other events do not`, () => {
    const encode = artifactFrameEncoder(procedure.output);
    const one = (parts: Part[]): StreamResponse => ({
      artifactUpdate: {
        taskId: 't',
        contextId: 'c',
        artifact: { artifactId: 'a', name: 'n', parts, metadata: { sourceAgent: 'x' } },
        append: true,
        lastChunk: false,
        metadata: { generation: 7 },
      },
    });
    for (const size of [0, 40, 4_000, 2_000_000]) {
      const chunk = one([{ text: '€'.repeat(size) }]);
      assert.deepEqual(encode(chunk), byLibrary(chunk), `${size} characters`);
    }
    assert.equal(encode(one([{ data: 1 }])), undefined);
    assert.equal(encode(one([{ text: '\ud800' }])), undefined);
    assert.equal(encode({ task: { id: 't', contextId: 'c', status: { state: 'TASK_STATE_WORKING' } } }), undefined);
  });
}
