import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type Artifact,
  DIALECTS,
  type JsonObject,
  type Message,
  type Part,
  type StreamResponse,
  TASK_STATES,
} from '@hopline/a2a';
import { jsonMessage, jsonPart } from '@hopline/a2a/dialect-0.3-proto';
import fc from 'fast-check';
import { clientOf } from './procedures.test-kit.ts';
import { SERVICE_0_3, SERVICE_1_0 } from './services.ts';

// fast-check builds records without a prototype, JSON does not.
const plain = <T>(value: T): T => JSON.parse(JSON.stringify(value)) as T;

const name = fc.string({ minLength: 1, maxLength: 8 });
// Reserved keys hold values that 0.3 cannot express; clients cannot use them.
const key = name.filter(text => !text.startsWith('hopline.') && text !== 'data_part_compat' && text !== '__proto__');
const metadata = fc.dictionary(key, fc.jsonValue(), { minKeys: 1, maxKeys: 3 });
const described = { filename: name, mediaType: name, metadata };
const raw = fc.uint8Array().map(bytes => Buffer.from(bytes).toString('base64'));
const part: fc.Arbitrary<Part> = fc.oneof(
  fc.record({ text: fc.string({ unit: 'binary' }), ...described }, { requiredKeys: ['text'] }),
  fc.record({ raw, ...described }, { requiredKeys: ['raw'] }),
  fc.record({ url: fc.webUrl(), ...described }, { requiredKeys: ['url'] }),
  fc.record({ data: fc.jsonValue(), ...described }, { requiredKeys: ['data'] }),
);
const parts = fc.array(part, { maxLength: 4 });
const names = fc.array(name, { minLength: 1, maxLength: 2 });
const message: fc.Arbitrary<Message> = fc.record(
  {
    messageId: name,
    role: fc.constantFrom('ROLE_USER' as const, 'ROLE_AGENT' as const),
    parts,
    contextId: name,
    taskId: name,
    metadata,
    extensions: names,
    referenceTaskIds: names,
  },
  { requiredKeys: ['messageId', 'role', 'parts'] },
);
const artifact: fc.Arbitrary<Artifact> = fc.record(
  { artifactId: name, parts, name, description: name, metadata, extensions: names },
  { requiredKeys: ['artifactId', 'parts'] },
);
const timestamp = fc
  .date({ min: new Date(0), max: new Date('9999-12-31'), noInvalidDate: true })
  // protobuf writes no fraction for a whole second.
  .filter(at => at.getMilliseconds() > 0)
  .map(at => at.toISOString());
const status = fc.record({ state: fc.constantFrom(...TASK_STATES), message, timestamp }, { requiredKeys: ['state'] });
const listed = {
  artifacts: fc.array(artifact, { minLength: 1, maxLength: 3 }),
  history: fc.array(message, { minLength: 1, maxLength: 3 }),
};
const envelope = { taskId: name, contextId: name, metadata };
const event: fc.Arbitrary<StreamResponse> = fc
  .oneof(
    fc
      .record({ id: name, contextId: name, status, ...listed, metadata }, { requiredKeys: ['id', 'contextId', 'status'] })
      .map(task => ({ task })),
    message.map(value => ({ message: value })),
    fc
      .record({ ...envelope, status }, { requiredKeys: ['taskId', 'contextId', 'status'] })
      .map(statusUpdate => ({ statusUpdate })),
    fc
      .record(
        { ...envelope, artifact, append: fc.boolean(), lastChunk: fc.boolean() },
        { requiredKeys: ['taskId', 'contextId', 'artifact', 'append', 'lastChunk'] },
      )
      .map(artifactUpdate => ({ artifactUpdate })),
  )
  .map(plain);

/**
 * Converts a StreamResponse of 0.3 from ProtoJSON to JSON, as far as necessary: the decoder already knows the states and roles of the
 * definition.
 */
function jsonOf03(response: JsonObject): JsonObject {
  const [[member, value]] = Object.entries(response) as [[string, JsonObject]];
  const ofArtifact = (one: unknown): JsonObject => ({ ...(one as JsonObject), parts: partsOf((one as JsonObject).parts) });
  const partsOf = (of: unknown): JsonObject[] => ((of as unknown[]) ?? []).map(jsonPart);
  const { status, history, artifacts, artifact } = value as Record<string, JsonObject & unknown[]>;
  const message = jsonMessage(member === 'message' ? value : status?.message) as JsonObject | undefined;
  if (member === 'message') return message!;
  return {
    ...value,
    kind: { task: 'task', statusUpdate: 'status-update', artifactUpdate: 'artifact-update' }[member],
    ...(status && { status: { ...status, ...(message && { message }) } }),
    ...(history && { history: history.map(jsonMessage) }),
    ...(artifacts && { artifacts: artifacts.map(ofArtifact) }),
    ...(artifact && { artifact: ofArtifact(artifact) }),
  };
}

const READERS = [
  { version: '1.0', service: SERVICE_1_0, jsonOf: (response: JsonObject) => response },
  { version: '0.3', service: SERVICE_0_3, jsonOf: jsonOf03 },
] as const;

for (const { version, service, jsonOf } of READERS) {
  test(`gRPC ${version}: clients decode events without loss [S3-29]`, () => {
    const { procedure, read } = clientOf(service, 'SendStreamingMessage');
    fc.assert(
      fc.property(event, value => {
        const response = read(procedure.response(DIALECTS[version].encodeEvent(value)));
        assert.deepEqual(DIALECTS[version].decodeEvent(jsonOf(response)), { event: value });
      }),
    );
  });
}

test("gRPC 0.3: a client's message arrives as over JSON-RPC [S1-5]", () => {
  const { procedure, write } = clientOf(SERVICE_0_3, 'SendMessage');
  const answer = clientOf(SERVICE_0_3, 'SendStreamingMessage');
  const sendable = message.filter(
    one =>
      one.parts.length > 0 &&
      /^[\x20-\x7e]+$/.test(
        Object.values(one)
          .filter(value => typeof value === 'string')
          .join(''),
      ),
  );
  fc.assert(
    fc.property(sendable.map(plain), metadata.map(plain), (value, own) => {
      // The definition of a message is the same in both directions.
      const sent = answer.read(answer.procedure.response(DIALECTS['0.3'].encodeEvent({ message: value })));
      const params = procedure.params(write({ message: sent.message, metadata: own }));
      assert.deepEqual(DIALECTS['0.3'].decodeSend(params), { message: value, blocking: true, metadata: own });
    }),
  );
});
