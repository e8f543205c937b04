import assert from 'node:assert/strict';
import { A2A_ERRORS, decodeSse, type JsonObject } from '@hopline/a2a';
import type { Received } from './exchange.ts';
import { PLANTED } from './placeholders.ts';

/** Internals of the server: file names, stack frames, names of its dependencies. */
const INNARDS =
  /node_modules|node:internal|\.[cm]?[jt]s:\d|\bat (async )?[\w.<>]+ \(|FST_ERR|statusCode|ECONN|\/packages\/|\/services\/|JetStream|TypeError|RangeError/;

const RPC_NUMBERS = new Set<unknown>(Object.values(A2A_ERRORS).map(row => row.rpc));
/** Errors of the catalog that a client can cause. The others are faults, even with HTTP 200 in JSON-RPC. */
const REASONS = new Set<unknown>(
  Object.keys(A2A_ERRORS).filter(code => code !== 'INTERNAL_ERROR' && code !== 'INVALID_AGENT_RESPONSE'),
);

/** Asserts for any response: no fault except 503, and no internals or secrets. `echoes`: the response contains the client's own text. */
export function assertHarmless({ status, headers, text }: Received, echoes: boolean, about: string): void {
  assert(status < 500 || status === 503, `${about}: ${status} ${text.slice(0, 500)}`);
  if (status === 503) assert.match(String(headers['retry-after']), /^\d+$/, about);
  assert.doesNotMatch(text, INNARDS, about);
  if (!echoes) assert.equal(text.includes(PLANTED), false, `${about}: ${text.slice(0, 500)}`);
}

export type Outcome = {
  accepted: boolean;
  /** Code of the catalog; absent if the request was accepted, or rejected before it was parsed. */
  reason?: string | undefined;
  frames: JsonObject[];
};

async function framesOf(text: string): Promise<JsonObject[]> {
  const frames: JsonObject[] = [];
  const bytes = (async function* () {
    yield new TextEncoder().encode(text);
  })();
  for await (const { event, data } of decodeSse(bytes)) {
    if (event === undefined || event === 'message' || event === 'error') frames.push(JSON.parse(data) as JsonObject);
  }
  return frames;
}

type RpcError = { code: number; message: string; data: { reason?: string } | { reason?: string }[] };

/** Asserts a JSON-RPC 2.0 response. `id`: the id of the request; undefined if the request does not determine it. */
export async function rpcOutcome(received: Received, id: unknown, about: string): Promise<Outcome> {
  const { status, text, isStream } = received;
  if (isStream) {
    const frames = await framesOf(text);
    const failed = frames.find(frame => 'error' in frame);
    assertHarmless(received, failed === undefined, about);
    for (const frame of frames) if (id !== undefined) assert.deepEqual(frame.id, id, about);
    return { accepted: failed === undefined, reason: failed && rejectionOf(failed.error as RpcError, about), frames };
  }
  const body = JSON.parse(text) as { jsonrpc?: string; id?: unknown; result?: unknown; error?: RpcError };
  assertHarmless(received, body.error === undefined, about);
  // Responses other than JSON-RPC: a card, a 404, or a header that HTTP itself rejects. 403, 421: an Origin or a Host that no setting
  // lists.
  assert([200, 400, 401, 403, 413, 415, 421, 503].includes(status), `${about}: ${status} ${text}`);
  assert.equal(body.jsonrpc, '2.0', `${about}: ${text.slice(0, 300)}`);
  assert.equal('result' in body, body.error === undefined, about);
  // The server does not read the id of a body that it cannot parse, such as JSON with a number beyond the range of a double.
  const isUnread = body.error?.code === A2A_ERRORS.PARSE_ERROR.rpc;
  if (id !== undefined && status === 200) assert.deepEqual(body.id, isUnread ? null : id, about);
  return { accepted: body.error === undefined, reason: body.error && rejectionOf(body.error, about), frames: [] };
}

function rejectionOf({ code, message, data }: RpcError, about: string): string {
  assert(RPC_NUMBERS.has(code), `${about}: ${code}`);
  assert.equal(typeof message, 'string', about);
  const reason = Array.isArray(data) ? data[0]?.reason : data.reason;
  assert(REASONS.has(reason), `${about}: ${JSON.stringify(data)}`);
  return reason!;
}

type RestError = { details: { reason?: string }[] };

/** Asserts an HTTP+JSON response, whose error is the google.rpc.Status of 1.0 or the bare error object of 0.3. */
export async function restOutcome(received: Received, about: string): Promise<Outcome> {
  const { status, text, isStream } = received;
  const frames = isStream ? await framesOf(text) : [];
  const failed = frames.find(frame => 'error' in frame || 'code' in frame);
  const accepted = status < 400 && failed === undefined;
  assertHarmless(received, accepted, about);
  if (accepted) return { accepted, frames };
  const body = (failed ?? JSON.parse(text)) as { error: RestError | string } | RpcError;
  if (!('error' in body)) return { accepted, reason: rejectionOf(body, about), frames };
  if (typeof body.error === 'string') {
    // The path belongs to no binding; it gets 421 if no setting lists the Host.
    assert([404, 421].includes(status), `${about}: ${status} ${text}`);
    return { accepted, reason: 'NOTHING_THERE', frames };
  }
  const { reason } = body.error.details[0]!;
  assert(REASONS.has(reason), `${about}: ${text}`);
  return { accepted, reason, frames };
}
