import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { Client, credentials, Metadata, type ServiceError, status } from '@grpc/grpc-js';
import { isTerminal } from '@hopline/a2a';
import fc from 'fast-check';
import { userMessage } from '../../packages/a2a-grpc/src/grpc-client.test-kit.ts';
import { openRig } from '../../packages/a2a-grpc/src/rig.test-kit.ts';
import { until, untilTick } from '../kit/until.ts';
import { ANSWER_MS_MAX, runs } from './fuzz-settings.ts';
import { type FuzzedCall, fuzzedCall, grpcTargets } from './grpc-requests.ts';
import { countWrites } from './memory-servers.ts';
import { filled, PLANTED } from './placeholders.ts';

const RUNS_OF_A_PROCEDURE = 40;
const BODY_BYTES_MAX = 64 * 1024;
/** A stream is closed after this silence. */
const QUIET_MS = 50;

/** The status of a call. INTERNAL and UNKNOWN are faults; an exceeded deadline is a call that hung. */
const ENDS = new Set([
  status.OK,
  status.CANCELLED,
  status.INVALID_ARGUMENT,
  status.NOT_FOUND,
  status.FAILED_PRECONDITION,
  status.UNIMPLEMENTED,
  status.RESOURCE_EXHAUSTED,
]);

type Ended = { code: status; details: string };

const same = (bytes: Uint8Array): Buffer => Buffer.from(bytes);

function metadataOf(entries: Record<string, string>): Metadata {
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(entries)) metadata.set(name, value);
  return metadata;
}

function unary(client: Client, { path, bytes, metadata }: FuzzedCall): Promise<Ended> {
  const { promise, resolve } = Promise.withResolvers<Ended>();
  const options = { deadline: Date.now() + ANSWER_MS_MAX };
  client.makeUnaryRequest(path, same, same, bytes, metadataOf(metadata), options, error =>
    resolve(error === null ? { code: status.OK, details: '' } : { code: error.code, details: error.details }),
  );
  return promise;
}

/** CANCELLED: the test closed an open stream. */
function streaming(client: Client, { path, bytes, metadata }: FuzzedCall): Promise<Ended> {
  const { promise, resolve } = Promise.withResolvers<Ended>();
  const options = { deadline: Date.now() + ANSWER_MS_MAX };
  const call = client.makeServerStreamRequest(path, same, same, bytes, metadataOf(metadata), options);
  let quiet: NodeJS.Timeout | undefined;
  const wait = () => {
    clearTimeout(quiet);
    quiet = setTimeout(() => call.cancel(), QUIET_MS);
  };
  call.on('metadata', wait).on('data', wait);
  call.on('error', ({ code, details }: ServiceError) => {
    clearTimeout(quiet);
    resolve({ code, details });
  });
  call.on('end', () => {
    clearTimeout(quiet);
    resolve({ code: status.OK, details: '' });
  });
  return promise;
}

async function openServer(t: TestContext) {
  const limits = { bodyBytesMax: BODY_BYTES_MAX, feedLingerMs: QUIET_MS, longPollMsMax: QUIET_MS };
  const first = await openRig(t, { push: true, limits });
  first.relay.onClient = async (taskId, { state }) => {
    if (!isTerminal(state)) await first.relay.end(taskId, 'INPUT_REQUIRED');
  };
  const begin = async (): Promise<string> => (await first.client().call('SendMessage', { message: userMessage('x') })).task.id;
  const [waiting, ended] = [await begin(), await begin()];
  await first.relay.end(ended);
  const rig = await first.another();
  const client = new Client(rig.address, credentials.createInsecure());
  t.after(() => client.close());
  return { rig, client, targets: grpcTargets(text => filled(text, { waiting, ended })), writes: countWrites(rig.log) };
}

test('nearly valid bytes for each procedure of both gRPC services cause no fault, and rejected ones change nothing [S4-33]', async t => {
  const { rig, client, targets, writes } = await openServer(t);
  for (const target of targets) {
    const ends = new Map<string, number>();
    await fc.assert(
      fc.asyncProperty(fuzzedCall(target), async call => {
        // A stream that its client has canceled may still write.
        await untilTick(() => rig.open() === 0);
        const before = writes();
        const { code, details } = await (call.streams ? streaming : unary)(client, call);
        const about = `${status[code]} ${details}`;
        assert(ENDS.has(code), about);
        assert.doesNotMatch(details, /node_modules|\.ts:\d|at async|TypeError|RangeError|protobuf|wire ?type/i, about);
        assert.equal(details.includes(PLANTED), false, about);
        if (code !== status.OK && code !== status.CANCELLED) assert.equal(writes(), before, about);
        ends.set(status[code], (ends.get(status[code]) ?? 0) + 1);
      }),
      runs(RUNS_OF_A_PROCEDURE),
    );
    t.diagnostic(`${target.path} ${JSON.stringify(Object.fromEntries(ends))}`);
  }
  await until(
    () => rig.open() === 0,
    () => `${rig.open()} streams or waits are still open`,
  );
  const written = JSON.stringify(rig.lines, (_name, value) =>
    value instanceof Error ? `${value.message} ${value.stack}` : value,
  );
  assert.equal(written.includes(PLANTED), false);
  assert.doesNotMatch(written, /request failed/);
});
