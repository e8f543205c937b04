import type { JsonObject } from '@hopline/a2a';
import fc from 'fast-check';
import { clientOf } from '../../packages/a2a-grpc/src/procedures.test-kit.ts';
import { PROCEDURES, SERVICE_0_3, SERVICE_1_0 } from '../../packages/a2a-grpc/src/services.ts';
import { ENDED, PLANTED, WAITING } from './placeholders.ts';
import { goldenParams } from './rpc-requests.ts';

/** All procedures of both gRPC services, with bytes of valid and nearly valid requests. */

export type FuzzedCall = { path: string; streams: boolean; bytes: Uint8Array; metadata: Record<string, string> };

const tasks = [WAITING, ENDED, 'unknown'];
const config = {
  id: 'hook',
  url: 'https://hooks.example.org/a2a',
  token: PLANTED,
  authentication: { schemes: ['Bearer'], credentials: PLANTED },
};
const content = [
  { text: PLANTED },
  { file: { fileWithUri: 'https://h/f', mimeType: 'a/b' } },
  { data: { data: { a: [1, { b: null }] } } },
];
const message = { messageId: 'm', contextId: 'c', role: 'ROLE_USER', content, metadata: { a: { b: 1 } } };
const of = (make: (task: string) => JsonObject): JsonObject[] => tasks.map(make);

/** Requests of `a2a.v1.A2AService` as ProtoJSON. */
const GOLDEN_03: Record<string, JsonObject[]> = {
  SendMessage: [
    { message, configuration: { blocking: false, pushNotification: config } },
    ...of(taskId => ({ message: { ...message, contextId: '', taskId } })),
  ],
  SendStreamingMessage: [{ message }, ...of(taskId => ({ message: { ...message, contextId: '', taskId } }))],
  GetTask: of(task => ({ name: `tasks/${task}`, historyLength: 2 })),
  CancelTask: of(task => ({ name: `tasks/${task}` })),
  TaskSubscription: of(task => ({ name: `tasks/${task}` })),
  CreateTaskPushNotificationConfig: of(task => ({
    parent: `tasks/${task}`,
    configId: 'hook',
    config: { pushNotificationConfig: config },
  })),
  GetTaskPushNotificationConfig: of(task => ({ name: `tasks/${task}/pushNotificationConfigs/hook` })),
  ListTaskPushNotificationConfig: of(task => ({ parent: `tasks/${task}`, pageSize: 1 })),
  DeleteTaskPushNotificationConfig: of(task => ({ name: `tasks/${task}/pushNotificationConfigs/hook` })),
  GetAgentCard: [{}],
};

/** `requests`: ProtoJSON; `golden`: the same requests in bytes. */
type Target = { path: string; streams: boolean; requests: JsonObject[]; golden: Uint8Array[] };

/** Task ids exist before the bytes, because an id of another length would change their length prefixes. Requests that end a task are last. */
export function grpcTargets(named: (text: string) => string): Target[] {
  const inOrder = PROCEDURES.toSorted((a, b) => Number(a.path.endsWith('/CancelTask')) - Number(b.path.endsWith('/CancelTask')));
  return inOrder.map(({ path, streams, dialect }) => {
    const [, service, name] = path.split('/') as [string, string, string];
    const { write } = clientOf(service, name);
    const operation = Object.entries(dialect.methods).find(([, method]) => method === name)?.[0];
    const json =
      service === SERVICE_0_3 ? GOLDEN_03[name]! : goldenParams('1.0', operation as Parameters<typeof goldenParams>[1]);
    const requests = json.map(one => JSON.parse(named(JSON.stringify(one))) as JsonObject);
    return { path, streams, requests, golden: requests.map(write) };
  });
}

/** Unknown fields of each wire type, and malformed fields. */
const TAILS: Uint8Array[] = [
  [0xf8, 0xff, 0xff, 0xff, 0x0f, 0x01],
  [0xfa, 0xff, 0xff, 0xff, 0x0f, 0x03, 0x61, 0x62, 0x63],
  [0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f],
  [0x0a, 0x02, 0xc3, 0x28],
  [0x0b, 0x0c],
  [0x0b],
  [0x0c],
  [0x07],
  [0x00, 0x00],
  [0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80],
].map(bytes => Uint8Array.from(bytes));

/** A field nested in itself deeply enough to overflow the stack of a recursive reader. */
function deep(levels: number): Uint8Array {
  const groups = new Uint8Array(levels * 2);
  return groups.fill(0x0b, 0, levels).fill(0x0c, levels);
}

function nearly(golden: Uint8Array): fc.Arbitrary<Uint8Array> {
  const at = fc.nat(Math.max(0, golden.length - 1));
  const cut = at.map(end => golden.subarray(0, end));
  const tail = fc
    .oneof(fc.constantFrom(...TAILS, deep(100), deep(100_000)), fc.uint8Array({ maxLength: 20 }))
    .map(more => Buffer.concat([golden, more]));
  const flipped = fc.array(fc.tuple(at, fc.nat(255)), { minLength: 1, maxLength: 3 }).map(flips => {
    const bytes = Uint8Array.from(golden);
    for (const [index, byte] of flips) if (index < bytes.length) bytes[index] = byte;
    return bytes;
  });
  const huge = fc.constantFrom(40_000, 70_000, 200_000).map(size => Buffer.concat([golden, new Uint8Array(size).fill(0x61)]));
  return fc.oneof(
    { weight: 3, arbitrary: fc.constant(golden) },
    { weight: 3, arbitrary: cut },
    { weight: 3, arbitrary: tail },
    { weight: 4, arbitrary: flipped },
    { weight: 1, arbitrary: fc.uint8Array({ maxLength: 200 }) },
    { weight: 1, arbitrary: huge },
  );
}

const METADATA: Record<string, string[]> = {
  'a2a-version': ['1.0', '0.3', '2.0', 'x', ''],
  'last-event-id': ['0.0', '1.1', '999999999999999.1', 'x', '-1'],
  'a2a-extensions': ['https://e/', ',,', 'x'.repeat(3_000)],
  authorization: [`Bearer ${PLANTED}`],
  traceparent: [`00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`, 'x'],
  tracestate: ['=,=', 'a'.repeat(2_000)],
  'grpc-accept-encoding': ['identity,gzip,x'],
  'grpc-encoding': ['x'],
  'user-agent': ['x'],
};

const entry = fc
  .constantFrom(...Object.keys(METADATA))
  .chain(name => fc.tuple(fc.constant(name), fc.constantFrom(...METADATA[name]!)));

export function fuzzedCall({ path, streams, golden }: Target): fc.Arbitrary<FuzzedCall> {
  const metadata = fc.oneof(
    { weight: 3, arbitrary: fc.constant<[string, string][]>([]) },
    { weight: 1, arbitrary: fc.array(entry, { minLength: 1, maxLength: 3 }) },
  );
  const version: [string, string][] = path.includes(SERVICE_1_0) ? [['a2a-version', '1.0']] : [];
  return fc.record({ bytes: fc.oneof(...golden.map(nearly)), metadata }).map(made => ({
    path,
    streams,
    bytes: made.bytes,
    metadata: Object.fromEntries([...version, ...made.metadata]),
  }));
}
