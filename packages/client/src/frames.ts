import { A2AError, type Dialect, decodeSse, isObject, SSE_CONTENT_TYPE, type StreamResponse } from '@hopline/a2a';
import { FailedTry } from './failed-try.ts';
import { parseJson } from './parse-json.ts';
import { chunksOf } from './read-body.ts';
import { RetryLine } from './retry-line.ts';
import { errorOf } from './rpc-error.ts';
import { noA2A, resultOf } from './transport.ts';

/** Generations that retention has removed, both ends included. */
export type Missing = { from: number; to: number };

/** One frame of one connection. Without `event`: an event that is none of the dialect. */
export type Frame = { cursor: string | undefined; event: StreamResponse | undefined } | { gap: Missing | 'unknown' };

/**
 * The frames of one answer until it ends. Throws FailedTry when the connection breaks, when the server drains, for an error in place of an event, and for a frame that is not JSON: what
 * it held cannot be guessed, but asked for again.
 */
export async function* framesOf(response: Response, dialect: Dialect, silenceMsMax: number): AsyncGenerator<Frame> {
  const type = response.headers.get('content-type') ?? '';
  if (/^application\/([\w.-]+\+)?json\b/i.test(type)) {
    yield frameOf(await resultOf(response, silenceMsMax), undefined, dialect);
    return;
  }
  if (!type.toLowerCase().startsWith(SSE_CONTENT_TYPE) || response.body === null) {
    response.body?.cancel().catch(() => {});
    throw noA2A('the answer is no event stream');
  }
  const retry = new RetryLine();
  for await (const { id, event = 'message', data } of decodeSse(retry.watch(chunksOf(response.body, silenceMsMax)))) {
    if (event === 'gap') yield { gap: missingOf(parseJson(data)) };
    if (event !== 'message' && event !== 'drain') continue;
    const answer = parseJson(data);
    if (!isObject(answer)) throw new FailedTry(new A2AError('INVALID_AGENT_RESPONSE', { detail: 'a frame is not JSON' }));
    if (isObject(answer.error)) throw new FailedTry(errorOf(answer.error), { askedMs: retry.ms });
    yield frameOf(answer.result, id, dialect);
  }
}

function frameOf(result: unknown, cursor: string | undefined, dialect: Dialect): Frame {
  const decoded = dialect.decodeEvent(result);
  return { cursor, event: 'event' in decoded ? decoded.event : undefined };
}

function missingOf(data: unknown): Missing | 'unknown' {
  const missing = isObject(data) ? data.missing : undefined;
  if (!isObject(missing) || typeof missing.from !== 'number' || typeof missing.to !== 'number') return 'unknown';
  return { from: missing.from, to: missing.to };
}
