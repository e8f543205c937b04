import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import fc from 'fast-check';
import { Exchange, type Received } from './exchange.ts';
import { runs } from './fuzz-settings.ts';
import { type Outcome, restOutcome } from './invariants.ts';
import { type MemoryServers, openMemoryServers } from './memory-servers.ts';
import { type Described, OpenApiDocument } from './openapi-document.ts';
import { filled, filledBytes, PLANTED } from './placeholders.ts';
import { type FuzzedRest, fuzzedRest } from './rest-requests.ts';
import { fuzzedRest03 } from './rest-requests-03.ts';

const RUNS_OF_AN_OPERATION = 80;
const RUNS_OF_03 = 300;

/**
 * Values that a schema cannot express: a known page token, a cursor of this task, the context of that task, a free id, a scheme for
 * credentials, a usable URL, the length of base64.
 */
const BEYOND_SCHEMAS =
  /pageToken must be|cursor does not belong|contextId \(legacy|without an authentication scheme|messageId was already used|the webhook URL|whole number of bytes/;
const UNREADABLE = ['INVALID_PARAMS', 'PARSE_ERROR', 'INVALID_REQUEST', 'VERSION_NOT_SUPPORTED', 'METHOD_NOT_FOUND'];

type Fuzzer = { servers: MemoryServers; exchange: Exchange; document: OpenApiDocument };

async function openFuzzer(t: TestContext): Promise<Fuzzer> {
  const servers = await openMemoryServers(t);
  const exchange = new Exchange();
  t.after(() => exchange.close());
  const { text } = await exchange.send(servers.replicas[0].url, { method: 'GET', path: '/openapi.json' });
  return { servers, exchange, document: new OpenApiDocument(text) };
}

/** Asserts that the document describes the status and the body of a response. */
function assertDocumented(
  { document }: Fuzzer,
  { operation }: Described,
  received: Received,
  { frames }: Outcome,
  about: string,
): void {
  const { status, headers, text } = received;
  const type = headers['content-type']?.split(';')[0];
  const response = operation.responses[status];
  assert(response !== undefined, `${about}: ${status} is not documented: ${text}`);
  const media = response.content?.[type ?? ''];
  assert(media !== undefined, `${about}: ${type} is not documented for ${status}`);
  const bodies = received.isStream ? frames : [JSON.parse(text)];
  const schema = media.schema ?? { $ref: '#/components/schemas/StreamResponse' };
  for (const body of bodies) assert.equal(document.problem(schema, body), undefined, `${about}: ${text}`);
}

/** Asserts a documented response; a rejected request wrote nothing, and the other replica rejects it alike. */
async function judge(fuzzer: Fuzzer, described: Described | undefined, request: FuzzedRest): Promise<string> {
  const { servers, exchange } = fuzzer;
  const { replicas, writes } = servers;
  const known = await servers.known();
  const path = filled(request.path, known);
  const body = request.body && filledBytes(request.body, known);
  const about = `${request.method} ${path} ${JSON.stringify(request.headers)} ${Buffer.from(body ?? [])
    .toString('latin1')
    .slice(0, 2_000)}`;
  const before = writes();
  const first = await exchange.send(replicas[0].url, { ...request, path, body });
  if (request.method === 'HEAD') {
    assert.equal(first.status < 500, true, about);
    return 'head';
  }
  const outcome = await restOutcome(first, about);
  if (request.fits && described !== undefined) {
    assertDocumented(fuzzer, described, first, outcome, about);
    const misread = UNREADABLE.includes(outcome.reason ?? '') && !BEYOND_SCHEMAS.test(first.text);
    assert.equal(misread, false, `rejected although valid by the document: ${about} ${first.text}`);
  }
  if (outcome.accepted) return 'accepted';
  assert.equal(writes(), before, `rejected with ${outcome.reason} after a write: ${about}`);
  const second = await exchange.send(replicas[1].url, { ...request, path, body });
  assert.deepEqual([second.status, (await restOutcome(second, about)).reason], [first.status, outcome.reason], about);
  return `${first.status} ${outcome.reason}`;
}

function assertQuiet({ servers }: Fuzzer): void {
  for (const { lines } of servers.replicas) {
    const written = JSON.stringify(lines, (_name, value) => (value instanceof Error ? `${value.message} ${value.stack}` : value));
    assert.equal(written.includes(PLANTED), false);
    assert.doesNotMatch(written, /request failed/);
  }
}

test('each operation of /openapi.json accepts valid requests, rejects invalid ones, and returns documented responses [S4-32 S4-33]', async t => {
  const fuzzer = await openFuzzer(t);
  for (const described of fuzzer.document.operations) {
    const outcomes = new Map<string, number>();
    await fc.assert(
      fc.asyncProperty(fuzzedRest(fuzzer.document, described), async request => {
        const outcome = await judge(fuzzer, described, request);
        outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
      }),
      runs(RUNS_OF_AN_OPERATION),
    );
    t.diagnostic(`${described.method} ${described.path} ${JSON.stringify(Object.fromEntries(outcomes))}`);
  }
  await fuzzer.servers.settled();
  assertQuiet(fuzzer);
});

test('HTTP+JSON of 0.3 below /v1 responds to each request, and rejected ones change nothing [S4-32 S4-33]', async t => {
  const fuzzer = await openFuzzer(t);
  const outcomes = new Map<string, number>();
  await fc.assert(
    fc.asyncProperty(fuzzedRest03, async request => {
      const outcome = await judge(fuzzer, undefined, request);
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
    }),
    runs(RUNS_OF_03),
  );
  t.diagnostic(JSON.stringify(Object.fromEntries(outcomes)));
  await fuzzer.servers.settled();
  assertQuiet(fuzzer);
});
